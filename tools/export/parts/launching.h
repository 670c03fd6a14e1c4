inline bool usable(const void*) { return true; }
inline bool usable(Integer value) { return value.valid; }
inline bool usable(double value) { return std::isfinite(value); }

template <class Parameter> Parameter convert(const void* pointer) {
  return static_cast<Parameter>(const_cast<void*>(pointer));
}
template <class Parameter> Parameter convert(Integer value) { return static_cast<Parameter>(value.value); }
template <class Parameter> Parameter convert(double value) { return static_cast<Parameter>(value); }

// Three extents for a grid or a block, each at least 1 and at most `most`.
inline bool extents(dim3& result, Integer x, Integer y, Integer z, long long most_x, long long most) {
  if (!(x >= 1 && x <= most_x && y >= 1 && y <= most && z >= 1 && z <= most)) return false;
  result = dim3(static_cast<unsigned>(x.value), static_cast<unsigned>(y.value), static_cast<unsigned>(z.value));
  return true;
}

template <class... Parameters, class... Values>
hipError_t start(void (*kernel)(Parameters...), dim3 grid, dim3 block, Integer lds, hipStream_t stream, Values... values) {
  static_assert(sizeof...(Parameters) == sizeof...(Values), "the plan passes another number of arguments");
  if (!(lds >= 0 && lds <= 65536) || !(... && usable(values))) return hipErrorInvalidValue;
  hipLaunchKernelGGL(kernel, grid, block, static_cast<unsigned>(lds.value), stream, convert<Parameters>(values)...);
  return hipGetLastError();
}
