#include <hip/hip_runtime.h>
#include <hipcub/hipcub.hpp>

extern "C" {
__global__ void square(float* values, int count) {
  const int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i < count) values[i] *= values[i];
}
}

class Timer {
 public:
  void start();
};

template <typename T> T* device_array(size_t count) {
  T* p;
  hipMalloc(&p, count * sizeof(T));
  return p;
}

int main() {
  constexpr int count = 5000;
  float host[count];
  float* values = device_array<float>(count);
  hipMemcpy(values, host, sizeof host, hipMemcpyHostToDevice);
  square<<<int(ceil(count / 192.0)), 192>>>(values + 8, count - 8);
  hipMemcpy(host, values, sizeof host, hipMemcpyDeviceToHost);
}
