#include "modules.hpp"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <string>

#include "faults.hpp"
#include "graphs.hpp"
#include "image.hpp"
#include "vendor.hpp"

namespace {

enum FunctionAttribute {
  MOST_THREADS_OF_BLOCK = 0,
  SHARED_BYTES = 1,
  CONSTANT_BYTES = 2,
  LOCAL_BYTES = 3,
  REGISTERS_USED = 4,
  PTX_VERSION = 5,
  BINARY_VERSION = 6,
  MOST_DYNAMIC_SHARED = 8,
  CARVEOUT = 9,
};

// A file with these bytes, which is gone as soon as it is opened: each module has its own variables.
void* open_library(const char* bytes, size_t count) {
  const char* folder = getenv("TMPDIR");
  std::string path = std::string(folder ? folder : "/tmp") + "/fake-cuda-module-XXXXXX";
  const int file = mkstemp(path.data());
  if (file < 0) return nullptr;
  bool whole = true;
  for (size_t done = 0; whole && done < count;) {
    const ssize_t wrote = write(file, bytes + done, count - done);
    whole = wrote > 0;
    done += whole ? size_t(wrote) : 0;
  }
  close(file);
  void* library = whole ? dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  const char* why = library ? nullptr : whole ? dlerror() : "there is no room for its file";
  if (why) fprintf(stderr, "fake " PLATFORM ": a module is not loaded: %s\n", why);
  unlink(path.c_str());
  return library;
}

Code function_of(const Context& context, Handle handle, std::shared_ptr<Function>& function) {
  TRY(of_context(machine().functions, handle, context, function));
  return function->module->unloaded ? INVALID_HANDLE : SUCCESS;
}

}  // namespace

Module::~Module() {
  if (library) dlclose(library);
}

API int cuModuleLoadData(Handle* handle, const void* image) {
  return in_context(__func__, [&](Context& context, Lock&) {
    if (!handle || !image) return INVALID_VALUE;
    TRY(refused_in_capture());
    ImageHeader header;
    // What is no image may end before a header does.
    if (strncmp((const char*)image, IMAGE_MAGIC, sizeof IMAGE_MAGIC)) return INVALID_IMAGE;
    memcpy(&header, image, sizeof header);
    if (!VENDOR.runs_on(header.arch, machine().settings.arch)) return NO_BINARY_FOR_GPU;
    auto module = std::make_shared<Module>();
    module->context = &context;
    module->library = open_library((const char*)image + sizeof header, header.bytes);
    if (!module->library) return INVALID_IMAGE;
    module->table = (ModuleTable*)dlsym(module->library, "module_table");
    if (!module->table) return INVALID_IMAGE;
    module->table->failed = land;
    *handle = machine().modules.add(module);
    return SUCCESS;
  });
}

// It waits for nothing: a launch of its functions that has not run is a fault of the context.
API int cuModuleUnload(Handle handle) {
  return in_context(__func__, [&](Context& context, Lock&) {
    std::shared_ptr<Module> module;
    TRY(of_context(machine().modules, handle, context, module));
    TRY(refused_in_capture());
    module->unloaded = true;
    machine().modules.all.erase(handle);
    auto& functions = machine().functions.all;
    for (auto at = functions.begin(); at != functions.end();)
      at = at->second->module == module ? functions.erase(at) : std::next(at);
    return SUCCESS;
  });
}

API int cuModuleGetFunction(Handle* handle, Handle module_handle, const char* name) {
  return in_context(__func__, [&](Context& context, Lock&) {
    std::shared_ptr<Module> module;
    if (!handle || !name) return INVALID_VALUE;
    TRY(of_context(machine().modules, module_handle, context, module));
    const ModuleKernel* kernel = module->table->kernels;
    while (kernel->name && strcmp(kernel->name, name)) ++kernel;
    if (!kernel->name) return NOT_FOUND;
    auto function = std::make_shared<Function>();
    *function = {&context, module, kernel, VENDOR.shared - kernel->shared};
    *handle = machine().functions.add(function);
    return SUCCESS;
  });
}

#if !defined(FAKE_VENDOR_HIP) && !defined(FAKE_VENDOR_MACA)
API int cuFuncSetAttribute(Handle handle, int attribute, int value) {
  return in_context(__func__, [&](Context& context, Lock&) {
    std::shared_ptr<Function> function;
    TRY(function_of(context, handle, function));
    switch (attribute) {
      case MOST_DYNAMIC_SHARED:
        if (value < 0 || size_t(value) > VENDOR.shared_by_request - function->kernel->shared) return INVALID_VALUE;
        function->most_shared = size_t(value);
        return SUCCESS;
      case CARVEOUT: return value >= -1 && value <= 100 ? SUCCESS : INVALID_VALUE;
      default: return INVALID_VALUE;
    }
  });
}
#endif

API int cuFuncGetAttribute(int* value, int attribute, Handle handle) {
  return in_context(__func__, [&](Context& context, Lock&) {
    std::shared_ptr<Function> function;
    if (!value) return INVALID_VALUE;
    TRY(function_of(context, handle, function));
    switch (attribute) {
      case MOST_THREADS_OF_BLOCK: *value = int(function->kernel->threads); return SUCCESS;
      case SHARED_BYTES: *value = int(function->kernel->shared); return SUCCESS;
      case CONSTANT_BYTES:
      case LOCAL_BYTES: *value = 0; return SUCCESS;
      case REGISTERS_USED: *value = 32; return SUCCESS;
      case PTX_VERSION:
      case BINARY_VERSION: *value = capability_of(machine().settings.arch); return SUCCESS;
      case MOST_DYNAMIC_SHARED: *value = int(function->most_shared); return SUCCESS;
      default: return INVALID_VALUE;
    }
  });
}
