// What tests ask of the fake beyond the driver's interface.
#pragma once

#include <stdint.h>

#include "api.hpp"

// Of all devices, now or since the process began.
struct FakeCudaStats {
  // Now: bytes of device memory as they were asked for, buffers, pinned host buffers, and the other things that are held.
  uint64_t bytes, buffers, host_buffers, streams, events, modules, graphs, executables, contexts;
  // The most bytes at once.
  uint64_t peak_bytes;
  // Since the beginning: kernels run, those of graphs among them; copies and fills run; graphs launched; captures begun.
  uint64_t launches, copies, graph_launches, captures;
  // Things that a context still had when it was released for the last time.
  uint64_t leaks;
  // Buffers in whose surroundings something was written.
  uint64_t overruns;
  // Faults of operations on a device.
  uint64_t faults;
  // Kernels that have run and might have begun early.
  uint64_t early_launches;
};

// The code that this call has to fail with, which it is counted for. The caller holds the machine's lock.
Code injected(const char* call);
