#!/bin/sh
# hipcc for tests: hipcc [OPTION...] --offload-arch=ARCH FILE -o PROGRAM. The file is compiled three times: for the GPU,
# for the CPU device (whose build the code object carries along), and for this machine's processor, where launches go
# through the runtime library as in every HIP program. Other HIP headers than its own can be given with -isystem.
set -eu
root=@ROOT@
. "$root/fake/x86.sh"

arch='' file='' program='' options='' own=1
while [ $# -gt 0 ]; do
  case $1 in
    --offload-arch=*) arch=${1#*=} ;;
    -o) program=$2; shift ;;
    -isystem | -include) own=''; options="$options $1 $2"; shift ;;
    -*) options="$options $1" ;;
    *) file=$1 ;;
  esac
  shift
done
work=$program.parts
mkdir -p "$work"
# The C++ library's headers come before clang's own, which come before those of C.
system=$(g++ -v -E -x c++ /dev/null 2>&1 | sed -n '/^#include <\.\.\.>/,/^End of search/s/^ //p' | grep -v /gcc/)
cxx=$(echo "$system" | grep 'c++' | sed 's/^/-isystem /')
rest=$(echo "$system" | grep -v 'c++' | sed 's/^/-isystem /')
[ -z "$own" ] || options="$options -nostdinc -nostdinc++ @DEVICE_HEADERS@ $cxx @CLANG_HEADERS@ $rest"
hip="-x hip -target x86_64-unknown-linux-gnu --offload-arch=$arch -nogpulib -nogpuinc -fdeclspec $options"

# shellcheck disable=SC2086
{
  "$zig" clang $hip --cuda-device-only -S "$file" -o "$work/device.s"
  "$zig" clang $hip --cuda-host-only -c "$file" -o "$work/host.o"
}

# Every kernel of the GPU's build by its linker name, and as what the C++ of the CPU's build knows it by.
sed -n 's/^[[:space:]]*\.amdhsa_kernel //p' "$work/device.s" > "$work/symbols"
c++filt < "$work/symbols" | sed -E 's/^void //; s/\([^()]*\)$//' > "$work/names"
# A file may include itself, so its copy keeps the name.
copy=$work/x86/${file##*/}
mkdir -p "$work/x86"
x86_dynamic_lds "$file" > "$copy"
{
  echo '#define __ks_lds__ KS_DYNAMIC_LDS'
  echo "#include \"x86/${file##*/}\""
  echo '#include <fake_export.h>'
  awk '{ printf "KS_EXPORT(%d, (%s))\n", NR - 1, $0 }' "$work/names"
} > "$work/x86_unit.cpp"
# shellcheck disable=SC2086
x86_object "$work/x86_unit.cpp" "$work/x86_unit.o" -Wno-pass-failed @HOST_HEADERS@ @CPU_HEADERS@ $cxx @CLANG_HEADERS@ $rest
awk '{ printf "kernel %d %s\n", NR - 1, $0 }' "$work/symbols" | x86_section "$work/x86_unit.o" "$work/x86.section"

printf '.section .ks_fake_x86,"",@progbits\n.incbin "%s"\n' "$work/x86.section" >> "$work/device.s"
"$zig" clang -target amdgcn-amd-amdhsa "-mcpu=$arch" -c "$work/device.s" -o "$work/device.o"
# ROCm's headers call its device libraries, which are not here.
[ -n "$own" ] && link='-shared --no-undefined' || link=-r
# shellcheck disable=SC2086
"$zig" ld.lld $link "$work/device.o" -o "$work/device.co"

# The fat binary, under the name that the host's part refers to it by; the bundle's format is clang's.
fatbin=$(nm -u "$work/host.o" | sed -n 's/.* \(__hip_fatbin_[0-9a-f]*\)$/\1/p')
cat > "$work/fatbin.s" << END
.section .hip_fatbin,"a",@progbits
.globl $fatbin
.balign 4096
$fatbin:
bundle:
.ascii "__CLANG_OFFLOAD_BUNDLE__"
.quad 2
.quad device - bundle, 0, host_end - host_start
host_start: .ascii "host-x86_64-unknown-linux-gnu-"
host_end:
.quad device - bundle, device_end - device, name_end - name_start
name_start: .ascii "hipv4-amdgcn-amd-amdhsa--$arch"
name_end:
.balign 4096
device: .incbin "$work/device.co"
device_end:
.section .note.GNU-stack,"",@progbits
END
"$zig" clang -target x86_64-unknown-linux-gnu -c "$work/fatbin.s" -o "$work/fatbin.o"
exec g++ "$work/host.o" "$work/fatbin.o" "-L$root/lib" -lamdhip64 "-Wl,-rpath,$root/lib" -o "$program"
