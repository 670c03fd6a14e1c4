// What the parts of the fake runtime share: the configuration, faults and the log, memory, streams, code objects.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include <ks/abi.h>

enum : int {
  Success = 0, InvalidValue = 1, OutOfMemory = 2, NotInitialized = 3, InvalidConfiguration = 9,
  InvalidDevicePointer = 17, InvalidMemcpyDirection = 21, MissingConfiguration = 52, InvalidDeviceFunction = 98,
  NoDevice = 100, InvalidDevice = 101, InvalidImage = 200, NoBinaryForGpu = 209, InvalidHandle = 400, NotFound = 500,
  NotReady = 600, IllegalAddress = 700, LaunchOutOfResources = 701, LaunchFailure = 719, Unknown = 999,
};

namespace fake {

struct Fault { char kind[8], call[48]; long value, skip; int device; };

struct Conf {
  int devices = 1, compute_units = 304, xcds = 8, l2_bytes = 4 << 20, clock_khz = 2100000, memory_clock_khz = 1300000;
  int bus_bits = 8192, lds_bytes = 65536, version = 70051831;
  char arch[64] = "gfx942:sramecc+:xnack-", name[128] = "AMD Instinct MI300X";
  size_t memory = 205822885888;  // of an MI300X: 191.7 GiB
  double event_factor = 1;
  Fault faults[16];
  int fault_count = 0;
};
extern Conf conf;
extern bool inited;
extern int last_error;

// ---- conf.cpp ----
void path_of(char* out, size_t size, const char* name);
void read_conf();
void say(const char* format, ...);
// What a configured fault makes of this call: a code, or Success to go on.
int fault_of(const char* call);
// Each logs the call with its code, which it returns; a misuse is what a real runtime need not accept.
int done(const char* call, int code, const char* format = "", ...);
int misuse(const char* call, int code, const char* what);

// ---- device.cpp ----
// The only device that this process sees, by its number on the machine, or -1.
int only_device();
extern int chosen;  // the device that hipSetDevice has chosen, by its number on the machine, or -1
// Programs that the compiler has registered code objects for start the runtime with their first call.
int start_by_itself(const char* call);

// ---- memory.cpp ----
struct Block { char* base; size_t bytes, mapped; };
Block* block_of(const void* pointer, size_t bytes);
unsigned blocks_held();

// ---- streams.cpp ----
struct Stream { bool live; bool pending; };
// The default stream, for a null handle, is there for programs that the runtime has started by itself for.
Stream* stream_of(void* handle);
void complete(Stream* stream);
void complete_all();
unsigned streams_held();
unsigned events_held();

// ---- image.cpp ----
struct Kernel { char symbol[400]; unsigned number; const unsigned* segment; };
struct Module {
  bool live;
  unsigned fibers, kernel_count;
  Kernel kernels[64];
  const KsImage* image;
  void* mapped;
  size_t mapped_bytes;
};
Module* free_module();
Module* module_of(void* handle);
// The module and the kernel that a function handle stands for, or null.
Module* module_with(const Kernel* kernel);
Kernel* kernel_of(Module* module, const char* symbol);
// Whether the code object is one for this GPU with an x86 build; Success, or the code and in `why` the misuse.
int load(Module* module, const void* code_object, const char** why);
void unload(Module* module);
unsigned modules_held();

// ---- launch.cpp ----
struct Shape { unsigned grid[3], block[3], lds; };
// Arguments are in `segment`, laid out as the kernel's own parameters are.
int launch(const char* call, const Kernel* kernel, const Shape& shape, void* stream, const char* segment);

// ---- registration.cpp ----
bool registered();
unsigned binaries_held();

}  // namespace fake

#define BEGIN(name)                                                           \
  static const char* const call = #name;                                      \
  if (const int injected = fake::fault_of(call)) return fake::done(call, injected); \
  if (!fake::inited)                                                          \
    if (const int code = fake::start_by_itself(call)) return code;
#define BEGIN_ON_DEVICE(name) \
  BEGIN(name)                 \
  if (fake::chosen < 0) return fake::misuse(call, InvalidDevice, "before hipSetDevice");
