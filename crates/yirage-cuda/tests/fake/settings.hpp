// What the fake machine is told, read once: by lines `NAME=VALUE` of the file `settings` in its library's folder, and where
// nothing stands there by the environment. Each copy of the library is a machine of its own.
// The names are the same for all vendors.
#pragma once

#include <stddef.h>

#include <string>

struct Settings {
  // FAKE_CUDA_DEVICES, 1 unless it is set.
  int devices;
  // FAKE_CUDA_MEMORY, bytes of each device, 8 GiB unless it is set.
  size_t memory;
  // FAKE_CUDA_MULTIPROCESSORS, those of the vendor's device unless it is set.
  int multiprocessors;
  // FAKE_CUDA_SEED, what delays and orders of threads are drawn from, 1 unless it is set. With 0 there are no delays.
  unsigned long long seed;
  // FAKE_CUDA_VERSION, the driver's: 13000, of HIP 60032830, of MUSA 40300 and of MACA 30003, unless it is set.
  int version;
  // FAKE_CUDA_ARCH, of each device as the driver tells it: `sm_90`, of HIP `gfx90a:sramecc+:xnack-` and of MUSA `mp_22`, unless
  // it is set.
  std::string arch;
  // FAKE_CUDA_FAIL, calls that fail: `CALL:NTH:CODE` and more of them behind commas.
  std::string fail;
};

Settings read_settings();
