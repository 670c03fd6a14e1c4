"""Why an AMD GPU of this machine can or cannot be used: driver, device files, groups, container, ROCm.

Only files are read, below a root that tests can choose. Sources: the kernel's amdgpu and amdkfd drivers for
what is in /sys and /dev, and AMD's ROCm installation and container guides for groups and flags.
"""

from __future__ import annotations

import errno
import os
import pwd
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .inspection import Finding

__all__ = ["GpuNode", "Machine", "gpu_nodes", "inspect_gpus", "this_machine"]

_AMD = "0x1002"
# PCI classes: display controllers, and processing accelerators, which Instinct devices are.
_GPU_CLASSES = ("0x03", "0x12")
_SUPPORTED = ("gfx942", "gfx90a", "gfx950")
_FLAGS = "--device=/dev/kfd --device=/dev/dri"
_HIDING = ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine as its file tree shows it, and who looks at it."""

    root: Path
    environment: Mapping[str, str]
    user: str
    uid: int
    groups: frozenset[int]

    def path(self, absolute: str) -> Path:
        return self.root / absolute.lstrip("/")

    def text(self, absolute: str) -> str | None:
        """What a file holds, or ``None`` where there is none to read."""
        try:
            return self.path(absolute).read_text(errors="replace").strip()
        except OSError:
            return None


@dataclass(frozen=True, slots=True)
class GpuNode:
    """A GPU as the kernel driver lists it."""

    arch: str
    compute_units: int
    xcds: int
    render_minor: int


def this_machine() -> Machine:
    """The machine that this runs on, as this process."""
    uid = os.geteuid()
    try:
        user = pwd.getpwuid(uid).pw_name
    except KeyError:
        user = str(uid)
    groups = frozenset({os.getegid(), *os.getgroups()})
    return Machine(Path("/"), os.environ, user, uid, groups)


def inspect_gpus(machine: Machine) -> list[Finding]:
    """What stands between this process and the machine's AMD GPUs; one line where it has none."""
    on_bus = _gpus_on_bus(machine)
    loaded = machine.path("/sys/module/amdgpu").is_dir()
    kfd = machine.path("/dev/kfd").exists()
    if not (on_bus or loaded or kfd):
        return [Finding("amd gpu", "limited", "none on this machine's PCI bus; kernels are run on the CPU")]
    return [
        _driver(machine, on_bus, loaded),
        _device_files(machine),
        *_container(machine),
        _rocm(machine),
        _devices(machine),
        *_visibility(machine),
        *_balancing(machine),
    ]


def gpu_nodes(machine: Machine) -> list[GpuNode]:
    """The GPUs that the kernel's compute driver has, in its order."""
    nodes = machine.path("/sys/class/kfd/kfd/topology/nodes")
    found: list[GpuNode] = []
    for folder in sorted(nodes.glob("*"), key=lambda path: (len(path.name), path.name)):
        text = machine.text(f"/sys/class/kfd/kfd/topology/nodes/{folder.name}/properties") or ""
        values = {name: int(value) for name, value in re.findall(r"^(\w+) (\d+)$", text, re.MULTILINE)}
        version = values.get("gfx_target_version", 0)
        if version and values.get("simd_count"):
            arch = f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"
            units = values["simd_count"] // max(1, values.get("simd_per_cu", 4))
            found.append(GpuNode(arch, units, values.get("num_xcc", 1), values.get("drm_render_minor", 0)))
    return found


def _gpus_on_bus(machine: Machine) -> int:
    count = 0
    for device in machine.path("/sys/bus/pci/devices").glob("*"):
        place = f"/sys/bus/pci/devices/{device.name}"
        kind = machine.text(f"{place}/class") or ""
        count += machine.text(f"{place}/vendor") == _AMD and kind.startswith(_GPU_CLASSES)
    return count


def _driver(machine: Machine, on_bus: int, loaded: bool) -> Finding:
    name = "gpu driver"
    if loaded:
        version = machine.text("/sys/module/amdgpu/version")
        return Finding(name, "ok", f"amdgpu {version or 'of the kernel'}, {on_bus} on the PCI bus")
    return Finding(
        name,
        "limited",
        f"{on_bus} AMD GPU(s) on the PCI bus, and the amdgpu module is not loaded",
        "on the host run `sudo modprobe amdgpu`; where there is no such module install AMD's driver "
        "(amdgpu-dkms) and start the machine anew",
    )


def _device_files(machine: Machine) -> Finding:
    name = "gpu access"
    kfd = machine.path("/dev/kfd")
    nodes = sorted(machine.path("/dev/dri").glob("renderD*"))
    inside = _container_kind(machine) is not None
    absent = [
        where for where, there in (("/dev/kfd", kfd.exists()), ("/dev/dri/renderD*", nodes)) if not there
    ]
    if absent:
        fix = (
            f"start the container with `{_FLAGS}`"
            if inside
            else "load the amdgpu driver (`sudo modprobe amdgpu`) and see `sudo dmesg | grep -i amdgpu`"
        )
        return Finding(name, "limited", f"there is no {' and no '.join(absent)}", fix)
    refused = [fault for path in (kfd, *nodes) if (fault := _refusal(machine, path)) is not None]
    if not refused:
        return Finding(name, "ok", f"/dev/kfd and {len(nodes)} of {len(nodes)} render nodes can be opened")
    files = ", ".join(f"/{path.relative_to(machine.root)}" for path, _ in refused)
    owners = sorted({path.stat().st_gid for path, code in refused if code == errno.EACCES})
    if not owners:
        fix = (
            f"the container's device rules forbid it; start it with `{_FLAGS}`"
            if inside
            else "see `sudo dmesg | grep -i amdgpu` for what the driver says"
        )
        return Finding(name, "limited", f"{files} cannot be opened ({os.strerror(refused[0][1])})", fix)
    return Finding(
        name, "limited", f"user {machine.user} may not open {files}", _join(machine, owners, inside)
    )


def _refusal(machine: Machine, path: Path) -> tuple[Path, int] | None:
    """The path with the error that opening it would meet."""
    status = path.stat()
    if machine.uid != 0:
        if machine.uid == status.st_uid:
            needed = stat.S_IRUSR | stat.S_IWUSR
        elif status.st_gid in machine.groups:
            needed = stat.S_IRGRP | stat.S_IWGRP
        else:
            needed = stat.S_IROTH | stat.S_IWOTH
        if status.st_mode & needed != needed:
            return path, errno.EACCES
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK))
    except OSError as error:
        return path, error.errno or errno.EIO
    return None


def _join(machine: Machine, gids: Sequence[int], inside: bool) -> str:
    """How `machine.user` gets into the groups that own the device files."""
    if inside:
        # By number: names of the host's groups mean other ones in here, or none.
        flags = " ".join(f"--group-add {gid}" for gid in gids)
        return f"start the container with `{_FLAGS} {flags}`"
    groups = {gid: (group, members) for group, gid, members in _groups(machine)}
    unnamed = [gid for gid in gids if gid not in groups]
    if unnamed:
        return (
            f"group {unnamed[0]} owns them and has no name here; give it one: "
            f"`sudo groupadd -g {unnamed[0]} render`, then run `sudo usermod -aG render {machine.user}`"
        )
    names = [groups[gid][0] for gid in gids]
    if all(machine.user in groups[gid][1] for gid in gids):
        return (
            f"you were put into {' and '.join(names)} since you logged in; log out and in, or use "
            f"`newgrp {names[0]}`"
        )
    return f"run `sudo usermod -aG {','.join(names)} {machine.user}`, then log out and in"


def _groups(machine: Machine) -> Iterator[tuple[str, int, list[str]]]:
    for line in (machine.text("/etc/group") or "").splitlines():
        parts = line.split(":")
        if len(parts) == 4 and parts[2].isdigit():
            yield parts[0], int(parts[2]), parts[3].split(",")


def _container_kind(machine: Machine) -> str | None:
    if machine.path("/.dockerenv").exists():
        return "Docker"
    if machine.path("/run/.containerenv").exists():
        return "Podman"
    if machine.path("/.singularity.d").exists():
        return "Apptainer"
    of_first = machine.text("/proc/1/cgroup") or ""
    match = re.search(r"docker|kubepods|containerd|libpod|lxc", of_first)
    return match.group() if match else machine.environment.get("container")


def _container(machine: Machine) -> list[Finding]:
    kind = _container_kind(machine)
    if kind is None:
        return []
    filtered = re.search(r"^Seccomp:\s*2$", machine.text("/proc/self/status") or "", re.MULTILINE)
    if filtered is None:
        return [Finding("container", "ok", f"{kind}, without a filter of system calls")]
    return [
        Finding(
            "container",
            "limited",
            f"{kind} filters system calls: memory cannot be bound to a GPU's node, and bubblewrap may not "
            "make a cage",
            "start the container with `--security-opt seccomp=unconfined`",
        )
    ]


def _rocm(machine: Machine) -> Finding:
    name = "rocm"
    folders = [
        value for variable in ("ROCM_PATH", "HIP_PATH") if (value := machine.environment.get(variable))
    ]
    installed = sorted(f"/opt/{path.name}" for path in machine.path("/opt").glob("rocm-*"))
    for folder in (*folders, "/opt/rocm", *reversed(installed)):
        version = machine.text(f"{folder}/.info/version")
        library = next(iter(sorted(machine.path(f"{folder}/lib").glob("libamdhip64.so*"))), None)
        if library is not None:
            return Finding(name, "ok", f"ROCm {version or 'of unknown version'} in {folder}")
        if version is not None:
            return Finding(
                name,
                "limited",
                f"ROCm {version} in {folder} has no lib/libamdhip64.so",
                "install the package hip-runtime-amd of the same ROCm version",
            )
    named = f"; {folders[0]}, which the environment names, is none" if folders else ""
    return Finding(
        name,
        "limited",
        f"no ROCm in /opt/rocm{named}",
        "install ROCm 6 or newer (packages hip-runtime-amd and rocm-llvm), or set ROCM_PATH to its folder",
    )


def _devices(machine: Machine) -> Finding:
    name = "gpus"
    nodes = gpu_nodes(machine)
    if not nodes:
        return Finding(
            name,
            "limited",
            "the kernel's compute driver (amdkfd) lists no GPU",
            "see `sudo dmesg | grep -i kfd` on the host",
        )
    kinds = [f"{node.arch} ({node.compute_units} CUs, {node.xcds} XCDs)" for node in nodes]
    told = ", ".join(f"{kinds.count(kind)} x {kind}" for kind in dict.fromkeys(kinds))
    if any(node.arch in _SUPPORTED for node in nodes):
        return Finding(name, "ok", told)
    return Finding(
        name, "limited", f"{told}; the target mi300 runs {', '.join(_SUPPORTED)}", "use a machine with one"
    )


def _visibility(machine: Machine) -> list[Finding]:
    """Variables that hide devices from ROCm; all of them are honoured at once."""
    given = {name: machine.environment[name] for name in _HIDING if name in machine.environment}
    told = ", ".join(f"{name}={value!r}" for name, value in given.items())
    hiding = [name for name, value in given.items() if value.strip() in ("", "-1")]
    if hiding:
        return [
            Finding("visible gpus", "limited", f"{told} hides every GPU", f"unset {' and '.join(hiding)}")
        ]
    return [Finding("visible gpus", "ok", told)] if given else []


def _balancing(machine: Machine) -> list[Finding]:
    if machine.text("/proc/sys/kernel/numa_balancing") in (None, "0"):
        return []
    return [
        Finding(
            "numa balancing",
            "limited",
            "the kernel moves memory between nodes while kernels are timed, so that times spread",
            "on the host run `sudo sysctl kernel.numa_balancing=0`",
        )
    ]
