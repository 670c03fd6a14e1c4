/* The trusted program inside the cage: maps a code object and its buffers, locks itself up, says that it
   is ready, waits for "go", runs the plan, says that it is done, waits to be killed.

   Usage: worker PLAN_FD PLAN_BYTES             (started by worker.py; abi.h describes the plan)
          worker confine [-r PATH | -w PATH]... -- PROGRAM [ARGUMENT]...
                                                runs a program that may use only these paths (landlock)

   No instruction of the code object runs before "go". After it nothing in this process can be trusted, so
   what it says from then on is no evidence: the judge reads the buffers once the process is dead. */
#include "../../include/cpu/ks/abi.h"
#include "../libm_names.h"
#include "host.h"
#include "lockdown.h"

enum { COMMAND = 0, REPLY = 1 };
static const char READY = 'R', DONE = 'D';

#define KS_DECLARE(name) void name(void);
KS_LIBM_FLOAT(KS_DECLARE)
KS_LIBM_DOUBLE(KS_DECLARE)
void memmove(void);
void memcmp(void);

#define KS_ADDRESS(name) (void*)name,
static void* const libm[] = {KS_LIBM(KS_ADDRESS)};

static KsControl* const control = (KsControl*)KS_CONTROL;

static _Noreturn void fail(unsigned error) {
  control->error = error;
  _exit(70);
}

static void check(int error) {
  if (error) fail((unsigned)error);
}

static void* map(uint64_t address, uint64_t bytes, int protection, int flags, int fd, uint64_t offset) {
  void* const at = mmap((void*)address, bytes, protection, flags | MAP_FIXED, fd, (long)offset);
  if (at == (void*)-1) fail((unsigned)*__errno_location());
  return at;
}

struct action { void (*handler)(int, int*, uint64_t*); uint64_t flags; void (*restorer)(void); uint64_t mask; };
struct alternate { void* base; int flags; size_t bytes; };

/* `info` is a siginfo_t (code at 8, address or address of the call at 16, number of the call at 24);
   `context` a ucontext_t, whose general registers start at 40: rsp is number 15, rip 16, the page fault's error code 19. */
static void on_fault(int signal, int* info, uint64_t* context) {
  control->signal = (unsigned)signal;
  control->code = (unsigned)info[2];
  control->address = *(uint64_t*)(info + 4);
  control->syscall = (uint64_t)(uint32_t)info[6];
  control->wrote = context[5 + 19] >> 1 & 1;
  control->stack = context[5 + 15];
  control->instruction = context[5 + 16];
  _exit(71);
}

static void on_return(void) { _exit(71); }

static void catch_faults(void) {
  enum { SIGILL = 4, SIGTRAP = 5, SIGBUS = 7, SIGFPE = 8, SIGSEGV = 11, SIGSYS = 31 };
  enum { SA_SIGINFO = 4, SA_ONSTACK = 0x08000000, SA_RESTORER = 0x04000000 };
  static const int faults[] = {SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV, SIGSYS};
  static char stack[0x10000];
  const struct alternate alternate = {stack, 0, sizeof stack};
  /* The kernel insists on a restorer, though the handler never returns. */
  const struct action action = {on_fault, SA_SIGINFO | SA_ONSTACK | SA_RESTORER, on_return, 0};
  if (syscall(SYS_sigaltstack, &alternate, NULL)) fail((unsigned)*__errno_location());
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
    if (syscall(SYS_rt_sigaction, faults[i], &action, NULL, 8)) fail((unsigned)*__errno_location());
}

/* One mapping with a guard page below each stack. The page that every fiber uses is faulted in now, so that
   the first block does not pay for it. */
static void map_stacks(uint64_t count) {
  enum { MADV_GUARD_INSTALL = 102 /* Linux 6.13; much cheaper than a thousand changes of protection */ };
  if (count == 0) return;
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  map(KS_STACKS - KS_GUARD_BYTES, count * KS_STACK_STRIDE, PROT_READ | PROT_WRITE, flags, -1, 0);
  for (uint64_t i = 0; i < count; i++) {
    char* const stack = (char*)(KS_STACKS + i * KS_STACK_STRIDE);
    char* const guard = stack - KS_GUARD_BYTES;
    if (madvise(guard, KS_GUARD_BYTES, MADV_GUARD_INSTALL) && mprotect(guard, KS_GUARD_BYTES, 0)) {
      fail((unsigned)*__errno_location());
    }
    *(volatile char*)(stack + KS_STACK_BYTES - 1) = 0;
  }
}

static void map_everything(const KsPlan* plan) {
  for (uint64_t i = 0; i < plan->map_count; i++) {
    const KsMap* const m = &plan->maps[i];
    const int sharing = m->fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : m->fd == plan->image_fd ? MAP_PRIVATE : MAP_SHARED;
    map(m->address, m->bytes, m->protection, sharing | MAP_POPULATE, m->fd, m->offset);
  }
  map_stacks(plan->fiber_stacks);
}

static void pin(int core) {
  uint64_t mask[16] = {0};
  if (core < 0 || core >= 1024) return;
  mask[core / 64] = 1ul << core % 64;
  if (sched_setaffinity(0, sizeof mask, mask)) fail((unsigned)*__errno_location());
}

static void lock_up(const KsPlan* plan) {
  check(drop_privileges());
  control->stage = KS_STAGE_LANDLOCK;
  const int no_landlock = restrict_files(NULL, NULL, 0);
  if (no_landlock && plan->flags & KS_REQUIRE_LANDLOCK) fail((unsigned)no_landlock);
  control->landlock = !no_landlock;
  control->stage = KS_STAGE_LIMITS;
  check(limit_resources(plan->cpu_seconds));
  control->stage = KS_STAGE_SECCOMP;
  const int no_seccomp = restrict_syscalls();
  if (no_seccomp && plan->flags & KS_REQUIRE_SECCOMP) fail((unsigned)no_seccomp);
  control->seccomp = !no_seccomp;
}

static void fill(const KsStep* step) {
  unsigned char* const target = (unsigned char*)step->target;
  const unsigned char* const pattern = (const unsigned char*)&step->pattern;
  if (step->pattern_bytes == 1) memset(target, pattern[0], step->bytes);
  else
    for (uint64_t at = 0; at + step->pattern_bytes <= step->bytes; at += step->pattern_bytes)
      memcpy(target + at, pattern, step->pattern_bytes);
}

static void run(const KsPlan* plan) {
  void (*const launch)(const KsLaunch*) = plan->image->run;
  for (uint64_t i = 0; i < plan->step_count; i++) {
    const KsStep* const step = &plan->steps[i];
    control->run = step->run;
    control->step = (unsigned)i;
    if (step->kind == KS_STEP_FILL) fill(step);
    else launch(&step->launch);
  }
}

static uint64_t number(const char* text) {
  uint64_t value = 0;
  for (; *text >= '0' && *text <= '9'; text++) value = value * 10 + (uint64_t)(*text - '0');
  return value;
}

static void await_command(void) {
  char command;
  if (read(COMMAND, &command, 1) != 1) _exit(0); /* the judge is gone */
}

static int work(const char* plan_fd, const char* plan_bytes) {
  const int fd = (int)number(plan_fd);
  if (mmap((void*)KS_PLAN, number(plan_bytes), PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) == (void*)-1) return 72;
  const KsPlan* const plan = (const KsPlan*)KS_PLAN;
  if (plan->magic != KS_MAGIC) return 73;
  if (mmap((void*)KS_CONTROL, KS_CONTROL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, plan->control_fd, 0) ==
      (void*)-1)
    return 74;
  control->stage = KS_STAGE_MAP;
  map_everything(plan);
  const KsImage* const image = plan->image;
  if (image->magic != KS_MAGIC || image->libm_names != sizeof libm / sizeof *libm) fail(0);
  memcpy(image->libm, libm, sizeof libm);
  pin(plan->core);
  if (dup2(plan->command_fd, COMMAND) < 0 || dup2(plan->reply_fd, REPLY) < 0) fail((unsigned)*__errno_location());
  if (syscall(SYS_close_range, 2, ~0u, 0)) /* Linux 5.9 */
    for (int other = 2; other < 4096; other++) close(other);
  catch_faults();
  lock_up(plan);
  control->stage = KS_STAGE_READY;
  write(REPLY, &READY, 1);
  await_command();
  control->stage = KS_STAGE_RUN;
  run(plan);
  write(REPLY, &DONE, 1);
  await_command();
  return 0;
}

static int confine(int argc, char** argv) {
  enum { MOST = 256 };
  const char* paths[MOST];
  int writable[MOST], i = 2;
  size_t count = 0;
  for (; i + 1 < argc && argv[i][0] == '-' && argv[i][1] != '-' && count < MOST; i += 2, count++) {
    paths[count] = argv[i + 1];
    writable[count] = argv[i][1] == 'w';
  }
  if (i + 1 >= argc || argv[i][0] != '-' || argv[i][1] != '-') return 64;
  if (drop_privileges() || restrict_files(paths, writable, count) || refuse_syscalls()) return 71;
  execv(argv[i + 1], argv + i + 1);
  return 127;
}

static int worker_main(int argc, char** argv) {
  if (argc == 3) return work(argv[1], argv[2]);
  return argc > 3 ? confine(argc, argv) : 64;
}

int __libc_start_main(int (*entry)(int, char**), int argc, char** argv, void (*init)(void), void (*fini)(void),
                      void (*loader_fini)(void), void* stack_end);

__attribute__((used)) _Noreturn static void start(long* stack, void (*loader_fini)(void)) {
  __libc_start_main(worker_main, (int)stack[0], (char**)(stack + 1), NULL, NULL, loader_fini, stack);
  __builtin_unreachable();
}

__asm__(".globl _start\n_start: xorl %ebp, %ebp\n movq %rsp, %rdi\n movq %rdx, %rsi\n andq $-16, %rsp\n call start\n");
