"""Doctor's view of a machine with AMD GPUs, on file trees made here: what is wrong and what to do."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from kernel_scientist.sandbox.gpu_inspection import GpuNode, Machine, gpu_nodes, inspect_gpus, this_machine
from kernel_scientist.sandbox.inspection import Finding, inspect_machine

from .fakehip.machine import FakeRocm

GID = os.getegid()
ME = 4711
GPU = "/sys/bus/pci/devices/0000:05:00.0"
NODE = "/sys/class/kfd/kfd/topology/nodes"
# As the kernel writes them for an MI300X.
PROPERTIES = (
    "cpu_cores_count 0\nsimd_count 1216\nsimd_per_cu 4\nlds_size_in_kb 64\ngfx_target_version 90402\n"
    "vendor_id 4098\ndevice_id 29857\ndrm_render_minor 128\nnum_xcc 8\n"
)
WHOLE: dict[str, str] = {
    f"{GPU}/vendor": "0x1002",
    f"{GPU}/class": "0x120000",
    "/sys/bus/pci/devices/0000:00:01.0/vendor": "0x8086",
    "/sys/bus/pci/devices/0000:00:01.0/class": "0x030000",
    "/sys/module/amdgpu/version": "6.10.5",
    f"{NODE}/0/properties": "cpu_cores_count 96\nsimd_count 0\ngfx_target_version 0\n",
    f"{NODE}/1/properties": PROPERTIES,
    f"{NODE}/2/properties": PROPERTIES.replace("minor 128", "minor 129"),
    "/dev/kfd": "",
    "/dev/dri/renderD128": "",
    "/opt/rocm/.info/version": "6.3.1-48",
    "/opt/rocm/lib/libamdhip64.so.6": "",
    "/etc/group": f"root:x:0:\nrender:x:{GID}:someone\nvideo:x:44:\n",
    "/proc/sys/kernel/numa_balancing": "0",
    "/proc/self/status": "Name:\tpython\nSeccomp:\t0\n",
    "/proc/1/cgroup": "0::/init.scope\n",
}


def machine(root: Path, files: Mapping[str, str], **environment: str) -> Machine:
    for name, text in files.items():
        path = root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o660)
    return Machine(root, environment, "me", ME, frozenset({GID}))


def found(one: Machine) -> dict[str, Finding]:
    return {finding.name: finding for finding in inspect_gpus(one)}


def without(*prefixes: str) -> dict[str, str]:
    return {name: text for name, text in WHOLE.items() if not name.startswith(prefixes)}


def test_nothing_is_wrong_with_a_machine_that_is_whole(tmp_path: Path) -> None:
    findings = found(machine(tmp_path, WHOLE))
    assert {finding.state for finding in findings.values()} == {"ok"}
    assert {finding.fix for finding in findings.values()} == {""}
    assert findings["gpu driver"].detail == "amdgpu 6.10.5, 1 on the PCI bus"
    assert findings["gpus"].detail == "2 x gfx942 (304 CUs, 8 XCDs)"
    assert findings["rocm"].detail == "ROCm 6.3.1-48 in /opt/rocm"


def test_a_machine_without_an_amd_gpu_gets_one_line(tmp_path: Path) -> None:
    only_intel = {name: text for name, text in WHOLE.items() if "0000:00:01.0" in name}
    (finding,) = inspect_gpus(machine(tmp_path, only_intel))
    assert (finding.name, finding.state) == ("amd gpu", "limited")


@pytest.mark.parametrize(
    ("files", "name", "detail", "fix"),
    [
        (without("/sys/module/amdgpu"), "gpu driver", "is not loaded", "modprobe amdgpu"),
        (without("/dev/kfd"), "gpu access", "there is no /dev/kfd", "dmesg"),
        (without("/dev/"), "gpu access", "no /dev/kfd and no /dev/dri/renderD*", "dmesg"),
        (
            {**without("/dev/"), "/.dockerenv": ""},
            "gpu access",
            "no /dev/kfd and no /dev/dri/renderD*",
            "start the container with `--device=/dev/kfd --device=/dev/dri`",
        ),
        (without("/opt"), "rocm", "no ROCm in /opt/rocm", "hip-runtime-amd"),
        (without("/opt/rocm/lib"), "rocm", "has no lib/libamdhip64.so", "same ROCm version"),
        (without(NODE), "gpus", "lists no GPU", "dmesg | grep -i kfd"),
        (
            {**WHOLE, **{f"{NODE}/{i}/properties": PROPERTIES.replace("90402", "110000") for i in (1, 2)}},
            "gpus",
            "2 x gfx1100 (304 CUs, 8 XCDs); the target mi300 runs gfx942",
            "use a machine with one",
        ),
        ({**WHOLE, "/proc/sys/kernel/numa_balancing": "1"}, "numa balancing", "times spread", "sysctl"),
        (
            {**WHOLE, "/run/.containerenv": "", "/proc/self/status": "Seccomp:\t2\n"},
            "container",
            "Podman filters system calls",
            "--security-opt seccomp=unconfined",
        ),
        (
            {**WHOLE, "/proc/1/cgroup": "0::/kubepods/x", "/proc/self/status": "Seccomp:\t2\n"},
            "container",
            "kubepods filters",
            "--security-opt",
        ),
    ],
)
def test_each_fault_says_what_to_do(
    tmp_path: Path, files: dict[str, str], name: str, detail: str, fix: str
) -> None:
    finding = found(machine(tmp_path, files))[name]
    assert finding.state == "limited"
    assert detail in finding.detail
    assert fix in finding.fix


@pytest.mark.parametrize(
    ("groups", "changes", "fix"),
    [
        (frozenset({GID + 1}), {}, "run `sudo usermod -aG render me`, then log out and in"),
        (
            frozenset({GID + 1}),
            {"/etc/group": f"render:x:{GID}:you,me\n"},
            "you were put into render since you logged in",
        ),
        (frozenset({GID + 1}), {"/etc/group": "root:x:4294967294:\n"}, f"groupadd -g {GID} render"),
        (
            frozenset({GID + 1}),
            {"/.dockerenv": ""},
            f"`--device=/dev/kfd --device=/dev/dri --group-add {GID}`",
        ),
    ],
)
def test_a_user_outside_the_group_learns_how_to_get_in(
    tmp_path: Path, groups: frozenset[int], changes: dict[str, str], fix: str
) -> None:
    one = replace(machine(tmp_path, {**WHOLE, **changes}), groups=groups)
    finding = found(one)["gpu access"]
    assert finding.detail == "user me may not open /dev/kfd, /dev/dri/renderD128"
    assert fix in finding.fix


def test_the_group_of_the_device_files_is_enough(tmp_path: Path) -> None:
    assert found(machine(tmp_path, WHOLE))["gpu access"].state == "ok"


def test_a_device_file_that_cannot_be_opened_is_the_containers_or_the_drivers_fault(tmp_path: Path) -> None:
    one = machine(tmp_path, {**without("/dev/kfd"), "/.dockerenv": ""})
    # Opening a folder for writing fails for everybody, as the device rules of a container do.
    (tmp_path / "dev/kfd").mkdir()
    (tmp_path / "dev/kfd").chmod(0o770)
    finding = found(one)["gpu access"]
    assert finding.state == "limited"
    assert "/dev/kfd cannot be opened" in finding.detail
    assert "the container's device rules forbid it" in finding.fix


@pytest.mark.parametrize(
    ("environment", "state"),
    [
        ({"ROCR_VISIBLE_DEVICES": ""}, "limited"),
        ({"HIP_VISIBLE_DEVICES": "-1"}, "limited"),
        ({"HIP_VISIBLE_DEVICES": "0,1"}, "ok"),
    ],
)
def test_variables_that_hide_devices_are_shown(
    tmp_path: Path, environment: dict[str, str], state: str
) -> None:
    finding = found(machine(tmp_path, WHOLE, **environment))["visible gpus"]
    assert finding.state == state
    assert next(iter(environment)) in finding.detail


def test_rocm_is_found_where_the_environment_says(tmp_path: Path) -> None:
    moved = {name.replace("/opt/rocm", "/apps/rocm"): text for name, text in WHOLE.items()}
    one = machine(tmp_path, moved)
    assert found(one)["rocm"].state == "limited"
    named = replace(one, environment={"ROCM_PATH": "/apps/rocm"})
    assert found(named)["rocm"].detail == "ROCm 6.3.1-48 in /apps/rocm"


def test_devices_are_told_apart_by_what_the_kernel_says_of_them(tmp_path: Path) -> None:
    aldebaran = PROPERTIES.replace("90402", "90010").replace("1216", "440").replace("num_xcc 8", "num_xcc 1")
    one = machine(tmp_path, {**WHOLE, f"{NODE}/10/properties": aldebaran})
    assert gpu_nodes(one) == [
        GpuNode("gfx942", 304, 8, 128), GpuNode("gfx942", 304, 8, 129), GpuNode("gfx90a", 110, 1, 128)
    ]  # fmt: skip


def test_damaged_files_of_the_kernel_are_no_crash(tmp_path: Path) -> None:
    one = machine(tmp_path, dict.fromkeys(WHOLE, "\x00garbage � 99999999999999999999"))
    assert all(isinstance(finding, Finding) for finding in inspect_gpus(one))


def test_this_machine_is_inspected_without_a_fault() -> None:
    assert inspect_gpus(this_machine())
    names = [finding.name for finding in inspect_machine()]
    assert names[:5] == ["python", "cpu compiler", "gfx942 compiler", "cage", "device"]


def test_the_runtime_and_its_cage_are_asked_where_there_is_one(rocm: FakeRocm) -> None:
    rocm.configure(devices=2)
    findings = {finding.name: finding for finding in inspect_machine()}
    assert findings["gpu runtime"].state == "ok"
    assert "2 x AMD Instinct MI300X (gfx942), " in findings["gpu runtime"].detail
    cage = findings["gpu cage"]
    assert (cage.state, cage.fix == "") in (("ok", True), ("limited", False))


@pytest.mark.parametrize(
    ("fault", "devices", "said"),
    [("fail hipInit 35", 1, "hipErrorInsufficientDriver"), ("", 0, "no device for this process")],
)
def test_a_runtime_that_finds_nothing_is_quoted(rocm: FakeRocm, fault: str, devices: int, said: str) -> None:
    rocm.configure(*[fault] if fault else [], devices=devices)
    findings = {finding.name: finding for finding in inspect_machine()}
    assert (findings["gpu runtime"].state, said in findings["gpu runtime"].detail) == ("limited", True)
    assert "gpu cage" not in findings
