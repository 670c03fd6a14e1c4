#!/bin/sh
# A compiler as ROCm installs it, for tests: it compiles like the one behind it, and puts the x86 build of the same
# source into the code object, as section .ks_fake_x86. @ROOT@ is the folder that plays ROCm.
set -eu
root=@ROOT@
zig=$root/zig

x86_build() {
  sed -e 's|ks/device_export.h|fake_export.h|g' \
    -e 's|^#include "kernel.hip"|#define __ks_lds__ KS_DYNAMIC_LDS\n#include "x86_kernel.hip"|' unit.cpp > x86_unit.cpp
  sed -E 's/extern([^;{}]*)__shared__/extern\1__ks_lds__/g' kernel.hip > x86_kernel.hip
  "$zig" clang @X86_FLAGS@ -isystem "$root/fake" -c x86_unit.cpp -o x86_unit.o
  # What is left undefined is dynamic LDS.
  missing=$("$zig" ld.lld @X86_LINK@ --no-demangle x86_unit.o "$root/fake/runtime.o" -o x86.elf 2>&1 |
    sed -n 's/.*undefined symbol: //p' | sort -u)
  # shellcheck disable=SC2086
  "$zig" ld.lld @X86_LINK@ $(for name in $missing; do echo "--defsym=$name=ks_dynamic_lds"; done) \
    x86_unit.o "$root/fake/runtime.o" -o x86.elf
  {
    if grep -qa 'ks_barrier\|ks_wave_barrier' x86_unit.o; then echo "fibers 1"; else echo "fibers 0"; fi
    sed -n -E '/^ks_entry_[0-9]+:/{N;s/ks_entry_([0-9]+):.*\n[[:space:]]*\.quad[[:space:]]+([A-Za-z0-9_.$]+).*/kernel \1 \2/p;}' unit.s
    echo image
    cat x86.elf
  } > x86.section
  { cat unit.s; printf '.section .ks_fake_x86,"",@progbits\n.incbin "x86.section"\n'; } > fake_unit.s
}

case "$*" in
  -print-resource-dir) echo "$root/resource" ;;
  *"-c unit.s -o unit.o")
    x86_build
    exec "$zig" clang -target "$2" "$3" -nogpulib -c fake_unit.s -o unit.o
    ;;
  *) exec "$zig" clang "$@" ;;
esac
