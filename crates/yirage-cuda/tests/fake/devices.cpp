// Devices, their facts, and their primary contexts.
#include <stdio.h>
#include <string.h>

#include "faults.hpp"
#include "graphs.hpp"
#include "memory.hpp"
#include "modules.hpp"
#include "vendor.hpp"

namespace {

// The ordinal of a device, or -1.
int ordinal_of(Device device) {
  const int ordinal = device - VENDOR.first;
  return ordinal >= 0 && ordinal < machine().settings.devices ? ordinal : -1;
}

template <class Body>
int of_device(const char* call, Device device, Body body) {
  return without_context(call, [&] {
    const int ordinal = ordinal_of(device);
    return ordinal < 0 ? INVALID_DEVICE : body(ordinal);
  });
}

thread_local Handle current;

const int MULTIPROCESSORS = 16;

template <class T>
size_t drop_all(Handles<T>& handles, const Context& context) {
  size_t count = 0;
  for (auto at = handles.all.begin(); at != handles.all.end();)
    if (at->second->context == &context) {
      at = handles.all.erase(at);
      ++count;
    } else {
      ++at;
    }
  return count;
}

// Everything that a context still has goes with it.
void destroy(Lock& lock, Context& context) {
  Machine& all = machine();
  context.destroyed = true;
  context.fault = CONTEXT_IS_DESTROYED;
  all.primary[context.ordinal] = nullptr;
  size_t leaks = end_streams(lock, context);
  leaks += drop_all(all.events, context) + drop_all(all.graphs, context) + drop_all(all.executables, context);
  drop_all(all.functions, context);
  for (auto& [handle, module] : all.modules.all)
    if (module->context == &context) module->unloaded = true;
  leaks += drop_all(all.modules, context);
  leaks += free_all(context);
  all.counted.leaks += leaks;
}

}  // namespace

int multiprocessors() {
  if (machine().settings.multiprocessors) return machine().settings.multiprocessors;
  for (const Attribute* one = VENDOR.attributes; one->number; ++one)
    if (one->number == MULTIPROCESSORS) return one->value;
  return 1;
}

Code current_context(Context*& context) {
  Machine& all = machine();
  if (!all.started) return NOT_INITIALIZED;
  auto found = all.contexts.find(current);
  if (found == all.contexts.end()) return INVALID_CONTEXT;
  context = found->second.get();
  return context->destroyed ? CONTEXT_IS_DESTROYED : context->fault;
}

API int cuInit(unsigned flags) {
  Machine& all = machine();
  Lock lock(all.lock);
  if (const Code code = injected(__func__)) return code;
  if (flags) return INVALID_VALUE;
  if (all.settings.devices == 0) return NO_DEVICE;
  if (all.started) return SUCCESS;
  watch_signals();
  all.primary.resize(all.settings.devices);
  all.held.resize(all.settings.devices);
  all.started = true;
  return SUCCESS;
}

API int cuDriverGetVersion(int* version) {
  Lock lock(machine().lock);
  if (const Code code = injected(__func__)) return code;
  if (!version) return INVALID_VALUE;
  *version = machine().settings.version;
  return SUCCESS;
}

API int cuDeviceGetCount(int* count) {
  return without_context(__func__, [&] {
    if (!count) return INVALID_VALUE;
    *count = machine().settings.devices;
    return SUCCESS;
  });
}

API int cuDeviceGet(Device* device, int ordinal) {
  return without_context(__func__, [&] {
    if (!device) return INVALID_VALUE;
    if (ordinal < 0 || ordinal >= machine().settings.devices) return INVALID_DEVICE;
    *device = VENDOR.first + ordinal;
    return SUCCESS;
  });
}

API int cuDeviceGetName(char* name, int size, Device device) {
  return of_device(__func__, device, [&](int) {
    if (!name || size <= 0) return INVALID_VALUE;
    snprintf(name, size, "%s", VENDOR.device);
    return SUCCESS;
  });
}

API int cuDeviceGetUuid_v2(char* uuid, Device device) {
  return of_device(__func__, device, [&](int ordinal) {
    if (!uuid) return INVALID_VALUE;
    memset(uuid, 0xfa, 16);
    uuid[15] = char(ordinal);
    return SUCCESS;
  });
}

API int cuDeviceTotalMem_v2(size_t* bytes, Device device) {
  return of_device(__func__, device, [&](int) {
    if (!bytes) return INVALID_VALUE;
    *bytes = machine().settings.memory;
    return SUCCESS;
  });
}

API int cuDeviceGetAttribute(int* value, int number, Device device) {
  return of_device(__func__, device, [&](int) {
    if (!value) return INVALID_VALUE;
    const int capability = capability_of(machine().settings.arch);
    for (const Attribute* one = VENDOR.attributes; one->number; ++one)
      if (one->number == number) {
        *value = one->value == MAJOR ? capability / 10 : one->value == MINOR ? capability % 10 : one->value;
        if (number == MULTIPROCESSORS) *value = multiprocessors();
        return SUCCESS;
      }
    return INVALID_VALUE;
  });
}

#ifdef FAKE_VENDOR_HIP
// The record of HIP 6, of which the architecture alone is told.
API int hipGetDevicePropertiesR0600(void* record, int device) {
  return of_device(__func__, device, [&](int) {
    const size_t bytes = 1472, arch_at = 1160, arch_bytes = 256;
    if (!record) return INVALID_VALUE;
    memset(record, 0, bytes);
    snprintf((char*)record + arch_at, arch_bytes, "%s", machine().settings.arch.c_str());
    return SUCCESS;
  });
}
#endif

API int cuDeviceGetPCIBusId(char* id, int size, Device device) {
  return of_device(__func__, device, [&](int ordinal) {
    if (!id || size < 13) return INVALID_VALUE;
    snprintf(id, size, "0000:%02X:00.0", 0x0a + ordinal);
    return SUCCESS;
  });
}

API int cuDevicePrimaryCtxRetain(Handle* handle, Device device) {
  return of_device(__func__, device, [&](int ordinal) {
    if (!handle) return INVALID_VALUE;
    Context*& context = machine().primary[ordinal];
    if (!context) {
      auto made = std::make_unique<Context>();
      context = made.get();
      context->ordinal = ordinal;
      context->handle = new_handle();
      machine().contexts[context->handle] = std::move(made);
    }
    ++context->retained;
    *handle = context->handle;
    return SUCCESS;
  });
}

API int cuDevicePrimaryCtxRelease_v2(Device device) {
  Lock lock(machine().lock);
  if (const Code code = injected(__func__)) return code;
  if (!machine().started) return NOT_INITIALIZED;
  const int ordinal = ordinal_of(device);
  if (ordinal < 0) return INVALID_DEVICE;
  Context* context = machine().primary[ordinal];
  if (!context) return INVALID_CONTEXT;
  if (--context->retained == 0) destroy(lock, *context);
  return SUCCESS;
}

API int cuCtxSetCurrent(Handle handle) {
  return without_context(__func__, [&] {
    const auto& all = machine().contexts;
    const auto found = all.find(handle);
    if (handle && found == all.end()) return INVALID_CONTEXT;
    if (handle && found->second->destroyed) return CONTEXT_IS_DESTROYED;
    current = handle;
    return SUCCESS;
  });
}

API int cuCtxGetCurrent(Handle* handle) {
  return without_context(__func__, [&] {
    if (!handle) return INVALID_VALUE;
    *handle = current;
    return SUCCESS;
  });
}
