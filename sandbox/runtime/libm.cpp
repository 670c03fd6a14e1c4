// The C library functions a kernel may call, as jumps through a table that the worker program fills.
#include "libm_names.h"

extern "C" {
void* ks_libm[KS_LIBM_NAMES];
}

// `.set` counts the entries while the assembler reads them, so the order is the list's own.
#define KS_JUMP(name)                                                                      \
  asm(".pushsection .text." #name ",\"ax\",@progbits\n"                                    \
      ".globl " #name "\n.type " #name ",@function\n" #name ": jmp *ks_libm+ks_slot(%rip)\n" \
      ".size " #name ", .-" #name "\n.popsection\n.set ks_slot, ks_slot+8\n");
asm(".set ks_slot, 0");
KS_LIBM(KS_JUMP)
