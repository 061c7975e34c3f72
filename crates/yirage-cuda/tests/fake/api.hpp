// Types and codes of the driver's interface, as its own header has them. All vendors' are those of CUDA's; which vendor's names
// the functions get is said by a definition, FAKE_VENDOR_HIP, FAKE_VENDOR_MUSA, FAKE_VENDOR_COREX or FAKE_VENDOR_MACA, and without
// one they are NVIDIA's.
#pragma once

#include <stddef.h>
#include <stdint.h>

#if defined(FAKE_VENDOR_HIP)
#include "names_hip.hpp"
#elif defined(FAKE_VENDOR_MUSA)
#include "names_musa.hpp"
#elif defined(FAKE_VENDOR_COREX)
#include "names_corex.hpp"
#elif defined(FAKE_VENDOR_MACA)
#include "names_maca.hpp"
#else
#include "names_cuda.hpp"
#endif

#define API extern "C" __attribute__((visibility("default")))

typedef int Device;
typedef uint64_t Address;
typedef void* Handle;

enum Code : int {
  SUCCESS = 0,
  INVALID_VALUE = 1,
  OUT_OF_MEMORY = 2,
  NOT_INITIALIZED = 3,
  // HIP's alone.
  INVALID_CONFIGURATION = 9,
  NO_DEVICE = 100,
  INVALID_DEVICE = 101,
  INVALID_IMAGE = 200,
  INVALID_CONTEXT = 201,
  NO_BINARY_FOR_GPU = 209,
  INVALID_HANDLE = 400,
  ILLEGAL_STATE = 401,
  NOT_FOUND = 500,
  NOT_READY = 600,
  ILLEGAL_ADDRESS = 700,
  LAUNCH_OUT_OF_RESOURCES = 701,
  CONTEXT_IS_DESTROYED = 709,
  LAUNCH_FAILED = 719,
  COOPERATIVE_LAUNCH_TOO_LARGE = 720,
  NOT_SUPPORTED = 801,
  STREAM_CAPTURE_UNSUPPORTED = 900,
  STREAM_CAPTURE_INVALIDATED = 901,
  STREAM_CAPTURE_MERGE = 902,
  STREAM_CAPTURE_UNMATCHED = 903,
  STREAM_CAPTURE_UNJOINED = 904,
  STREAM_CAPTURE_ISOLATION = 905,
  CAPTURED_EVENT = 907,
  STREAM_CAPTURE_WRONG_THREAD = 908,
};
