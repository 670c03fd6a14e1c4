// Device memory: each allocation with a gap behind it, and copies that must go where their kind says.
#include "fakehip.h"

#include <string.h>
#include <sys/mman.h>

namespace fake {
namespace {

enum { kBlocks = 512, kPage = 4096, kGap = 16 << 20 };
Block blocks[kBlocks];
uintptr_t next_address = 0x200000000000;
// As large as nothing but what flushes a cache: it is never read, so it is not written either.
const size_t kNeverRead = 128u << 20;

int copy(const char* call, void* to, const void* from, size_t bytes, int kind) {
  const bool device_to = block_of(to, bytes), device_from = block_of(from, bytes);
  if (kind < 1 || kind > 3) return misuse(call, InvalidMemcpyDirection, "kind");
  if (device_to != (kind != 2)) return misuse(call, InvalidValue, "destination is not where the kind says");
  if (device_from != (kind != 1)) return misuse(call, InvalidValue, "source is not where the kind says");
  memcpy(to, from, bytes);
  const char* const kinds[] = {"", "host-to-device", "device-to-host", "device-to-device"};
  return done(call, Success, "%s bytes=%zu", kinds[kind], bytes);
}

int fill(const char* call, void* to, int value, size_t bytes) {
  if (!block_of(to, bytes)) return misuse(call, InvalidValue, "not device memory");
  if (bytes < kNeverRead) memset(to, value, bytes);
  return done(call, Success, "bytes=%zu value=%d", bytes, value);
}

}  // namespace

Block* block_of(const void* pointer, size_t bytes) {
  const char* const at = static_cast<const char*>(pointer);
  for (Block& block : blocks)
    if (block.base && at >= block.base && at + bytes <= block.base + block.bytes) return &block;
  return nullptr;
}

unsigned blocks_held() {
  unsigned held = 0;
  for (const Block& block : blocks) held += block.base != nullptr;
  return held;
}

}  // namespace fake

using namespace fake;

extern "C" {

int hipMalloc(void** pointer, size_t bytes) {
  BEGIN_ON_DEVICE(hipMalloc)
  for (Block& block : blocks) {
    if (block.base) continue;
    if (bytes > conf.memory) return done(call, OutOfMemory, "bytes=%zu", bytes);
    const size_t mapped = (bytes + kPage - 1) / kPage * kPage;
    void* const at = mmap(reinterpret_cast<void*>(next_address), mapped ? mapped : kPage, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) return done(call, OutOfMemory, "bytes=%zu", bytes);
    next_address += (mapped + 2ul * kGap) / kGap * kGap;
    block = {static_cast<char*>(at), bytes, mapped ? mapped : kPage};
    *pointer = at;
    return done(call, Success, "bytes=%zu at=%p", bytes, at);
  }
  return done(call, OutOfMemory, "bytes=%zu", bytes);
}

int hipFree(void* pointer) {
  BEGIN_ON_DEVICE(hipFree)
  for (Block& block : blocks)
    if (block.base == pointer && pointer) {
      munmap(block.base, block.mapped);
      block = {};
      return done(call, Success, "at=%p", pointer);
    }
  return misuse(call, InvalidValue, "not allocated, or freed twice");
}

int hipMemcpy(void* to, const void* from, size_t bytes, int kind) {
  BEGIN_ON_DEVICE(hipMemcpy)
  return copy(call, to, from, bytes, kind);
}

int hipMemcpyAsync(void* to, const void* from, size_t bytes, int kind, void* stream) {
  BEGIN_ON_DEVICE(hipMemcpyAsync)
  if (!stream_of(stream)) return misuse(call, InvalidHandle, "no such stream");
  stream_of(stream)->pending = true;
  return copy(call, to, from, bytes, kind);
}

int hipMemset(void* to, int value, size_t bytes) {
  BEGIN_ON_DEVICE(hipMemset)
  return fill(call, to, value, bytes);
}

int hipMemsetAsync(void* to, int value, size_t bytes, void* stream) {
  BEGIN_ON_DEVICE(hipMemsetAsync)
  if (!stream_of(stream)) return misuse(call, InvalidHandle, "no such stream");
  stream_of(stream)->pending = true;
  return fill(call, to, value, bytes);
}

int hipMemsetD16Async(void* to, unsigned short value, size_t count, void* stream) {
  BEGIN_ON_DEVICE(hipMemsetD16Async)
  if (!stream_of(stream)) return misuse(call, InvalidHandle, "no such stream");
  if (!block_of(to, 2 * count)) return misuse(call, InvalidValue, "not device memory");
  stream_of(stream)->pending = true;
  for (size_t i = 0; i < count; i++) static_cast<unsigned short*>(to)[i] = value;
  return done(call, Success, "count=%zu value=%u", count, unsigned(value));
}

int hipMemsetD32Async(void* to, int value, size_t count, void* stream) {
  BEGIN_ON_DEVICE(hipMemsetD32Async)
  if (!stream_of(stream)) return misuse(call, InvalidHandle, "no such stream");
  if (!block_of(to, 4 * count)) return misuse(call, InvalidValue, "not device memory");
  stream_of(stream)->pending = true;
  for (size_t i = 0; i < count; i++) static_cast<int*>(to)[i] = value;
  return done(call, Success, "count=%zu value=%d", count, value);
}

}  // extern "C"
