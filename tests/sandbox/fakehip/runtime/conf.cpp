// What the fake runtime is configured to be and to do wrong, what it says of its calls, and the texts of errors.
//
// Beside the library lie
//   fakehip.conf   what the devices are and which faults they have, a "key value" a line; read when it starts
//   fakehip.log    a FIFO: who reads it gets one line a call, "PID CALL ARGUMENTS -> CODE", and one "PID misuse ..."
//                  for every call that a real runtime need not accept
//   device-N.busy  locked by the process that uses device N, so that a second one is found out
//
// Faults:  fail CALL CODE [SKIP]   the call returns CODE, after SKIP times when it works
//          slow CALL MILLISECONDS  hang CALL [SKIP]  die CALL [SKIP]
//          lose CALL [SKIP]        from this call on every call returns hipErrorNoDevice
//          on DEVICE FAULT         only in a process that sees no other device
//          event_factor F          events say F times what passed between them
#include "fakehip.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace fake {

Conf conf;
bool inited;
int last_error;

namespace {
struct Name { int code; const char *name, *text; };
const Name kNames[] = {
    {0, "hipSuccess", "no error"}, {1, "hipErrorInvalidValue", "invalid argument"},
    {2, "hipErrorOutOfMemory", "out of memory"}, {3, "hipErrorNotInitialized", "initialization error"},
    {4, "hipErrorDeinitialized", "driver shutting down"},
    {9, "hipErrorInvalidConfiguration", "invalid configuration argument"},
    {17, "hipErrorInvalidDevicePointer", "invalid device pointer"},
    {35, "hipErrorInsufficientDriver", "driver version is insufficient for runtime version"},
    {52, "hipErrorMissingConfiguration", "__global__ function call is not configured"},
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

char folder[3072];
int log_fd = -1;
bool lost;

}  // namespace

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
    fault.device = -1;
    char inner[256] = "";
    if (!strcmp(key, "on") && sscanf(rest, "%d %31s %255[^\n]", &fault.device, key, inner) == 3)
      memcpy(rest, inner, sizeof rest);
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

int fault_of(const char* call) {
  if (lost) return NoDevice;
  for (int i = 0; i < conf.fault_count; i++) {
    Fault& fault = conf.faults[i];
    if (strcmp(fault.call, call) || (fault.device >= 0 && fault.device != only_device())) continue;
    if (fault.skip-- > 0) continue;
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

int done(const char* call, int code, const char* format, ...) {
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

namespace {

__attribute__((constructor)) void start() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<void*>(&path_of), &info)) return;
  snprintf(folder, sizeof folder, "%s", info.dli_fname);
  *strrchr(folder, '/') = 0;
  char path[4096];
  path_of(path, sizeof path, "fakehip.log");
  log_fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  if (log_fd >= 0) fcntl(log_fd, F_SETFL, 0);
}

__attribute__((destructor)) void end() {
  const unsigned modules = modules_held() + binaries_held();
  say("exit blocks=%u events=%u streams=%u modules=%u", blocks_held(), events_held(), streams_held(), modules);
}

}  // namespace

}  // namespace fake

extern "C" {

int hipGetLastError() {
  static const char* const call = "hipGetLastError";
  if (const int injected = fake::fault_of(call)) return fake::done(call, injected);
  const int code = fake::last_error;
  fake::last_error = Success;
  return fake::done(call, code);
}

const char* hipGetErrorName(int code) {
  for (const auto& one : fake::kNames)
    if (one.code == code) return one.name;
  return "hipErrorUnknown";
}

const char* hipGetErrorString(int code) {
  for (const auto& one : fake::kNames)
    if (one.code == code) return one.text;
  return "unknown error";
}

}  // extern "C"
