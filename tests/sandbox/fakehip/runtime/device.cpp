// Which devices there are, what they say of themselves, and which of them this process uses.
#include "fakehip.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

namespace fake {

int chosen = -1;

namespace {

int busy_fd = -1, chosen_index = -1;
unsigned shown[16], shown_count;

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

int init(const char* call, unsigned flags) {
  read_conf();
  show_devices();
  if (const int injected = fault_of(call)) return done(call, injected);
  inited = true;
  return done(call, shown_count ? Success : NoDevice, "flags=%u", flags);
}

int choose(const char* call, int index) {
  chosen = int(shown[index]);
  chosen_index = index;
  char name[32], path[4096];
  snprintf(name, sizeof name, "device-%d.busy", chosen);
  path_of(path, sizeof path, name);
  if (busy_fd >= 0) close(busy_fd);
  busy_fd = open(path, O_RDONLY | O_CLOEXEC);
  if (busy_fd >= 0 && flock(busy_fd, LOCK_EX | LOCK_NB)) return misuse(call, Success, "two processes on one device");
  return done(call, Success, "device=%d", chosen);
}

}  // namespace

int only_device() { return shown_count == 1 ? int(shown[0]) : -1; }

int start_by_itself(const char* call) {
  if (!registered()) return misuse(call, NotInitialized, "before hipInit");
  if (const int code = init("hipInit", 0)) return done(call, code);
  return choose("hipSetDevice", 0);
}

}  // namespace fake

using namespace fake;

extern "C" {

int hipInit(unsigned flags) {
  static const char* const call = "hipInit";
  return init(call, flags);
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
  return choose(call, device);
}

int hipGetDevice(int* device) {
  BEGIN_ON_DEVICE(hipGetDevice)
  *device = chosen_index;
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

// The same before ROCm 6, which later libraries still have: 792 bytes, gcnArchName at 396.
int hipGetDeviceProperties(char* properties, int device) {
  BEGIN(hipGetDeviceProperties)
  if (device < 0 || device >= int(shown_count)) return done(call, InvalidDevice);
  memset(properties, 0, 792);
  snprintf(properties, 256, "%s", conf.name);
  snprintf(properties + 396, 256, "%s", conf.arch);
  return done(call, Success);
}

}  // extern "C"
