#include "memory.hpp"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <algorithm>

#include "graphs.hpp"

namespace {

const size_t ALIGNMENT = 256, PAGE = 1 << 14;
// What lies on either side of a buffer and belongs to nobody: an index that is wrong seldom leads further.
const size_t GUARD = 64 << 20;
const unsigned char POISON = 0xa5;
// A larger buffer is poisoned at its two ends alone, so that one that nobody fills costs no memory of this machine.
const size_t POISONED = 64 << 20;

size_t rounded(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

// Where its pages begin, between the guards, and how many bytes they have.
char* inside(const Buffer& buffer) { return buffer.guarded + GUARD; }
size_t inner(const Buffer& buffer) { return buffer.mapped - 2 * GUARD; }

// As near to the guard behind it as its alignment allows. An address is never given twice.
Code make(Context& context, size_t bytes, std::map<Address, Buffer>& table, Address* address) {
  const size_t pages = rounded(bytes, PAGE);
  Buffer buffer = {&context, bytes, nullptr, pages + 2 * GUARD};
  void* memory = mmap(nullptr, buffer.mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return OUT_OF_MEMORY;
  buffer.guarded = (char*)memory;
  char* const begin = inside(buffer);
  if (mprotect(begin, pages, PROT_READ | PROT_WRITE)) return OUT_OF_MEMORY;
  const size_t ends = std::min(pages, POISONED / 2);
  memset(begin, POISON, ends);
  memset(begin + pages - ends, POISON, ends);
  *address = Address(begin + pages - rounded(bytes, ALIGNMENT));
  table[*address] = buffer;
  return SUCCESS;
}

bool is_poison(const char* from, const char* to) {
  return std::all_of(from, to, [](char byte) { return (unsigned char)byte == POISON; });
}

void unmake(Address address, const Buffer& buffer) {
  const char* begin = (char*)address;
  const char* last_page = std::max(inside(buffer), (char*)(address / PAGE * PAGE));
  if (!is_poison(last_page, begin) || !is_poison(begin + buffer.bytes, inside(buffer) + inner(buffer))) {
    ++machine().counted.overruns;
    fprintf(stderr, "fake " PLATFORM ": something was written beside a buffer of %zu bytes\n", buffer.bytes);
  }
  // The pages go back, and whoever still uses the address is found.
  mmap(buffer.guarded, buffer.mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

}  // namespace

bool is_held(const Context& context, Address address, size_t bytes) {
  const auto& table = machine().memory;
  auto after = table.upper_bound(address);
  if (after == table.begin()) return false;
  const auto& [begin, buffer] = *--after;
  return buffer.context == &context && address - begin <= buffer.bytes && bytes <= buffer.bytes - (address - begin);
}

Address buffer_of(const Context& context, Address address) {
  const auto& table = machine().memory;
  auto after = table.upper_bound(address);
  if (after == table.begin()) return 0;
  const auto& [begin, buffer] = *--after;
  return buffer.context == &context && address - begin < buffer.bytes ? begin : 0;
}

void withhold(const std::vector<Address>& buffers, bool withheld) {
  const auto& table = machine().memory;
  for (Address begin : buffers) {
    const auto found = table.find(begin);
    if (found == table.end()) continue;
    mprotect(inside(found->second), inner(found->second), withheld ? PROT_NONE : PROT_READ | PROT_WRITE);
  }
}

size_t free_all(const Context& context) {
  size_t count = 0;
  for (auto* table : {&machine().memory, &machine().host_memory})
    for (auto at = table->begin(); at != table->end();) {
      if (at->second.context != &context) {
        ++at;
        continue;
      }
      unmake(at->first, at->second);
      at = table->erase(at);
      ++count;
    }
  machine().held[context.ordinal] = 0;
  return count;
}

API int cuMemGetInfo_v2(size_t* left, size_t* all) {
  return in_context(__func__, [&](Context& context, Lock&) {
    if (!left || !all) return INVALID_VALUE;
    *all = machine().settings.memory;
    *left = *all - machine().held[context.ordinal];
    return SUCCESS;
  });
}

API int cuMemAlloc_v2(Address* address, size_t bytes) {
  return in_context(__func__, [&](Context& context, Lock&) {
    if (!address || bytes == 0) return INVALID_VALUE;
    TRY(refused_in_capture());
    size_t& held = machine().held[context.ordinal];
    if (bytes > machine().settings.memory - held) return OUT_OF_MEMORY;
    TRY(make(context, bytes, machine().memory, address));
    held += bytes;
    size_t all = 0;
    for (size_t of_device : machine().held) all += of_device;
    machine().counted.peak_bytes = std::max<uint64_t>(machine().counted.peak_bytes, all);
    return SUCCESS;
  });
}

// It waits for nothing: what still runs and uses the memory is a fault of the context.
API int cuMemFree_v2(Address address) {
  return in_context(__func__, [&](Context& context, Lock&) {
    TRY(refused_in_capture());
    auto found = machine().memory.find(address);
    if (found == machine().memory.end() || found->second.context != &context) return INVALID_VALUE;
    machine().held[context.ordinal] -= found->second.bytes;
    unmake(address, found->second);
    machine().memory.erase(found);
    return SUCCESS;
  });
}

API int cuMemHostAlloc(void** memory, size_t bytes, unsigned flags) {
  return in_context(__func__, [&](Context& context, Lock&) {
    if (!memory || bytes == 0 || flags > 7) return INVALID_VALUE;
    TRY(refused_in_capture());
    Address address;
    TRY(make(context, bytes, machine().host_memory, &address));
    *memory = (void*)address;
    return SUCCESS;
  });
}

API int cuMemFreeHost(void* memory) {
  return in_context(__func__, [&](Context& context, Lock&) {
    TRY(refused_in_capture());
    auto found = machine().host_memory.find(Address(memory));
    if (found == machine().host_memory.end() || found->second.context != &context) return INVALID_VALUE;
    unmake(found->first, found->second);
    machine().host_memory.erase(found);
    return SUCCESS;
  });
}
