// libamd_smi as a test sees it: one socket with one processor, whose clock and temperatures never change.
#include <stdint.h>

namespace {
int processor_;
}

extern "C" {

int amdsmi_init(uint64_t flags) { return flags == 2 ? 0 : 1; }

int amdsmi_shut_down() { return 0; }

// Bus 5, device 0, function 0 of domain 0, and the same in steps of 16 buses.
int amdsmi_get_processor_handle_from_bdf(uint64_t bdf, void** handle) {
  if ((bdf >> 8 & 15) != 5 || bdf & 7) return 1;
  *handle = &processor_;
  return 0;
}

int amdsmi_get_clock_info(void* handle, int kind, uint32_t* info) {
  if (handle != &processor_ || (kind != 0 && kind != 4)) return 1;
  info[0] = kind == 0 ? 2098 : 1300;
  return 0;
}

int amdsmi_get_temp_metric(void* handle, int sensor, int metric, int64_t* value) {
  if (handle != &processor_ || metric != 0 || (sensor != 1 && sensor != 2)) return 1;
  *value = sensor == 1 ? 51 : 43;
  return 0;
}

}  // extern "C"
