// The runtime API as a HIP compiler uses it: fat binaries and kernels that a program registers before its main, and
// launches by the address of a kernel's stub. A code object is loaded with the first launch from it.
#include "fakehip.h"

#include <string.h>

namespace fake {
namespace {

struct Wrapper { uint32_t magic, version; const char* bundle; void* unused; };
struct Binary { bool live; const char* bundle; Module* module; };
struct Function { Binary* binary; const void* stub; char symbol[400]; };
struct Call { unsigned grid[3], block[3]; size_t lds; void* stream; };

enum { kBinaries = 16, kFunctions = 256, kCalls = 16 };
Binary binaries[kBinaries];
Function functions[kFunctions];
unsigned function_count;
Call calls[kCalls];
unsigned call_count;

Binary* binary_of(void** handle) {
  Binary* const binary = reinterpret_cast<Binary*>(handle);
  return binary >= binaries && binary < binaries + kBinaries && binary->live ? binary : nullptr;
}

Function* function_of(const void* stub) {
  for (unsigned i = 0; i < function_count; i++)
    if (functions[i].stub == stub && functions[i].binary) return &functions[i];
  return nullptr;
}

// The code object for this GPU in a bundle: "hipv4-amdgcn-amd-amdhsa--gfx942", features after a colon.
const char* code_object_in(const char* bundle) {
  char arch[64] = "";
  memcpy(arch, conf.arch, strcspn(conf.arch, ":"));
  uint64_t entries;
  memcpy(&entries, bundle + 24, sizeof entries);
  const char* at = bundle + 32;
  for (uint64_t i = 0; i < entries; i++) {
    uint64_t offset, size, letters;
    memcpy(&offset, at, 8);
    memcpy(&size, at + 8, 8);
    memcpy(&letters, at + 16, 8);
    const char *const triple = at + 24, *const last = triple + letters - strlen(arch);
    if (size && letters > strlen(arch) && !strncmp(triple, "hip", 3) && !memcmp(last, arch, strlen(arch)))
      return bundle + offset;
    at = triple + letters;
  }
  return nullptr;
}

// The kernel behind a stub, loaded if need be; Success or a code, with the misuse if it is one.
int find(const Function* function, const Kernel** kernel, const char** why) {
  Binary* const binary = function->binary;
  if (!binary->module) {
    const char* const code_object = code_object_in(binary->bundle);
    Module* const module = free_module();
    if (!code_object) return NoBinaryForGpu;
    if (!module) return OutOfMemory;
    if (const int code = load(module, code_object, why)) return code;
    binary->module = module;
  }
  *kernel = kernel_of(binary->module, function->symbol);
  return *kernel ? Success : InvalidDeviceFunction;
}

}  // namespace

bool registered() { return binaries_held() > 0; }

unsigned binaries_held() {
  unsigned held = 0;
  for (const Binary& binary : binaries) held += binary.live;
  return held;
}

}  // namespace fake

using namespace fake;

struct dim3 { unsigned x, y, z; };

extern "C" {

void** __hipRegisterFatBinary(const void* data) {
  const Wrapper* const wrapper = static_cast<const Wrapper*>(data);
  const bool known = wrapper->magic == 0x48495046 && wrapper->version == 1 &&
                     !memcmp(wrapper->bundle, "__CLANG_OFFLOAD_BUNDLE__", 24);
  if (!known) say("misuse __hipRegisterFatBinary: no wrapper with a bundle");
  for (Binary& binary : binaries)
    if (known && !binary.live) {
      binary = {true, wrapper->bundle, nullptr};
      say("__hipRegisterFatBinary -> 0");
      return reinterpret_cast<void**>(&binary);
    }
  return nullptr;
}

void __hipRegisterFunction(void** handle, const void* stub, char* symbol, const char* name, unsigned, void*,
                           void*, void*, void*, int*) {
  Binary* const binary = binary_of(handle);
  if (!binary || !stub || strcmp(symbol, name) || strlen(name) >= sizeof functions[0].symbol || function_count == kFunctions) {
    say("misuse __hipRegisterFunction: binary, stub or name");
    return;
  }
  Function& function = functions[function_count++];
  function = {binary, stub, ""};
  strcpy(function.symbol, name);
  say("__hipRegisterFunction %s -> 0", name);
}

void __hipUnregisterFatBinary(void** handle) {
  Binary* const binary = binary_of(handle);
  if (!binary) return say("misuse __hipUnregisterFatBinary: not registered, or unregistered twice");
  if (call_count) say("misuse __hipUnregisterFatBinary: a launch was configured and not made");
  if (binary->module) unload(binary->module);
  for (unsigned i = 0; i < function_count; i++)
    if (functions[i].binary == binary) functions[i].binary = nullptr;
  *binary = {};
  say("__hipUnregisterFatBinary -> 0");
}

int __hipPushCallConfiguration(dim3 grid, dim3 block, size_t lds, void* stream) {
  static const char* const call = "__hipPushCallConfiguration";
  if (call_count == kCalls) return misuse(call, OutOfMemory, "16 launches were configured and not made");
  calls[call_count++] = {{grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, lds, stream};
  return done(call, Success);
}

int __hipPopCallConfiguration(dim3* grid, dim3* block, size_t* lds, void** stream) {
  static const char* const call = "__hipPopCallConfiguration";
  if (!call_count) return misuse(call, MissingConfiguration, "no launch was configured");
  const Call& one = calls[--call_count];
  *grid = {one.grid[0], one.grid[1], one.grid[2]};
  *block = {one.block[0], one.block[1], one.block[2]};
  *lds = one.lds;
  *stream = one.stream;
  return done(call, Success);
}

int hipLaunchKernel(const void* stub, dim3 grid, dim3 block, void** arguments, size_t lds, void* stream) {
  BEGIN_ON_DEVICE(hipLaunchKernel)
  const Function* const function = function_of(stub);
  if (!function) return misuse(call, InvalidDeviceFunction, "no registered kernel");
  if (call_count) return misuse(call, InvalidConfiguration, "a launch was configured and not made");
  const Kernel* kernel = nullptr;
  const char* why = nullptr;
  if (const int code = find(function, &kernel, &why)) return why ? misuse(call, code, why) : done(call, code);
  alignas(16) static char segment[4096];
  const unsigned count = kernel->segment[0], *const offset = kernel->segment + 1, *const size = offset + count + 1;
  if (size[2 * (count + 1)] > sizeof segment) return misuse(call, InvalidValue, "the size of the argument segment");
  for (unsigned i = 0; i < count; i++) {
    if (!arguments || !arguments[i]) return misuse(call, InvalidValue, "an argument is missing");
    memcpy(segment + offset[i], arguments[i], size[i]);
  }
  const Shape shape = {{grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, unsigned(lds)};
  return launch(call, kernel, shape, stream, segment);
}

}  // extern "C"
