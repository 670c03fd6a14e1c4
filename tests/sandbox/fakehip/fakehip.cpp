// libamdhip64 as a test sees it: the calls that the device worker makes, with their C names and types, on devices
// that run the x86 build of a kernel which a test's compiler has put into the code object.
//
// Beside the library lie
//   fakehip.conf   what the devices are and which faults they have, a "key value" a line; read at hipInit
//   fakehip.log    a FIFO: who reads it gets one line a call, "PID CALL ARGUMENTS -> CODE", and one "PID misuse ..."
//                  for every call that a real runtime need not accept
//   device-N.busy  locked by the process that uses device N, so that a second one is found out
//
// Faults:  fail CALL CODE [SKIP]   the call returns CODE, after SKIP times when it works
//          slow CALL MILLISECONDS  hang CALL [SKIP]  die CALL [SKIP]
//          lose CALL [SKIP]        from this call on every call returns hipErrorNoDevice
//          event_factor F          events say F times what passed between them
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "../../../sandbox/include/cpu/ks/abi.h"
#include "../../../sandbox/runtime/libm_names.h"

extern "C" {
#define KS_DECLARE(name) void ks_host_##name(void) __asm__(#name);
KS_LIBM(KS_DECLARE)
}

namespace {

enum : int {
  Success = 0, InvalidValue = 1, OutOfMemory = 2, NotInitialized = 3, InvalidConfiguration = 9,
  InvalidDevicePointer = 17, InvalidMemcpyDirection = 21, NoDevice = 100, InvalidDevice = 101,
  InvalidImage = 200, NoBinaryForGpu = 209, InvalidHandle = 400, NotFound = 500, NotReady = 600,
  IllegalAddress = 700, LaunchOutOfResources = 701, LaunchFailure = 719, Unknown = 999,
};

struct Name { int code; const char *name, *text; };
const Name kNames[] = {
    {0, "hipSuccess", "no error"}, {1, "hipErrorInvalidValue", "invalid argument"},
    {2, "hipErrorOutOfMemory", "out of memory"}, {3, "hipErrorNotInitialized", "initialization error"},
    {4, "hipErrorDeinitialized", "driver shutting down"},
    {9, "hipErrorInvalidConfiguration", "invalid configuration argument"},
    {17, "hipErrorInvalidDevicePointer", "invalid device pointer"},
    {35, "hipErrorInsufficientDriver", "driver version is insufficient for runtime version"},
    {98, "hipErrorInvalidDeviceFunction", "invalid device function"},
    {100, "hipErrorNoDevice", "no ROCm-capable device is detected"},
    {101, "hipErrorInvalidDevice", "invalid device ordinal"},
    {200, "hipErrorInvalidImage", "device kernel image is invalid"},
    {201, "hipErrorInvalidContext", "invalid device context"},
    {209, "hipErrorNoBinaryForGpu", "no kernel image is available for execution on the device"},
    {214, "hipErrorECCNotCorrectable", "uncorrectable ECC error encountered"},
    {218, "hipErrorInvalidKernelFile", "invalid kernel file"},
    {302, "hipErrorSharedObjectSymbolNotFound", "shared object symbol not found"},
    {303, "hipErrorSharedObjectInitFailed", "shared object initialization failed"},
    {304, "hipErrorOperatingSystem", "OS call failed or operation not supported on this OS"},
    {400, "hipErrorInvalidHandle", "invalid resource handle"},
    {401, "hipErrorIllegalState", "the operation cannot be performed in the present state"},
    {500, "hipErrorNotFound", "named symbol not found"},
    {600, "hipErrorNotReady", "device not ready"},
    {700, "hipErrorIllegalAddress", "an illegal memory access was encountered"},
    {701, "hipErrorLaunchOutOfResources", "too many resources requested for launch"},
    {702, "hipErrorLaunchTimeOut", "the launch timed out and was terminated"},
    {710, "hipErrorAssert", "device-side assert triggered"},
    {719, "hipErrorLaunchFailure", "unspecified launch failure"},
    {801, "hipErrorNotSupported", "operation not supported"},
    {999, "hipErrorUnknown", "unknown error"},
    {1052, "hipErrorRuntimeMemory", "runtime memory call returned error"},
    {1053, "hipErrorRuntimeOther", "runtime call other than memory returned error"},
};

// ---- what is configured, and what is said ----

struct Fault { char kind[8], call[48]; long value, skip; };

struct Conf {
  int devices = 1, compute_units = 304, xcds = 8, l2_bytes = 4 << 20, clock_khz = 2100000, memory_clock_khz = 1300000;
  int bus_bits = 8192, lds_bytes = 65536, version = 70051831;
  char arch[64] = "gfx942:sramecc+:xnack-", name[128] = "AMD Instinct MI300X";
  size_t memory = 205822885888;  // of an MI300X: 191.7 GiB
  double event_factor = 1;
  Fault faults[16];
  int fault_count = 0;
} conf;

char folder[3072];
int log_fd = -1;
bool inited, lost;
int chosen = -1, busy_fd = -1, last_error;
unsigned shown[16], shown_count;

void say(const char* format, ...) {
  if (log_fd < 0) return;
  char line[1024];
  int at = snprintf(line, sizeof line, "%d ", int(getpid()));
  va_list values;
  va_start(values, format);
  at += vsnprintf(line + at, sizeof line - size_t(at) - 1, format, values);
  va_end(values);
  if (at > int(sizeof line) - 2) at = int(sizeof line) - 2;
  line[at++] = '\n';
  if (write(log_fd, line, size_t(at)) < 0) log_fd = -1;
}

void path_of(char* out, size_t size, const char* name) { snprintf(out, size, "%s/%s", folder, name); }

void read_conf() {
  char path[4096], line[512];
  path_of(path, sizeof path, "fakehip.conf");
  FILE* const file = fopen(path, "r");
  if (!file) return;
  conf.fault_count = 0;
  while (fgets(line, sizeof line, file)) {
    char key[32] = "", rest[256] = "";
    if (sscanf(line, "%31s %255[^\n]", key, rest) < 1) continue;
    const struct { const char* key; int* value; } numbers[] = {
        {"devices", &conf.devices}, {"compute_units", &conf.compute_units}, {"xcds", &conf.xcds},
        {"l2_bytes", &conf.l2_bytes}, {"clock_khz", &conf.clock_khz}, {"lds_bytes", &conf.lds_bytes},
        {"memory_clock_khz", &conf.memory_clock_khz}, {"bus_bits", &conf.bus_bits}, {"version", &conf.version}};
    for (const auto& number : numbers)
      if (!strcmp(key, number.key)) *number.value = atoi(rest);
    if (!strcmp(key, "arch")) snprintf(conf.arch, sizeof conf.arch, "%.60s", rest);
    if (!strcmp(key, "name")) snprintf(conf.name, sizeof conf.name, "%.120s", rest[0] == '-' ? "" : rest);
    if (!strcmp(key, "memory")) conf.memory = strtoull(rest, nullptr, 10);
    if (!strcmp(key, "event_factor")) conf.event_factor = atof(rest);
    Fault fault = {};
    snprintf(fault.kind, sizeof fault.kind, "%.7s", key);
    if (!strcmp(key, "fail") || !strcmp(key, "slow")) {
      if (sscanf(rest, "%47s %ld %ld", fault.call, &fault.value, &fault.skip) < 2) continue;
    } else if (!strcmp(key, "hang") || !strcmp(key, "die") || !strcmp(key, "lose")) {
      if (sscanf(rest, "%47s %ld", fault.call, &fault.skip) < 1) continue;
    } else {
      continue;
    }
    if (conf.fault_count < 16) conf.faults[conf.fault_count++] = fault;
  }
  fclose(file);
}

void show_devices() {
  unsigned all = unsigned(conf.devices);
  for (unsigned i = 0; i < all && i < 16; i++) shown[i] = i;
  shown_count = all;
  const char* const variables[] = {"ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"};
  for (const char* variable : variables) {
    const char* at = getenv(variable);
    if (!at || !*at) continue;
    unsigned kept[16], count = 0;
    for (; *at; at++) {
      const unsigned index = unsigned(strtoul(at, const_cast<char**>(&at), 10));
      if (index >= shown_count || count == 16) break;
      kept[count++] = shown[index];
      if (*at != ',') break;
    }
    memcpy(shown, kept, sizeof shown);
    shown_count = count;
  }
}

// What a configured fault makes of this call: a code, or Success to go on.
int fault_of(const char* call) {
  if (lost) return NoDevice;
  for (int i = 0; i < conf.fault_count; i++) {
    Fault& fault = conf.faults[i];
    if (strcmp(fault.call, call) || fault.skip-- > 0) continue;
    if (!strcmp(fault.kind, "fail")) return int(fault.value);
    if (!strcmp(fault.kind, "slow")) usleep(unsigned(fault.value) * 1000);
    if (!strcmp(fault.kind, "die")) abort();
    if (!strcmp(fault.kind, "hang"))
      for (;;) pause();
    if (!strcmp(fault.kind, "lose")) {
      lost = true;
      return NoDevice;
    }
  }
  return Success;
}

int done(const char* call, int code, const char* format = "", ...) {
  char text[512];
  va_list values;
  va_start(values, format);
  vsnprintf(text, sizeof text, format, values);
  va_end(values);
  say("%s%s%s -> %d", call, *text ? " " : "", text, code);
  if (code) last_error = code;
  return code;
}

int misuse(const char* call, int code, const char* what) {
  say("misuse %s: %s", call, what);
  return done(call, code);
}

#define BEGIN(name)                                                         \
  static const char* const call = #name;                                    \
  if (const int injected = fault_of(call)) return done(call, injected);     \
  if (!inited) return misuse(call, NotInitialized, "before hipInit");
#define BEGIN_ON_DEVICE(name) \
  BEGIN(name)                 \
  if (chosen < 0) return misuse(call, InvalidDevice, "before hipSetDevice");

// ---- memory ----

struct Block { char* base; size_t bytes, mapped; };
enum { kBlocks = 512, kPage = 4096, kGap = 16 << 20 };
Block blocks[kBlocks];
uintptr_t next_address = 0x200000000000;
// As large as nothing but what flushes a cache: it is never read, so it is not written either.
const size_t kNeverRead = 128u << 20;

Block* block_of(const void* pointer, size_t bytes) {
  const char* const at = static_cast<const char*>(pointer);
  for (Block& block : blocks)
    if (block.base && at >= block.base && at + bytes <= block.base + block.bytes) return &block;
  return nullptr;
}

// ---- modules ----

struct Kernel { char symbol[400]; unsigned number; const unsigned* segment; };
struct Module {
  bool live;
  unsigned fibers, kernel_count;
  Kernel kernels[64];
  const KsImage* image;
  struct { void* at; size_t bytes; } mapped[16];
  unsigned mapped_count;
};
Module module_;  // the image has a fixed address, so there is one at a time

void* const kLibm[] = {
#define KS_HOST(name) (void*)ks_host_##name,
    KS_LIBM(KS_HOST)};

struct Elf {
  const char* data;
  uint64_t program_table() const { return read<uint64_t>(32); }
  uint64_t section_table() const { return read<uint64_t>(40); }
  unsigned flags() const { return read<uint32_t>(48); }
  unsigned programs() const { return read<uint16_t>(56); }
  unsigned sections() const { return read<uint16_t>(60); }
  template <class T> T read(uint64_t at) const {
    T value;
    memcpy(&value, data + at, sizeof value);
    return value;
  }
  uint64_t section(unsigned index) const { return section_table() + 64ul * index; }
  // Offset of a section's contents by its name, and their size.
  const char* find(const char* name, uint64_t* bytes) const {
    const uint64_t strings = read<uint64_t>(section(read<uint16_t>(62)) + 24);
    for (unsigned i = 0; i < sections(); i++) {
      if (strcmp(data + strings + read<uint32_t>(section(i)), name)) continue;
      *bytes = read<uint64_t>(section(i) + 32);
      return data + read<uint64_t>(section(i) + 24);
    }
    return nullptr;
  }
  uint64_t symbol(const char* name) const {
    uint64_t table_bytes = 0, unused;
    const char* const table = find(".symtab", &table_bytes);
    const char* const names = find(".strtab", &unused);
    for (uint64_t at = 0; table && at < table_bytes; at += 24) {
      uint32_t name_at;
      memcpy(&name_at, table + at, 4);
      if (strcmp(names + name_at, name)) continue;
      uint64_t value;
      memcpy(&value, table + at + 8, 8);
      return value;
    }
    return 0;
  }
};

unsigned machine_of(const char* arch) {
  const struct { const char* name; unsigned mach; } known[] = {{"gfx90a", 0x3f}, {"gfx942", 0x4c}, {"gfx950", 0x4f}};
  for (const auto& one : known)
    if (!strncmp(arch, one.name, strlen(one.name))) return one.mach;
  return 0;
}

void unmap_image() {
  for (unsigned i = 0; i < module_.mapped_count; i++) munmap(module_.mapped[i].at, module_.mapped[i].bytes);
  module_ = {};
}

bool map_image(const char* data) {
  const Elf elf = {data};
  for (unsigned i = 0; i < elf.programs(); i++) {
    const uint64_t header = elf.program_table() + 56ul * i;
    if (elf.read<uint32_t>(header) != 1) continue;
    const uint32_t flags = elf.read<uint32_t>(header + 4);
    const uint64_t offset = elf.read<uint64_t>(header + 8), address = elf.read<uint64_t>(header + 16);
    const uint64_t stored = elf.read<uint64_t>(header + 32), whole = elf.read<uint64_t>(header + 40);
    if (!whole) continue;
    const size_t bytes = (whole + kPage - 1) / kPage * kPage;
    enum { kNoReplace = 0x100000 };
    void* const at = mmap(reinterpret_cast<void*>(address), bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | kNoReplace, -1, 0);
    if (at != reinterpret_cast<void*>(address)) return false;
    module_.mapped[module_.mapped_count++] = {at, bytes};
    memcpy(at, data + offset, stored);
    mprotect(at, bytes, (flags & 4 ? PROT_READ : 0) | (flags & 2 ? PROT_WRITE : 0) | (flags & 1 ? PROT_EXEC : 0));
  }
  module_.image = reinterpret_cast<const KsImage*>(elf.read<uint64_t>(24));
  if (module_.image->magic != KS_MAGIC || module_.image->libm_names != sizeof kLibm / sizeof *kLibm) return false;
  memcpy(module_.image->libm, kLibm, sizeof kLibm);
  for (unsigned i = 0; i < module_.kernel_count; i++) {
    char name[32];
    snprintf(name, sizeof name, "ks_segment_%u", module_.kernels[i].number);
    module_.kernels[i].segment = reinterpret_cast<const unsigned*>(elf.symbol(name));
    if (!module_.kernels[i].segment) return false;
  }
  return true;
}

// "fibers 0|1", "kernel NUMBER SYMBOL" ..., "image", then the image.
bool load_module(const char* text, uint64_t bytes) {
  const char* const end = text + bytes;
  while (text < end) {
    const char* const newline = static_cast<const char*>(memchr(text, '\n', size_t(end - text)));
    if (!newline) return false;
    if (!strncmp(text, "image\n", 6)) return map_image(newline + 1);
    char line[512];
    snprintf(line, sizeof line, "%.*s", int(newline - text), text);
    Kernel& kernel = module_.kernels[module_.kernel_count];
    if (sscanf(line, "fibers %u", &module_.fibers) != 1 && module_.kernel_count < 64)
      if (sscanf(line, "kernel %u %399s", &kernel.number, kernel.symbol) == 2) module_.kernel_count++;
    text = newline + 1;
  }
  return false;
}

void map_stacks() {
  static bool done_once;
  if (done_once) return;
  done_once = true;
  const size_t bytes = size_t(KS_MAX_THREADS) * KS_STACK_STRIDE;
  mmap(reinterpret_cast<void*>(KS_STACKS - KS_GUARD_BYTES), bytes, PROT_READ | PROT_WRITE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

// ---- streams and events ----

struct Stream { bool live; bool pending; };
struct Event { bool live, recorded, complete; double at_ms; Stream* stream; };
Stream streams[16];
enum { kEvents = 8192 };
Event events[kEvents];

double now_ms() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return double(now.tv_sec) * 1e3 + double(now.tv_nsec) * 1e-6;
}

Stream* stream_of(void* handle) {
  Stream* const stream = static_cast<Stream*>(handle);
  return stream >= streams && stream < streams + 16 && stream->live ? stream : nullptr;
}

Event* event_of(void* handle) {
  Event* const event = static_cast<Event*>(handle);
  return event >= events && event < events + kEvents && event->live ? event : nullptr;
}

void complete(Stream* stream) {
  stream->pending = false;
  for (Event& event : events)
    if (event.live && event.recorded && event.stream == stream) event.complete = true;
}

void on_fault(int, siginfo_t* info, void*) {
  char line[160];
  const int length = snprintf(line, sizeof line,
                              "Memory access fault by GPU node-1 (Agent handle: 0x5a10) on address %p. Reason: Page not "
                              "present or supervisor privilege.\n",
                              info->si_addr);
  if (write(2, line, size_t(length)) < 0) _exit(70);
  signal(SIGABRT, SIG_DFL);
  abort();
}

__attribute__((constructor)) void start() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<void*>(&start), &info)) return;
  snprintf(folder, sizeof folder, "%s", info.dli_fname);
  *strrchr(folder, '/') = 0;
  char path[4096];
  path_of(path, sizeof path, "fakehip.log");
  log_fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  if (log_fd >= 0) fcntl(log_fd, F_SETFL, 0);
}

__attribute__((destructor)) void end() {
  unsigned held = 0, open_events = 0, open_streams = 0;
  for (const Block& block : blocks) held += block.base != nullptr;
  for (const Event& event : events) open_events += event.live;
  for (const Stream& stream : streams) open_streams += stream.live;
  say("exit blocks=%u events=%u streams=%u modules=%u", held, open_events, open_streams, unsigned(module_.live));
}

}  // namespace

extern "C" {

int hipInit(unsigned flags) {
  static const char* const call = "hipInit";
  read_conf();
  if (const int injected = fault_of(call)) return done(call, injected);
  show_devices();
  inited = true;
  return done(call, shown_count ? Success : NoDevice, "flags=%u", flags);
}

int hipRuntimeGetVersion(int* version) {
  BEGIN(hipRuntimeGetVersion)
  *version = conf.version;
  return done(call, Success);
}

int hipGetDeviceCount(int* count) {
  BEGIN(hipGetDeviceCount)
  *count = int(shown_count);
  return done(call, shown_count ? Success : NoDevice, "count=%u", shown_count);
}

int hipSetDevice(int device) {
  BEGIN(hipSetDevice)
  if (device < 0 || device >= int(shown_count)) return done(call, InvalidDevice, "device=%d", device);
  chosen = int(shown[device]);
  char name[32], path[4096];
  snprintf(name, sizeof name, "device-%d.busy", chosen);
  path_of(path, sizeof path, name);
  busy_fd = open(path, O_RDONLY | O_CLOEXEC);
  if (busy_fd >= 0 && flock(busy_fd, LOCK_EX | LOCK_NB)) return misuse(call, Success, "two processes on one device");
  return done(call, Success, "device=%d", chosen);
}

int hipDeviceGetAttribute(int* value, int attribute, int device) {
  BEGIN(hipDeviceGetAttribute)
  if (device < 0 || device >= int(shown_count)) return done(call, InvalidDevice);
  const struct { int number, value; } known[] = {
      {5, conf.clock_khz}, {19, conf.l2_bytes}, {59, conf.bus_bits}, {60, conf.memory_clock_khz},
      {63, conf.compute_units}, {74, conf.lds_bytes}, {87, 64}, {10018, conf.xcds}};
  for (const auto& one : known)
    if (one.number == attribute && one.value >= 0) {
      *value = one.value;
      return done(call, Success, "attribute=%d value=%d", attribute, one.value);
    }
  return done(call, InvalidValue, "attribute=%d", attribute);
}

int hipDeviceGetName(char* name, int length, int device) {
  BEGIN(hipDeviceGetName)
  if (device < 0 || device >= int(shown_count)) return done(call, InvalidDevice);
  snprintf(name, size_t(length), "%s", conf.name);
  return done(call, Success);
}

int hipDeviceGetPCIBusId(char* text, int length, int device) {
  BEGIN(hipDeviceGetPCIBusId)
  if (device < 0 || device >= int(shown_count)) return done(call, InvalidDevice);
  snprintf(text, size_t(length), "0000:%02x:00.0", 5 + 16 * shown[device]);
  return done(call, Success);
}

int hipDeviceTotalMem(size_t* bytes, int device) {
  BEGIN(hipDeviceTotalMem)
  if (device < 0 || device >= int(shown_count)) return done(call, InvalidDevice);
  *bytes = conf.memory;
  return done(call, Success);
}

// The properties of ROCm 6 and later: 1472 bytes, gcnArchName at 1160.
int hipGetDevicePropertiesR0600(char* properties, int device) {
  BEGIN(hipGetDevicePropertiesR0600)
  if (device < 0 || device >= int(shown_count)) return done(call, InvalidDevice);
  memset(properties, 0, 1472);
  snprintf(properties, 256, "%s", conf.name);
  snprintf(properties + 1160, 256, "%s", conf.arch);
  return done(call, Success);
}

int hipStreamCreateWithFlags(void** stream, unsigned flags) {
  BEGIN_ON_DEVICE(hipStreamCreateWithFlags)
  for (Stream& one : streams)
    if (!one.live) {
      one = {true, false};
      *stream = &one;
      return done(call, Success, "flags=%u", flags);
    }
  return done(call, OutOfMemory);
}

int hipStreamDestroy(void* handle) {
  BEGIN_ON_DEVICE(hipStreamDestroy)
  Stream* const stream = stream_of(handle);
  if (!stream) return misuse(call, InvalidHandle, "no such stream");
  stream->live = false;
  return done(call, Success);
}

int hipMalloc(void** pointer, size_t bytes) {
  BEGIN_ON_DEVICE(hipMalloc)
  for (Block& block : blocks) {
    if (block.base) continue;
    if (bytes > conf.memory) return done(call, OutOfMemory, "bytes=%zu", bytes);
    const size_t mapped = (bytes + kPage - 1) / kPage * kPage;
    void* const at = mmap(reinterpret_cast<void*>(next_address), mapped ? mapped : kPage, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) return done(call, OutOfMemory, "bytes=%zu", bytes);
    next_address += (mapped + 2ul * kGap) / kGap * kGap;
    block = {static_cast<char*>(at), bytes, mapped ? mapped : kPage};
    *pointer = at;
    return done(call, Success, "bytes=%zu at=%p", bytes, at);
  }
  return done(call, OutOfMemory, "bytes=%zu", bytes);
}

int hipFree(void* pointer) {
  BEGIN_ON_DEVICE(hipFree)
  for (Block& block : blocks)
    if (block.base == pointer && pointer) {
      munmap(block.base, block.mapped);
      block = {};
      return done(call, Success, "at=%p", pointer);
    }
  return misuse(call, InvalidValue, "not allocated, or freed twice");
}

static int copy(const char* call, void* to, const void* from, size_t bytes, int kind) {
  const bool device_to = block_of(to, bytes), device_from = block_of(from, bytes);
  if (kind < 1 || kind > 3) return misuse(call, InvalidMemcpyDirection, "kind");
  if (device_to != (kind != 2)) return misuse(call, InvalidValue, "destination is not where the kind says");
  if (device_from != (kind != 1)) return misuse(call, InvalidValue, "source is not where the kind says");
  memcpy(to, from, bytes);
  const char* const kinds[] = {"", "host-to-device", "device-to-host", "device-to-device"};
  return done(call, Success, "%s bytes=%zu", kinds[kind], bytes);
}

int hipMemcpy(void* to, const void* from, size_t bytes, int kind) {
  BEGIN_ON_DEVICE(hipMemcpy)
  return copy(call, to, from, bytes, kind);
}

int hipMemcpyAsync(void* to, const void* from, size_t bytes, int kind, void* stream) {
  BEGIN_ON_DEVICE(hipMemcpyAsync)
  if (!stream_of(stream)) return misuse(call, InvalidHandle, "no such stream");
  stream_of(stream)->pending = true;
  return copy(call, to, from, bytes, kind);
}

int hipMemsetAsync(void* to, int value, size_t bytes, void* stream) {
  BEGIN_ON_DEVICE(hipMemsetAsync)
  if (!stream_of(stream)) return misuse(call, InvalidHandle, "no such stream");
  if (!block_of(to, bytes)) return misuse(call, InvalidValue, "not device memory");
  stream_of(stream)->pending = true;
  if (bytes < kNeverRead) memset(to, value, bytes);
  return done(call, Success, "bytes=%zu value=%d", bytes, value);
}

int hipMemsetD16Async(void* to, unsigned short value, size_t count, void* stream) {
  BEGIN_ON_DEVICE(hipMemsetD16Async)
  if (!stream_of(stream)) return misuse(call, InvalidHandle, "no such stream");
  if (!block_of(to, 2 * count)) return misuse(call, InvalidValue, "not device memory");
  stream_of(stream)->pending = true;
  for (size_t i = 0; i < count; i++) static_cast<unsigned short*>(to)[i] = value;
  return done(call, Success, "count=%zu value=%u", count, unsigned(value));
}

int hipMemsetD32Async(void* to, int value, size_t count, void* stream) {
  BEGIN_ON_DEVICE(hipMemsetD32Async)
  if (!stream_of(stream)) return misuse(call, InvalidHandle, "no such stream");
  if (!block_of(to, 4 * count)) return misuse(call, InvalidValue, "not device memory");
  stream_of(stream)->pending = true;
  for (size_t i = 0; i < count; i++) static_cast<int*>(to)[i] = value;
  return done(call, Success, "count=%zu value=%d", count, value);
}

int hipModuleLoadData(void** made, const void* image) {
  BEGIN_ON_DEVICE(hipModuleLoadData)
  const Elf elf = {static_cast<const char*>(image)};
  if (memcmp(elf.data, "\x7f" "ELF\x02", 5) || elf.read<uint16_t>(18) != 224) return done(call, InvalidImage);
  if ((elf.flags() & 0xff) != machine_of(conf.arch)) return done(call, NoBinaryForGpu);
  uint64_t bytes = 0;
  const char* const section = elf.find(".ks_fake_x86", &bytes);
  if (!section) return misuse(call, InvalidImage, "the code object has no x86 build; was it made by the test's compiler?");
  if (module_.live) return misuse(call, OutOfMemory, "this fake holds one module at a time");
  if (!load_module(section, bytes)) {
    unmap_image();
    return misuse(call, InvalidImage, "the x86 build cannot be mapped");
  }
  module_.live = true;
  *made = &module_;
  return done(call, Success, "kernels=%u", module_.kernel_count);
}

int hipModuleGetFunction(void** function, void* handle, const char* name) {
  BEGIN_ON_DEVICE(hipModuleGetFunction)
  if (handle != &module_ || !module_.live) return misuse(call, InvalidHandle, "no such module");
  for (unsigned i = 0; i < module_.kernel_count; i++)
    if (!strcmp(module_.kernels[i].symbol, name)) {
      *function = &module_.kernels[i];
      return done(call, Success, "%s", name);
    }
  return done(call, NotFound, "%s", name);
}

int hipModuleUnload(void* handle) {
  BEGIN_ON_DEVICE(hipModuleUnload)
  if (handle != &module_ || !module_.live) return misuse(call, InvalidHandle, "no such module");
  unmap_image();
  return done(call, Success);
}

static int check_arguments(const char* call, const Kernel* kernel, void** extra, char* segment, size_t room) {
  if (!extra || extra[0] != (void*)1 || extra[2] != (void*)2 || extra[4] != (void*)3)
    return misuse(call, InvalidValue, "extra is not BUFFER_POINTER, BUFFER_SIZE, END");
  const size_t bytes = *static_cast<const size_t*>(extra[3]);
  const unsigned count = kernel->segment[0], *const offset = kernel->segment + 1, *const pointer = offset + count + 1;
  if (bytes < pointer[count + 1] || bytes > room) return misuse(call, InvalidValue, "the size of the argument segment");
  memcpy(segment, extra[1], bytes);
  for (unsigned i = 0; i < count; i++) {
    void* value;
    memcpy(&value, segment + offset[i], sizeof value);
    if (pointer[i] && !block_of(value, 0)) return misuse(call, IllegalAddress, "a pointer argument is no device memory");
  }
  return Success;
}

int hipModuleLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                          unsigned lds, void* stream, void** parameters, void** extra) {
  BEGIN_ON_DEVICE(hipModuleLaunchKernel)
  const Kernel* const kernel = static_cast<const Kernel*>(function);
  if (!module_.live || kernel < module_.kernels || kernel >= module_.kernels + module_.kernel_count)
    return misuse(call, InvalidHandle, "no such function");
  if (!stream_of(stream)) return misuse(call, InvalidHandle, "no such stream");
  if (parameters) return misuse(call, InvalidValue, "parameters and extra");
  const uint64_t threads = uint64_t(bx) * by * bz;
  if (!threads || threads > KS_MAX_THREADS || !gx || !gy || !gz) return done(call, InvalidConfiguration);
  if (uint64_t(gx) * bx > UINT32_MAX || gy > 65535 || gz > 65535) return done(call, InvalidConfiguration);
  if (lds > unsigned(conf.lds_bytes)) return done(call, InvalidValue);
  alignas(16) static char segment[4096];
  if (const int code = check_arguments(call, kernel, extra, segment, sizeof segment)) return code;
  stream_of(stream)->pending = true;
  map_stacks();
  static char handler_stack[1 << 16];
  const stack_t alternate = {handler_stack, 0, sizeof handler_stack};
  sigaltstack(&alternate, nullptr);
  struct sigaction fault = {}, old[2];
  fault.sa_sigaction = on_fault;
  fault.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGSEGV, &fault, &old[0]);
  sigaction(SIGBUS, &fault, &old[1]);
  const KsLaunch launch = {kernel->number, module_.fibers ? unsigned(KS_FIBERS) : 0u, {gx, gy, gz}, {bx, by, bz}, lds,
                           reinterpret_cast<const KsSlot*>(segment)};
  module_.image->run(&launch);
  sigaction(SIGSEGV, &old[0], nullptr);
  sigaction(SIGBUS, &old[1], nullptr);
  return done(call, Success, "%s grid=%u,%u,%u block=%u,%u,%u lds=%u", kernel->symbol, gx, gy, gz, bx, by, bz, lds);
}

int hipEventCreate(void** made) {
  BEGIN_ON_DEVICE(hipEventCreate)
  for (Event& event : events)
    if (!event.live) {
      event = {};
      event.live = true;
      *made = &event;
      return done(call, Success);
    }
  return done(call, OutOfMemory);
}

int hipEventDestroy(void* handle) {
  BEGIN_ON_DEVICE(hipEventDestroy)
  Event* const event = event_of(handle);
  if (!event) return misuse(call, InvalidHandle, "no such event");
  event->live = false;
  return done(call, Success);
}

int hipEventRecord(void* handle, void* stream) {
  BEGIN_ON_DEVICE(hipEventRecord)
  Event* const event = event_of(handle);
  if (!event || !stream_of(stream)) return misuse(call, InvalidHandle, "no such event or stream");
  event->recorded = true;
  event->complete = false;
  event->stream = stream_of(stream);
  stream_of(stream)->pending = true;
  event->at_ms = now_ms();
  return done(call, Success, "event=%d", int(event - events));
}

int hipEventSynchronize(void* handle) {
  BEGIN_ON_DEVICE(hipEventSynchronize)
  Event* const event = event_of(handle);
  if (!event || !event->recorded) return misuse(call, InvalidHandle, "an event that was not recorded");
  complete(event->stream);
  return done(call, Success, "event=%d", int(event - events));
}

int hipEventElapsedTime(float* milliseconds, void* first, void* second) {
  BEGIN_ON_DEVICE(hipEventElapsedTime)
  const Event *const start = event_of(first), *const stop = event_of(second);
  if (!start || !stop || !start->recorded || !stop->recorded)
    return misuse(call, InvalidHandle, "an event that was not recorded");
  if (!start->complete || !stop->complete) return misuse(call, NotReady, "before the stop event was waited for");
  *milliseconds = float((stop->at_ms - start->at_ms) * conf.event_factor);
  return done(call, Success, "events=%d,%d", int(start - events), int(stop - events));
}

int hipGetLastError() {
  static const char* const call = "hipGetLastError";
  if (const int injected = fault_of(call)) return done(call, injected);
  const int code = last_error;
  last_error = Success;
  return done(call, code);
}

const char* hipGetErrorName(int code) {
  for (const Name& one : kNames)
    if (one.code == code) return one.name;
  return "hipErrorUnknown";
}

const char* hipGetErrorString(int code) {
  for (const Name& one : kNames)
    if (one.code == code) return one.text;
  return "unknown error";
}

}  // extern "C"
