/* What the Python side, the worker program and a CPU code object agree on (C and C++).

   A code object is a static image at a fixed address. Its ELF entry point is no code but the address
   of a KsImage, through which the worker finds everything else. Field order and sizes are mirrored by
   worker_plan.py; KS_MAGIC changes with them. */
#pragma once

#define KS_MAGIC 0x6b73303031ul

#define KS_WAVE 64u                  /* lanes of a wave on CDNA */
#define KS_MAX_THREADS 1024u         /* threads of a block */
#define KS_DYNAMIC_LDS_BYTES 65536u  /* LDS of a compute unit */

/* One stack per fiber, KS_STACK_STRIDE apart; what lies between is no memory and catches overflows. */
#define KS_STACKS 0x60000000ul
#define KS_STACK_BYTES 0x10000ul
#define KS_GUARD_BYTES 0x2000ul
#define KS_STACK_STRIDE (KS_STACK_BYTES + KS_GUARD_BYTES)

typedef union {
  void* pointer;
  long long integer;
  double real;
} KsSlot; /* one kernel argument, converted to the parameter's own type by the generated trampoline */

typedef struct {
  void (*loop)(const KsSlot*);  /* runs every thread of the current block, in a plain loop */
  void (*fiber)(const KsSlot*); /* runs the current thread */
} KsKernel;

enum { KS_FIBERS = 1, KS_REVERSE = 2 };

typedef struct {
  unsigned kernel, flags;
  unsigned grid[3], block[3];
  unsigned long long dynamic_lds;
  const KsSlot* slots;
} KsLaunch;

typedef struct {
  unsigned long long magic;
  void (*run)(const KsLaunch*);
  void** libm; /* jump table, in the order of libm_names.h, for the worker to fill */
  unsigned long long libm_names;
} KsImage;

/* The plan: one read-only mapping at KS_PLAN that tells the worker what to map and what to run. */
#define KS_PLAN 0x50000000ul

typedef struct {
  unsigned long long address, bytes, offset;
  int fd, protection;
} KsMap; /* shared, except that the image is private; anonymous when `fd` is negative */

enum { KS_STEP_LAUNCH = 0, KS_STEP_FILL = 1 };

typedef struct {
  unsigned run, kind;
  KsLaunch launch;             /* KS_STEP_LAUNCH */
  unsigned long long target;   /* KS_STEP_FILL: repeats `pattern_bytes` of `pattern` over `bytes` at `target` */
  unsigned long long bytes, pattern;
  unsigned long long pattern_bytes;
} KsStep;

enum { KS_REQUIRE_SECCOMP = 1, KS_REQUIRE_LANDLOCK = 2 };

typedef struct {
  unsigned long long magic;
  int command_fd, reply_fd, control_fd, image_fd;
  int core; /* -1: do not pin */
  unsigned flags, fiber_stacks, cpu_seconds;
  const KsImage* image;
  unsigned long long map_count, step_count;
  const KsMap* maps;
  const KsStep* steps;
} KsPlan;

/* The control page: what the worker says about its own end. Evidence for people, never for a verdict. */
#define KS_CONTROL 0x5f000000ul
#define KS_CONTROL_BYTES 4096ul

enum { KS_STAGE_START, KS_STAGE_MAP, KS_STAGE_LANDLOCK, KS_STAGE_LIMITS, KS_STAGE_SECCOMP, KS_STAGE_READY, KS_STAGE_RUN };

/* An `error` beside the system's own numbers: dynamic LDS was written beyond what the launch asked for. */
#define KS_LDS_OVERRUN 10000u

typedef struct {
  unsigned stage, error;
  unsigned signal, code;
  unsigned long long address, instruction, stack;
  unsigned long long syscall;
  unsigned run, step;
  unsigned wrote, landlock, seccomp;
} KsControl;
