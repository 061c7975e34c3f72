// Copies and fills. Memory of the host is read and written when the device comes to it, and never before.
#include <string.h>

#include "memory.hpp"
#include "streams.hpp"

namespace {

struct DeviceRange {
  const Context* context;
  Address address;
};

void describe(char* text, size_t size, const char* why) { snprintf(text, size, "a copy: %s", why); }

// What was asked for is looked at again when its turn comes: memory may have been freed since.
Code copy(Stream& stream, std::vector<DeviceRange> ranges, size_t bytes, std::function<void()> act) {
  for (const DeviceRange& range : ranges)
    if (!is_held(*range.context, range.address, bytes)) return INVALID_VALUE;
  return submit(stream, [ranges, bytes, act]() -> Outcome {
    {
      Lock lock(machine().lock);
      ++machine().counted.copies;
      if (const Code code = injected("copy")) return {code, "a copy: it was told to fail"};
      for (const DeviceRange& range : ranges)
        if (!is_held(*range.context, range.address, bytes))
          return {ILLEGAL_ADDRESS, "a copy: memory that was freed before it ran"};
    }
    return run_guarded(act, describe);
  });
}

// Pinned memory is known, and so is where it ends. Of other memory the device finds out.
bool may_be_host(const void* memory, size_t bytes) {
  const Address address = Address(memory);
  if (machine().memory.count(address)) return false;
  const auto& table = machine().host_memory;
  auto after = table.upper_bound(address);
  if (after == table.begin()) return memory != nullptr;
  const auto& [begin, buffer] = *--after;
  const Address end = Address(buffer.guarded) + buffer.mapped;
  return address >= end || (address <= begin + buffer.bytes && bytes <= begin + buffer.bytes - address);
}

#ifdef PEERS_BY_NUMBER
// A device by its number.
typedef int Peer;

Code context_of(Peer device, const Context*& context) {
  const auto& all = machine().primary;
  if (device < 0 || size_t(device) >= all.size()) return INVALID_DEVICE;
  context = all[device];
  return context ? SUCCESS : INVALID_CONTEXT;
}
#else
// A device by its context.
typedef Handle Peer;

Code context_of(Peer handle, const Context*& context) {
  const auto found = machine().contexts.find(handle);
  if (found == machine().contexts.end()) return INVALID_CONTEXT;
  context = found->second.get();
  return context->destroyed ? CONTEXT_IS_DESTROYED : SUCCESS;
}
#endif

}  // namespace

API int cuMemcpyHtoDAsync_v2(Address to, const void* from, size_t bytes, Handle handle) {
  return in_context(__func__, [&](Context& context, Lock&) {
    std::shared_ptr<Stream> stream;
    TRY(stream_of(context, handle, stream));
    if (bytes == 0) return SUCCESS;
    if (!may_be_host(from, bytes)) return INVALID_VALUE;
    return copy(*stream, {{&context, to}}, bytes, [=] { memcpy((void*)to, from, bytes); });
  });
}

API int cuMemcpyDtoHAsync_v2(void* to, Address from, size_t bytes, Handle handle) {
  return in_context(__func__, [&](Context& context, Lock&) {
    std::shared_ptr<Stream> stream;
    TRY(stream_of(context, handle, stream));
    if (bytes == 0) return SUCCESS;
    if (!may_be_host(to, bytes)) return INVALID_VALUE;
    return copy(*stream, {{&context, from}}, bytes, [=] { memcpy(to, (void*)from, bytes); });
  });
}

API int cuMemcpyDtoDAsync_v2(Address to, Address from, size_t bytes, Handle handle) {
  return in_context(__func__, [&](Context& context, Lock&) {
    std::shared_ptr<Stream> stream;
    TRY(stream_of(context, handle, stream));
    if (bytes == 0) return SUCCESS;
    return copy(*stream, {{&context, to}, {&context, from}}, bytes, [=] { memmove((void*)to, (void*)from, bytes); });
  });
}

API int cuMemcpyPeerAsync(Address to, Peer to_peer, Address from, Peer from_peer, size_t bytes, Handle handle) {
  return in_context(__func__, [&](Context& context, Lock&) {
    std::shared_ptr<Stream> stream;
    TRY(stream_of(context, handle, stream));
    const Context *there, *here;
    TRY(context_of(to_peer, there));
    TRY(context_of(from_peer, here));
    if (bytes == 0) return SUCCESS;
    return copy(*stream, {{there, to}, {here, from}}, bytes, [=] { memmove((void*)to, (void*)from, bytes); });
  });
}

API int cuMemsetD8Async(Address to, unsigned char value, size_t bytes, Handle handle) {
  return in_context(__func__, [&](Context& context, Lock&) {
    std::shared_ptr<Stream> stream;
    TRY(stream_of(context, handle, stream));
    if (bytes == 0) return SUCCESS;
    return copy(*stream, {{&context, to}}, bytes, [=] { memset((void*)to, value, bytes); });
  });
}
