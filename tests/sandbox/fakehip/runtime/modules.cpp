// The module API: code objects that a program loads, and launches with their arguments in one buffer.
#include "fakehip.h"

#include <string.h>

using namespace fake;

extern "C" {

int hipModuleLoadData(void** made, const void* image) {
  BEGIN_ON_DEVICE(hipModuleLoadData)
  Module* const module = free_module();
  if (!module) return misuse(call, OutOfMemory, "this fake holds 16 modules at a time");
  const char* why = nullptr;
  if (const int code = load(module, image, &why)) return why ? misuse(call, code, why) : done(call, code);
  *made = module;
  return done(call, Success, "kernels=%u", module->kernel_count);
}

int hipModuleGetFunction(void** function, void* handle, const char* name) {
  BEGIN_ON_DEVICE(hipModuleGetFunction)
  Module* const module = module_of(handle);
  if (!module) return misuse(call, InvalidHandle, "no such module");
  Kernel* const kernel = kernel_of(module, name);
  if (!kernel) return done(call, NotFound, "%s", name);
  *function = kernel;
  return done(call, Success, "%s", name);
}

int hipModuleUnload(void* handle) {
  BEGIN_ON_DEVICE(hipModuleUnload)
  Module* const module = module_of(handle);
  if (!module) return misuse(call, InvalidHandle, "no such module");
  unload(module);
  return done(call, Success);
}

int hipModuleLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                          unsigned lds, void* stream, void** parameters, void** extra) {
  BEGIN_ON_DEVICE(hipModuleLaunchKernel)
  const Kernel* const kernel = static_cast<const Kernel*>(function);
  if (!module_with(kernel)) return misuse(call, InvalidHandle, "no such function");
  if (parameters) return misuse(call, InvalidValue, "parameters and extra");
  if (!extra || extra[0] != (void*)1 || extra[2] != (void*)2 || extra[4] != (void*)3)
    return misuse(call, InvalidValue, "extra is not BUFFER_POINTER, BUFFER_SIZE, END");
  alignas(16) static char segment[4096];
  const size_t bytes = *static_cast<const size_t*>(extra[3]);
  const unsigned needed = kernel->segment[1 + 3 * (kernel->segment[0] + 1)];
  if (bytes < needed || bytes > sizeof segment) return misuse(call, InvalidValue, "the size of the argument segment");
  memcpy(segment, extra[1], bytes);
  return launch(call, kernel, {{gx, gy, gz}, {bx, by, bz}, lds}, stream, segment);
}

}  // extern "C"
