template <class T> __global__ void fill_pattern(T* at, unsigned long long elements, T pattern) {
  const unsigned long long i = static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < elements) at[i] = pattern;
}

template <class T> hipError_t fill(void* at, std::size_t elements, T pattern, hipStream_t stream) {
  if (pattern == 0) return hipMemsetAsync(at, 0, elements * sizeof(T), stream);
  const dim3 grid(static_cast<unsigned>((elements + 255) / 256));
  hipLaunchKernelGGL(fill_pattern<T>, grid, dim3(256), 0, stream, static_cast<T*>(at),
                     static_cast<unsigned long long>(elements), pattern);
  return hipGetLastError();
}

// Buffers of a workspace start at multiples of this many bytes.
constexpr long long kAlignment = 256;

inline Integer padded(Integer bytes) { return cdiv(bytes, kAlignment) * kAlignment; }
