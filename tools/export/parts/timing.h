// More than the 256 MB that the Infinity Cache of an MI300 holds.
constexpr std::size_t kFlushBytes = std::size_t(512) << 20;
constexpr int kWarmUps = 3, kFewest = 10, kMost = 100;
constexpr double kEnoughMs = 500.0;

// Timed inputs repeat those of a test vector: values that the problem draws, at any size.
inline void tile_inputs(const Job& job, const Vector& vector) {
  int input = 0;
  for (int i = 0; i < kBuffers; ++i) {
    if (buffers[i].output) continue;
    const std::vector<unsigned char>& from = vector.inputs[input++];
    std::vector<unsigned char> filled(job.memory[i].bytes());
    for (std::size_t at = 0; at < filled.size() && !from.empty(); at += from.size())
      std::copy_n(from.begin(), std::min(from.size(), filled.size() - at), filled.begin() + static_cast<std::ptrdiff_t>(at));
    job.memory[i].upload(filled.data());
  }
}

// Milliseconds of single launches, sorted; with `flush` the caches are overwritten before each.
inline std::vector<double> time_launches(const Job& job, const DeviceMemory* flush) {
  hipStream_t stream;
  hipEvent_t begin, end;
  need(hipStreamCreate(&stream), "hipStreamCreate");
  need(hipEventCreate(&begin), "hipEventCreate");
  need(hipEventCreate(&end), "hipEventCreate");
  for (int i = 0; i < kWarmUps; ++i) job.run(stream);
  need(hipStreamSynchronize(stream), "the kernels");
  std::vector<double> times;
  double total = 0.0;
  while (static_cast<int>(times.size()) < kFewest || (total < kEnoughMs && static_cast<int>(times.size()) < kMost)) {
    if (flush) need(hipMemsetAsync(flush->at(), static_cast<int>(times.size() & 0xFF), flush->bytes(), stream), "hipMemsetAsync");
    need(hipEventRecord(begin, stream), "hipEventRecord");
    job.run(stream);
    need(hipEventRecord(end, stream), "hipEventRecord");
    need(hipEventSynchronize(end), "the kernels");
    float ms = 0.0f;
    need(hipEventElapsedTime(&ms, begin, end), "hipEventElapsedTime");
    times.push_back(ms);
    total += ms;
  }
  need(hipEventDestroy(begin), "hipEventDestroy");
  need(hipEventDestroy(end), "hipEventDestroy");
  need(hipStreamDestroy(stream), "hipStreamDestroy");
  std::sort(times.begin(), times.end());
  return times;
}

inline double quantile(const std::vector<double>& sorted, double share) {
  return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1) + 0.5)];
}

inline void time_shape(const int* shape, const Vector& vector, const DeviceMemory* flush) {
  const Job job(shape);
  tile_inputs(job, vector);
  job.poison(0xFF);
  const std::vector<double> warm = time_launches(job, nullptr);
  const double us = 1000.0 * quantile(warm, 0.5);
  std::printf("%-32s %10.1f us  (%.1f to %.1f, %zu launches)", job.text().c_str(), us, 1000.0 * quantile(warm, 0.25),
              1000.0 * quantile(warm, 0.75), warm.size());
  if (flush) std::printf("  cold %10.1f us", 1000.0 * quantile(time_launches(job, flush), 0.5));
  std::printf("  %9.1f GFLOP/s  %7.1f GB/s\n", flops_of(shape) / us / 1e3, bytes_of(shape) / us / 1e3);
  std::fflush(stdout);
}

inline void print_device() {
  int device = 0;
  hipDeviceProp_t properties;
  need(hipGetDevice(&device), "hipGetDevice");
  need(hipGetDeviceProperties(&properties, device), "hipGetDeviceProperties");
  std::printf("%s, device %d: %s (%s)\n", kTitle, device, properties.name, properties.gcnArchName);
}

constexpr const char* kUsage =
    "usage: PROGRAM [--check | --time] [--warm] [--vectors FILE] [EXTENT...]\n"
    "  --check         only check against the test vectors    --time  only time\n"
    "  --warm          time with warm caches only\n"
    "  --vectors FILE  check against the vectors of a file, not those in this program\n"
    "  EXTENT...       time this shape instead of the listed ones\n"
    "exit code: 0 all is right, 1 a result is wrong, 2 it could not be run\n";

struct Options {
  bool check = true, time = true, cold = true;
  const char* vectors = nullptr;
  std::vector<int> shape;
};

inline Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    char* end = nullptr;
    const long extent = std::strtol(argv[i], &end, 10);
    if (word == "--help" || word == "-h") {
      std::printf("%s", kUsage);
      std::exit(0);
    }
    if (word == "--check") options.time = false;
    else if (word == "--time") options.check = false;
    else if (word == "--warm") options.cold = false;
    else if (word == "--vectors" && i + 1 < argc) options.vectors = argv[++i];
    else if (*end == '\0' && extent > 0 && extent <= 0x7FFFFFFF) options.shape.push_back(static_cast<int>(extent));
    else stop("'" + word + "' is not understood\n" + kUsage);
  }
  if (!options.shape.empty() && options.shape.size() != kDimensions)
    stop("give " + std::to_string(kDimensions) + " extents\n" + kUsage);
  return options;
}

inline int check_and_time(int argc, char** argv) {
  const Options options = parse(argc, argv);
  print_device();
  const std::vector<Vector> vectors = options.vectors ? vectors_of_file(options.vectors) : embedded_vectors();
  if (vectors.empty()) stop("there are no test vectors");
  std::size_t wrong = 0;
  if (options.check) {
    for (const Vector& vector : vectors) wrong += !check(vector);
    std::printf("%zu of %zu test vectors are right\n", vectors.size() - wrong, vectors.size());
  }
  if (options.time) {
    std::vector<DeviceMemory> flush;
    if (options.cold) flush.emplace_back(kFlushBytes);
    std::printf("median of single launches by events (quartiles); outputs of timed launches are not checked\n");
    const DeviceMemory* with = flush.empty() ? nullptr : &flush[0];
    if (options.shape.empty()) {
      for (const auto& shape : timed_shapes) time_shape(shape, vectors[0], with);
    } else {
      time_shape(options.shape.data(), vectors[0], with);
    }
  }
  return wrong ? 1 : 0;
}
