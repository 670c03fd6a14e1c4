[[noreturn]] inline void stop(const std::string& why) {
  std::fprintf(stderr, "error: %s\n", why.c_str());
  std::exit(2);
}

inline void need(hipError_t status, const char* what) {
  if (status != hipSuccess) stop(std::string(what) + ": " + hipGetErrorString(status));
}

class DeviceMemory {
 public:
  explicit DeviceMemory(std::size_t bytes) : bytes_(bytes) { need(hipMalloc(&at_, bytes ? bytes : 1), "hipMalloc"); }
  DeviceMemory(DeviceMemory&& other) noexcept : at_(other.at_), bytes_(other.bytes_) { other.at_ = nullptr; }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  ~DeviceMemory() {
    if (at_) (void)hipFree(at_);
  }
  void* at() const { return at_; }
  std::size_t bytes() const { return bytes_; }
  void fill(int byte) const { need(hipMemset(at_, byte, bytes_), "hipMemset"); }
  void upload(const void* from) const { need(hipMemcpy(at_, from, bytes_, hipMemcpyHostToDevice), "hipMemcpy"); }
  std::vector<unsigned char> download() const {
    std::vector<unsigned char> copy(bytes_);
    need(hipMemcpy(copy.data(), at_, bytes_, hipMemcpyDeviceToHost), "hipMemcpy");
    return copy;
  }

 private:
  void* at_ = nullptr;
  std::size_t bytes_;
};

// What fits the format is the value; 0x80 is the NaN of the FNUZ formats, which have no infinities.
inline double small_float(unsigned bits, int exponent_bits, int mantissa_bits, int bias, bool fnuz) {
  const unsigned sign = bits >> (exponent_bits + mantissa_bits);
  const int exponent = static_cast<int>(bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const int mantissa = static_cast<int>(bits) & ((1 << mantissa_bits) - 1);
  double size;
  if (fnuz && sign && exponent == 0 && mantissa == 0) size = std::nan("");
  else if (!fnuz && exponent == (1 << exponent_bits) - 1) size = mantissa ? std::nan("") : HUGE_VAL;
  else if (exponent == 0) size = std::ldexp(mantissa, 1 - bias - mantissa_bits);
  else size = std::ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
  return sign ? -size : size;
}

template <class T> T read(const unsigned char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

inline double decode(Kind kind, const unsigned char* at) {
  switch (kind) {
    case Kind::float64: return read<double>(at);
    case Kind::float32: return read<float>(at);
    case Kind::float16: return small_float(read<std::uint16_t>(at), 5, 10, 15, false);
    case Kind::bfloat16: return small_float(read<std::uint16_t>(at), 8, 7, 127, false);
    case Kind::float8_e4m3fnuz: return small_float(*at, 4, 3, 8, true);
    case Kind::float8_e5m2fnuz: return small_float(*at, 5, 2, 16, true);
    case Kind::integer: break;
  }
  return 0.0;
}

// One test vector: a shape, its inputs, and per output the expected values with the error each may have.
struct Vector {
  std::string name;
  int shape[kDimensions];
  std::vector<std::vector<unsigned char>> inputs, expected;
};

class Reader {
 public:
  explicit Reader(const std::vector<unsigned char>& from) : from_(from) {}
  const unsigned char* take(std::size_t bytes) {
    if (bytes > from_.size() - at_) stop("the test vectors end early; export them again");
    at_ += bytes;
    return from_.data() + at_ - bytes;
  }
  template <class T> T take() { return read<T>(take(sizeof(T))); }
  std::vector<unsigned char> copy(std::size_t bytes) {
    const unsigned char* begin = take(bytes);
    return std::vector<unsigned char>(begin, begin + bytes);
  }

 private:
  const std::vector<unsigned char>& from_;
  std::size_t at_ = 0;
};

inline std::vector<Vector> read_vectors(const std::vector<unsigned char>& bytes) {
  Reader reader(bytes);
  const std::size_t length = std::strlen(kVectorsMark);
  if (std::memcmp(reader.take(length), kVectorsMark, length) != 0) stop("these are test vectors of another problem");
  std::vector<Vector> vectors(reader.take<std::uint32_t>());
  for (Vector& vector : vectors) {
    const std::size_t letters = reader.take<std::uint32_t>();
    const unsigned char* name = reader.take(letters);
    vector.name.assign(name, name + letters);
    for (int& extent : vector.shape) extent = static_cast<int>(reader.take<std::int64_t>());
    std::size_t elements[kBuffers];
    if (!count_elements(vector.shape, elements)) stop("a test vector has a shape that the problem has not");
    for (int i = 0; i < kBuffers; ++i) {
      const Buffer& buffer = buffers[i];
      const bool exact = buffer.kind == Kind::integer;
      const std::size_t size = !buffer.output || exact ? buffer.itemsize : 2 * sizeof(double);
      (buffer.output ? vector.expected : vector.inputs).push_back(reader.copy(elements[i] * size));
    }
  }
  return vectors;
}

inline std::vector<unsigned char> from_base64(const char* text) {
  std::vector<unsigned char> bytes;
  unsigned bits = 0, pending = 0;
  for (; *text && *text != '='; ++text) {
    const char c = *text;
    const unsigned digit = c >= 'a' ? c - 'a' + 26 : c >= 'A' ? c - 'A' : c >= '0' ? c - '0' + 52 : c == '+' ? 62 : 63;
    pending = pending << 6 | digit;
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes.push_back(static_cast<unsigned char>(pending >> bits));
  }
  return bytes;
}

inline std::vector<Vector> embedded_vectors() { return read_vectors(from_base64(kVectors)); }

inline std::vector<Vector> vectors_of_file(const char* path) {
  std::FILE* file = std::fopen(path, "rb");
  if (!file) stop(std::string("cannot open ") + path);
  std::vector<unsigned char> bytes, part(1 << 20);
  while (const std::size_t got = std::fread(part.data(), 1, part.size(), file))
    bytes.insert(bytes.end(), part.begin(), part.begin() + static_cast<std::ptrdiff_t>(got));
  std::fclose(file);
  return read_vectors(bytes);
}

// Device buffers for one shape, and the workspace beside them.
struct Job {
  int shape[kDimensions];
  std::vector<DeviceMemory> memory;
  std::vector<void*> pointers;

  explicit Job(const int* extents) {
    std::copy(extents, extents + kDimensions, shape);
    std::size_t elements[kBuffers];
    if (!count_elements(shape, elements)) stop("the problem has no such shape: " + text());
    for (int i = 0; i < kBuffers; ++i) memory.emplace_back(elements[i] * buffers[i].itemsize);
    memory.emplace_back(workspace_of(shape));
    for (const DeviceMemory& one : memory) pointers.push_back(one.at());
  }
  std::string text() const {
    std::string words;
    for (int i = 0; i < kDimensions; ++i)
      words += std::string(i ? " " : "") + dimension_names[i] + "=" + std::to_string(shape[i]);
    return words;
  }
  void poison(int byte) const {
    for (int i = 0; i < kBuffers; ++i)
      if (buffers[i].output) memory[i].fill(byte);
    memory[kBuffers].fill(byte);
  }
  void run(hipStream_t stream) const { need(run_plan(shape, pointers.data(), stream), ("launch for " + text()).c_str()); }
};

struct Outcome {
  std::size_t wrong = 0, elements = 0;
  double worst = 0.0;  // the largest error as a share of what is allowed
  std::string first;
};

inline void compare(const Buffer& buffer, const std::vector<unsigned char>& got,
                    const std::vector<unsigned char>& expected, Outcome& outcome) {
  const std::size_t elements = got.size() / buffer.itemsize;
  for (std::size_t i = 0; i < elements; ++i, ++outcome.elements) {
    const unsigned char* at = got.data() + i * buffer.itemsize;
    bool right;
    std::string values;
    if (buffer.kind == Kind::integer) {
      right = std::memcmp(at, expected.data() + i * buffer.itemsize, buffer.itemsize) == 0;
    } else {
      const double value = decode(buffer.kind, at);
      const double want = read<double>(expected.data() + i * sizeof(double));
      const double allowed = read<double>(expected.data() + (elements + i) * sizeof(double));
      const double error = std::fabs(value - want);
      right = std::isfinite(want) ? error <= allowed : value == want || (std::isnan(value) && std::isnan(want));
      if (right && error > 0.0) outcome.worst = std::max(outcome.worst, error / allowed);
      if (!right) values = ": expected " + std::to_string(want) + ", got " + std::to_string(value);
    }
    if (!right && outcome.wrong++ == 0) outcome.first = std::string(buffer.name) + "[" + std::to_string(i) + "]" + values;
  }
}

// Two passes over differently poisoned outputs: an element that is never written cannot look right in both.
inline bool check(const Vector& vector) {
  Outcome outcome;
  bool changed = false;
  const Job job(vector.shape);
  for (const int poison : {0xFF, 0xA5}) {
    int input = 0, output = 0;
    for (int i = 0; i < kBuffers; ++i)
      if (!buffers[i].output) job.memory[i].upload(vector.inputs[input++].data());
    job.poison(poison);
    job.run(nullptr);
    need(hipDeviceSynchronize(), "the kernels");
    input = 0;
    for (int i = 0; i < kBuffers; ++i) {
      if (buffers[i].output) compare(buffers[i], job.memory[i].download(), vector.expected[output++], outcome);
      else changed |= job.memory[i].download() != vector.inputs[input++];
    }
  }
  const bool right = outcome.wrong == 0 && !changed;
  if (right) {
    std::printf("right  %-40s largest error %.2g of what is allowed\n", vector.name.c_str(), outcome.worst);
  } else if (outcome.wrong) {
    std::printf("WRONG  %-40s %zu of %zu elements, first %s\n", vector.name.c_str(), outcome.wrong, outcome.elements,
                outcome.first.c_str());
  } else {
    std::printf("WRONG  %-40s an input was changed\n", vector.name.c_str());
  }
  std::fflush(stdout);
  return right;
}
