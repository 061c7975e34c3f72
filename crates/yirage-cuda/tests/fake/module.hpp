// What the shared object of a module tells the driver. No header of the system is included here, so that a source of kernels is
// read in little time.
#pragma once

#include "emulator.hpp"

struct ModuleKernel {
  const char* name;
  // Threads of a block at most.
  unsigned threads;
  // Bytes of shared memory that its declarations take.
  unsigned shared;
  // Bytes of each parameter.
  unsigned parameters;
  const unsigned* sizes;
  // Whether each is a pointer by which the kernel writes.
  const bool* writes;
  // The buffers are the parameters' places.
  void (*run)(const emulator::Buffer* parameters);
};

// The module's kernels; the last one has no name.
extern const ModuleKernel module_kernels[];

template <class T>
constexpr bool is_written = false;
template <class T>
constexpr bool is_written<T*> = true;
template <class T>
constexpr bool is_written<const T*> = false;

template <class F>
struct ModuleParameters;
template <class... Parameters>
struct ModuleParameters<void(Parameters...)> {
  static const unsigned count = sizeof...(Parameters);
  static constexpr unsigned sizes[count + 1] = {sizeof(Parameters)..., 0};
  static constexpr bool writes[count + 1] = {is_written<Parameters>..., false};
};

// A parameter as whatever the kernel takes.
struct ModuleParameter {
  const void* place;
  template <class T>
  operator T() const {
    return *(const T*)place;
  }
};
