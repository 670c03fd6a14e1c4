enum class Kind { float64, float32, float16, bfloat16, float8_e4m3fnuz, float8_e5m2fnuz, integer };

struct Buffer {
  const char* name;
  Kind kind;
  std::size_t itemsize;
  bool output;
};
