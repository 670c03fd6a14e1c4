#!/bin/sh
# A compiler as ROCm installs it, for tests: it compiles like the one behind it, and puts the x86 build of the same
# source into the code object, as section .ks_fake_x86. @ROOT@ is the folder that plays ROCm.
set -eu
root=@ROOT@
. "$root/fake/x86.sh"

x86_build() {
  sed -e 's|ks/device_export.h|fake_export.h|g' \
    -e 's|^#include "kernel.hip"|#define __ks_lds__ KS_DYNAMIC_LDS\n#include "x86_kernel.hip"|' unit.cpp > x86_unit.cpp
  x86_dynamic_lds kernel.hip > x86_kernel.hip
  x86_object x86_unit.cpp x86_unit.o
  sed -n -E '/^ks_entry_[0-9]+:/{N;s/ks_entry_([0-9]+):.*\n[[:space:]]*\.quad[[:space:]]+([A-Za-z0-9_.$]+).*/kernel \1 \2/p;}' unit.s |
    x86_section x86_unit.o x86.section
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
