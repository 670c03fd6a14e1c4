// The x86 build that travels in a code object: mapped where there is room below 2 GiB, and moved there.
//
// It was linked for one address, with its relocations kept (--emit-relocs), and reaches everything in itself with 32
// bits. Wherever the program's own heap lies, and however many code objects are loaded, there is another place.
#include "fakehip.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "libm_names.h"

extern "C" {
#define KS_DECLARE(name) void ks_host_##name(void) __asm__(#name);
KS_LIBM(KS_DECLARE)
}

namespace fake {
namespace {

enum { kModules = 16, kPage = 4096, kStep = 1 << 20 };
const uintptr_t kHighest = 0x7f000000, kLowest = 0x1000000;
Module modules[kModules];

void* const kLibm[] = {
#define KS_HOST(name) (void*)ks_host_##name,
    KS_LIBM(KS_HOST)};

struct Elf {
  const char* data;
  uint64_t program_table() const { return read<uint64_t>(32); }
  uint64_t section_table() const { return read<uint64_t>(40); }
  unsigned flags() const { return read<uint32_t>(48); }
  unsigned programs() const { return read<uint16_t>(56); }
  unsigned sections() const { return read<uint16_t>(60); }
  template <class T> T read(uint64_t at) const {
    T value;
    memcpy(&value, data + at, sizeof value);
    return value;
  }
  uint64_t section(unsigned index) const { return section_table() + 64ul * index; }
  uint32_t section_type(unsigned index) const { return read<uint32_t>(section(index) + 4); }
  // Offset of a section's contents by its name, and their size.
  const char* find(const char* name, uint64_t* bytes) const {
    const uint64_t strings = read<uint64_t>(section(read<uint16_t>(62)) + 24);
    for (unsigned i = 0; i < sections(); i++) {
      if (strcmp(data + strings + read<uint32_t>(section(i)), name)) continue;
      *bytes = read<uint64_t>(section(i) + 32);
      return data + read<uint64_t>(section(i) + 24);
    }
    return nullptr;
  }
  uint64_t symbol(const char* name) const {
    uint64_t table_bytes = 0, unused;
    const char* const table = find(".symtab", &table_bytes);
    const char* const names = find(".strtab", &unused);
    for (uint64_t at = 0; table && at < table_bytes; at += 24) {
      uint32_t name_at;
      memcpy(&name_at, table + at, 4);
      if (strcmp(names + name_at, name)) continue;
      uint64_t value;
      memcpy(&value, table + at + 8, 8);
      return value;
    }
    return 0;
  }
};

unsigned machine_of(const char* arch) {
  const struct { const char* name; unsigned mach; } known[] = {{"gfx90a", 0x3f}, {"gfx942", 0x4c}, {"gfx950", 0x4f}};
  for (const auto& one : known)
    if (!strncmp(arch, one.name, strlen(one.name))) return one.mach;
  return 0;
}

struct Span { uint64_t low, high; };

// Addresses that the image is linked for, in whole pages.
Span span_of(const Elf& elf) {
  Span span = {UINT64_MAX, 0};
  for (unsigned i = 0; i < elf.programs(); i++) {
    const uint64_t header = elf.program_table() + 56ul * i;
    if (elf.read<uint32_t>(header) != 1) continue;
    const uint64_t address = elf.read<uint64_t>(header + 16), end = address + elf.read<uint64_t>(header + 40);
    if (address < span.low) span.low = address;
    if (end > span.high) span.high = end;
  }
  span.low = span.low / kPage * kPage;
  span.high = (span.high + kPage - 1) / kPage * kPage;
  return span;
}

char* map_below_2gib(size_t bytes) {
  enum { kNoReplace = 0x100000 };
  for (uintptr_t at = (kHighest - bytes) / kStep * kStep; at >= kLowest; at -= kStep) {
    void* const wanted = reinterpret_cast<void*>(at);
    void* const got = mmap(wanted, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | kNoReplace, -1, 0);
    if (got == wanted) return static_cast<char*>(got);
    // A system that does not know the flag takes the address for a wish.
    if (got != MAP_FAILED) munmap(got, bytes);
  }
  return nullptr;
}

template <class T> void shift(char* at, int64_t by) {
  T value;
  memcpy(&value, at, sizeof value);
  value = T(uint64_t(value) + uint64_t(by));
  memcpy(at, &value, sizeof value);
}

// Adds to every absolute address in the image what it was moved by; false for a kind that is not expected.
bool relocate(const Elf& elf, char* mapped, Span span, int64_t by) {
  enum { kAbsolute64 = 1, kRelative32 = 2, kCall32 = 4, kAbsolute32 = 10, kSigned32 = 11, kRelative64 = 24 };
  for (unsigned i = 0; i < elf.sections(); i++) {
    if (elf.section_type(i) != 4) continue;
    const uint64_t symbols = elf.read<uint64_t>(elf.section(elf.read<uint32_t>(elf.section(i) + 40)) + 24);
    const uint64_t first = elf.read<uint64_t>(elf.section(i) + 24), size = elf.read<uint64_t>(elf.section(i) + 32);
    for (uint64_t at = first; at < first + size; at += 24) {
      const uint64_t address = elf.read<uint64_t>(at), info = elf.read<uint64_t>(at + 8);
      const uint16_t where = elf.read<uint16_t>(symbols + 24 * (info >> 32) + 6);
      const bool moves = where != 0 && where != 0xfff1;  // neither undefined nor an absolute number
      const uint32_t type = uint32_t(info);
      if (address < span.low || address + 8 > span.high) continue;  // of a section that is not loaded
      char* const place = mapped + (address - span.low);
      if (type == kAbsolute64) shift<uint64_t>(place, moves ? by : 0);
      else if (type == kAbsolute32 || type == kSigned32) shift<uint32_t>(place, moves ? by : 0);
      else if (type == kRelative32 || type == kCall32) shift<uint32_t>(place, moves ? 0 : -by);
      else if (type == kRelative64) shift<uint64_t>(place, moves ? 0 : -by);
      else return false;
    }
  }
  return true;
}

void protect(const Elf& elf, char* mapped, Span span) {
  for (unsigned i = 0; i < elf.programs(); i++) {
    const uint64_t header = elf.program_table() + 56ul * i, address = elf.read<uint64_t>(header + 16);
    const uint32_t flags = elf.read<uint32_t>(header + 4);
    const uint64_t bytes = elf.read<uint64_t>(header + 40);
    if (elf.read<uint32_t>(header) != 1 || !bytes) continue;
    char* const at = mapped + (address / kPage * kPage - span.low);
    const uint64_t whole = (address % kPage + bytes + kPage - 1) / kPage * kPage;
    mprotect(at, whole, (flags & 4 ? PROT_READ : 0) | (flags & 2 ? PROT_WRITE : 0) | (flags & 1 ? PROT_EXEC : 0));
  }
}

bool map_image(Module* module, const char* data) {
  const Elf elf = {data};
  uint64_t unused;
  const Span span = span_of(elf);
  if (span.high <= span.low || elf.find(".got", &unused)) return false;  // a .got has addresses without relocations
  module->mapped_bytes = span.high - span.low;
  char* const mapped = map_below_2gib(module->mapped_bytes);
  module->mapped = mapped;
  if (!mapped) return false;
  for (unsigned i = 0; i < elf.programs(); i++) {
    const uint64_t header = elf.program_table() + 56ul * i;
    if (elf.read<uint32_t>(header) != 1) continue;
    const uint64_t offset = elf.read<uint64_t>(header + 8), address = elf.read<uint64_t>(header + 16);
    memcpy(mapped + (address - span.low), data + offset, elf.read<uint64_t>(header + 32));
  }
  const int64_t by = int64_t(reinterpret_cast<uintptr_t>(mapped)) - int64_t(span.low);
  if (!relocate(elf, mapped, span, by)) return false;
  protect(elf, mapped, span);
  module->image = reinterpret_cast<const KsImage*>(elf.read<uint64_t>(24) + uint64_t(by));
  if (module->image->magic != KS_MAGIC || module->image->libm_names != sizeof kLibm / sizeof *kLibm) return false;
  memcpy(module->image->libm, kLibm, sizeof kLibm);
  for (unsigned i = 0; i < module->kernel_count; i++) {
    char name[32];
    snprintf(name, sizeof name, "ks_segment_%u", module->kernels[i].number);
    const uint64_t segment = elf.symbol(name);
    if (!segment) return false;
    module->kernels[i].segment = reinterpret_cast<const unsigned*>(segment + uint64_t(by));
  }
  return true;
}

// "fibers 0|1", "kernel NUMBER SYMBOL" ..., "image", then the image.
bool load_section(Module* module, const char* text, uint64_t bytes) {
  const char* const end = text + bytes;
  while (text < end) {
    const char* const newline = static_cast<const char*>(memchr(text, '\n', size_t(end - text)));
    if (!newline) return false;
    if (!strncmp(text, "image\n", 6)) return map_image(module, newline + 1);
    char line[512];
    snprintf(line, sizeof line, "%.*s", int(newline - text), text);
    Kernel& kernel = module->kernels[module->kernel_count];
    if (sscanf(line, "fibers %u", &module->fibers) != 1 && module->kernel_count < 64)
      if (sscanf(line, "kernel %u %399s", &kernel.number, kernel.symbol) == 2) module->kernel_count++;
    text = newline + 1;
  }
  return false;
}

}  // namespace

Module* free_module() {
  for (Module& module : modules)
    if (!module.live) return &module;
  return nullptr;
}

Module* module_of(void* handle) {
  Module* const module = static_cast<Module*>(handle);
  return module >= modules && module < modules + kModules && module->live ? module : nullptr;
}

Module* module_with(const Kernel* kernel) {
  for (Module& module : modules)
    if (module.live && kernel >= module.kernels && kernel < module.kernels + module.kernel_count) return &module;
  return nullptr;
}

Kernel* kernel_of(Module* module, const char* symbol) {
  for (unsigned i = 0; i < module->kernel_count; i++)
    if (!strcmp(module->kernels[i].symbol, symbol)) return &module->kernels[i];
  return nullptr;
}

int load(Module* module, const void* code_object, const char** why) {
  const Elf elf = {static_cast<const char*>(code_object)};
  if (memcmp(elf.data, "\x7f" "ELF\x02", 5) || elf.read<uint16_t>(18) != 224) return InvalidImage;
  if ((elf.flags() & 0xff) != machine_of(conf.arch)) return NoBinaryForGpu;
  uint64_t bytes = 0;
  const char* const section = elf.find(".ks_fake_x86", &bytes);
  if (!section) {
    *why = "the code object has no x86 build; was it made by the test's compiler?";
    return InvalidImage;
  }
  if (!load_section(module, section, bytes)) {
    unload(module);
    *why = "the x86 build cannot be mapped";
    return InvalidImage;
  }
  module->live = true;
  return Success;
}

void unload(Module* module) {
  if (module->mapped) munmap(module->mapped, module->mapped_bytes);
  *module = {};
}

unsigned modules_held() {
  unsigned held = 0;
  for (const Module& module : modules) held += module.live;
  return held;
}

}  // namespace fake
