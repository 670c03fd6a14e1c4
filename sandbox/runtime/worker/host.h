/* The few declarations of the host's C library and kernel that the worker program uses.
   Written out so that it builds with any clang and no system headers. x86-64 Linux. */
#pragma once
#include <stddef.h>
#include <stdint.h>

void* mmap(void* address, size_t bytes, int protection, int flags, int fd, long offset);
int madvise(void* address, size_t bytes, int advice);
int mprotect(void* address, size_t bytes, int protection);
void* memcpy(void* to, const void* from, size_t bytes);
void* memset(void* to, int value, size_t bytes);
long read(int fd, void* to, size_t bytes);
long write(int fd, const void* from, size_t bytes);
int dup2(int from, int to);
int close(int fd);
int open(const char* path, int flags, ...);
int prctl(int option, ...);
long syscall(long number, ...);
int setrlimit(int resource, const void* limit);
int sched_setaffinity(int pid, size_t bytes, const void* mask);
int execv(const char* path, char* const argv[]);
int* __errno_location(void);
_Noreturn void _exit(int status);

enum { PROT_READ = 1, PROT_WRITE = 2 };
enum { MAP_SHARED = 1, MAP_PRIVATE = 2, MAP_FIXED = 0x10, MAP_ANONYMOUS = 0x20, MAP_NORESERVE = 0x4000, MAP_POPULATE = 0x8000 };
enum { O_PATH = 0x200000, O_CLOEXEC = 0x80000 };
enum {
  SYS_read = 0, SYS_write = 1, SYS_rt_sigaction = 13, SYS_rt_sigreturn = 15, SYS_exit = 60, SYS_sigaltstack = 131,
  SYS_exit_group = 231, SYS_close_range = 436, SYS_landlock_create_ruleset = 444, SYS_landlock_add_rule = 445,
  SYS_landlock_restrict_self = 446
};
