/* Gives up everything a kernel does not need, for good: each step returns 0 or an errno. */
#pragma once
#include <stddef.h>

/* No core dumps, no more memory than a stack of 8 MiB, no files, descriptors or processes; `cpu_seconds` of
   processor time. */
int limit_resources(unsigned cpu_seconds);

/* No gain of privileges by exec, and death with the thread that started this process. */
int drop_privileges(void);

/* No file system at all when `count` is 0; else only beneath `paths`: those with a true `writable` for
   writing too. ENOSYS or EOPNOTSUPP where the kernel has no landlock. */
int restrict_files(const char* const* paths, const int* writable, size_t count);

/* Only read(0), write(1), exit and sigreturn; any other system call raises SIGSYS and is not made. */
int restrict_syscalls(void);

/* For a compiler: all but sockets and calls that reach other processes. */
int refuse_syscalls(void);
