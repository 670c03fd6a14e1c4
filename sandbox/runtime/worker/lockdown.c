#include "lockdown.h"
#include "host.h"

static int failure(void) { return *__errno_location(); }

struct limit { uint64_t soft, hard; };

static int limit(int resource, uint64_t value) {
  const struct limit both = {value, value};
  return setrlimit(resource, &both) ? failure() : 0;
}

int limit_resources(unsigned cpu_seconds) {
  enum { CPU = 0, FSIZE = 1, DATA = 2, STACK = 3, CORE = 4, NPROC = 6, NOFILE = 7, MEMLOCK = 8, MSGQUEUE = 12 };
  static const int none[] = {FSIZE, DATA, CORE, NPROC, NOFILE, MEMLOCK, MSGQUEUE};
  for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
    const int error = limit(none[i], 0);
    if (error) return error;
  }
  const int error = limit(STACK, 8 << 20);
  return error ? error : limit(CPU, cpu_seconds);
}

int drop_privileges(void) {
  enum { PR_SET_PDEATHSIG = 1, PR_SET_DUMPABLE = 4, PR_SET_NO_NEW_PRIVS = 38, SIGKILL = 9 };
  if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)) return failure();
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)) return failure();
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? failure() : 0;
}

/* Structures and numbers from include/uapi/linux/landlock.h. */

struct ruleset { uint64_t files, net, scoped; };
struct __attribute__((packed)) beneath { uint64_t access; int32_t fd; };

enum { READ_ACCESS = 1 << 0 | 1 << 2 | 1 << 3 /* execute, read file, read folder */ };

static int allow_path(int ruleset, const char* path, uint64_t access, uint64_t handled) {
  enum { RULE_PATH_BENEATH = 1, FILE_ACCESS = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 14 | 1 << 15, ENOENT = 2, EINVAL = 22 };
  struct beneath rule = {access & handled, open(path, O_PATH | O_CLOEXEC)};
  if (rule.fd < 0) return failure() == ENOENT ? 0 : failure();
  if (syscall(SYS_landlock_add_rule, ruleset, RULE_PATH_BENEATH, &rule, 0) == 0) return 0;
  if (failure() != EINVAL) return failure();
  rule.access &= FILE_ACCESS; /* the path is a file: rights about folders are refused */
  return syscall(SYS_landlock_add_rule, ruleset, RULE_PATH_BENEATH, &rule, 0) ? failure() : 0;
}

int restrict_files(const char* const* paths, const int* writable, size_t count) {
  enum { VERSION_FLAG = 1 };
  const long version = syscall(SYS_landlock_create_ruleset, NULL, 0, VERSION_FLAG);
  if (version < 1) return failure();
  struct ruleset rules = {(1ul << 13) - 1, 0, 0};
  size_t bytes = 8;
  if (version >= 2) rules.files |= 1ul << 13;             /* link or rename across folders */
  if (version >= 3) rules.files |= 1ul << 14;             /* truncate */
  if (version >= 5) rules.files |= 1ul << 15;             /* ioctl on devices */
  if (version >= 4) rules.net = 3, bytes = 16;            /* bind and connect TCP */
  if (version >= 6) rules.scoped = 3, bytes = 24;         /* abstract sockets, signals to the outside */
  const int ruleset = (int)syscall(SYS_landlock_create_ruleset, &rules, bytes, 0);
  if (ruleset < 0) return failure();
  for (size_t i = 0; i < count; i++) {
    const int error = allow_path(ruleset, paths[i], writable[i] ? ~0ul : READ_ACCESS, rules.files);
    if (error) return error;
  }
  return syscall(SYS_landlock_restrict_self, ruleset, 0) ? failure() : 0;
}

/* Structures and numbers from include/uapi/linux/{seccomp,filter,audit}.h. */

struct instruction { uint16_t code; uint8_t if_true, if_false; uint32_t operand; };
struct program { uint16_t length; const struct instruction* instructions; };

enum { LOAD = 0x20 /* BPF_LD|BPF_W|BPF_ABS */, EQUAL = 0x15 /* BPF_JMP|BPF_JEQ|BPF_K */, RETURN = 0x06 /* BPF_RET|BPF_K */ };
enum { AT_NUMBER = 0, AT_ARCH = 4, AT_ARGUMENT_0 = 16 /* low half; the high half follows */ };
#define AUDIT_ARCH_X86_64 0xc000003eu
#define ALLOW 0x7fff0000u
#define TRAP 0x00030000u
#define KILL_PROCESS 0x80000000u

/* A call is allowed if its number is one of four and, for read and write, its descriptor the right one.
   The numbers of the x32 ABI have bit 30 set and match none. */
static const struct instruction filter[] = {
    {LOAD, 0, 0, AT_ARCH},
    {EQUAL, 1, 0, AUDIT_ARCH_X86_64},
    {RETURN, 0, 0, KILL_PROCESS},
    {LOAD, 0, 0, AT_NUMBER},
    {EQUAL, 5, 0, SYS_read},         /* -> 10 */
    {EQUAL, 6, 0, SYS_write},        /* -> 12 */
    {EQUAL, 8, 0, SYS_rt_sigreturn}, /* -> 15 */
    {EQUAL, 7, 0, SYS_exit_group},   /* -> 15 */
    {EQUAL, 6, 0, SYS_exit},         /* -> 15 */
    {RETURN, 0, 0, TRAP},
    {LOAD, 0, 0, AT_ARGUMENT_0}, /* 10: read */
    {EQUAL, 3, 2, 0},            /* -> 15 or 14 */
    {LOAD, 0, 0, AT_ARGUMENT_0}, /* 12: write */
    {EQUAL, 1, 0, 1},            /* -> 15 or 14 */
    {RETURN, 0, 0, TRAP},        /* 14 */
    {RETURN, 0, 0, ALLOW},       /* 15 */
};

static int apply(const struct instruction* instructions, size_t count) {
  enum { PR_SET_SECCOMP = 22, MODE_FILTER = 2 };
  const struct program program = {(uint16_t)count, instructions};
  return prctl(PR_SET_SECCOMP, MODE_FILTER, &program, 0, 0) ? failure() : 0;
}

int restrict_syscalls(void) { return apply(filter, sizeof filter / sizeof *filter); }

/* What landlock leaves open to a compiler: sockets, other processes, and the kernel's less usual doors. */
static const uint16_t refused[] = {
    41 /* socket */, 53 /* socketpair */, 62 /* kill */, 101 /* ptrace */, 129 /* rt_sigqueueinfo */, 141 /* setpriority */,
    144 /* sched_setscheduler */, 200 /* tkill */, 203 /* sched_setaffinity */, 234 /* tgkill */, 248 /* add_key */,
    250 /* keyctl */, 272 /* unshare */, 298 /* perf_event_open */, 310 /* process_vm_readv */, 311 /* process_vm_writev */,
    314 /* sched_setattr */, 321 /* bpf */, 323 /* userfaultfd */, 424 /* pidfd_send_signal */, 425 /* io_uring_setup */,
    438 /* pidfd_getfd */,
};

int refuse_syscalls(void) {
  enum { COUNT = sizeof refused / sizeof *refused, EPERM = 1, AT_LEAST = 0x35 /* BPF_JMP|BPF_JGE|BPF_K */ };
  struct instruction program[COUNT + 8] = {
      {LOAD, 0, 0, AT_ARCH}, {EQUAL, 1, 0, AUDIT_ARCH_X86_64}, {RETURN, 0, 0, KILL_PROCESS}, {LOAD, 0, 0, AT_NUMBER}};
  size_t n = 4;
  program[n++] = (struct instruction){AT_LEAST, COUNT + 1, 0, 0x40000000u}; /* the x32 ABI */
  for (size_t i = 0; i < COUNT; i++) program[n++] = (struct instruction){EQUAL, (uint8_t)(COUNT - i), 0, refused[i]};
  program[n++] = (struct instruction){RETURN, 0, 0, ALLOW};
  program[n++] = (struct instruction){RETURN, 0, 0, 0x00050000u | EPERM}; /* SECCOMP_RET_ERRNO */
  return apply(program, n);
}
