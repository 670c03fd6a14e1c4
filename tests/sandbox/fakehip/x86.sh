# Sourced by the test's compilers: the x86 build of a unit, as the section that travels in its code object.
# shellcheck shell=sh
zig=$root/zig

# x86_object SOURCE OBJECT [OPTION...]: compile for the CPU device; the options come first
x86_object() {
  source=$1 object=$2
  shift 2
  "$zig" clang "$@" -isystem "$root/fake" @X86_FLAGS@ -c "$source" -o "$object"
}

# x86_section OBJECT SECTION: link the image; kernels, as "kernel NUMBER SYMBOL" lines, come from stdin
x86_section() {
  # What is left undefined is dynamic LDS.
  missing=$("$zig" ld.lld @X86_LINK@ --no-demangle "$1" "$root/fake/runtime.o" -o "$1.elf" 2>&1 |
    sed -n 's/.*undefined symbol: //p' | sort -u)
  # shellcheck disable=SC2046
  "$zig" ld.lld @X86_LINK@ $(for name in $missing; do echo "--defsym=$name=ks_dynamic_lds"; done) \
    "$1" "$root/fake/runtime.o" -o "$1.elf"
  {
    if grep -qa 'ks_barrier\|ks_wave_barrier' "$1"; then echo "fibers 1"; else echo "fibers 0"; fi
    cat
    echo image
    cat "$1.elf"
  } > "$2"
}

# On the CPU `__shared__` is `static`, which dynamic LDS cannot be.
x86_dynamic_lds() {
  sed -E 's/extern([^;{}]*)__shared__/extern\1__ks_lds__/g' "$1"
}
