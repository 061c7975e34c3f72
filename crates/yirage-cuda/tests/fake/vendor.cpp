#include "vendor.hpp"

#include <stdlib.h>
#include <string.h>

#if defined(FAKE_VENDOR_HIP)
#include "facts_hip.hpp"
#elif defined(FAKE_VENDOR_MUSA)
#include "facts_musa.hpp"
#elif defined(FAKE_VENDOR_COREX)
#include "facts_corex.hpp"
#elif defined(FAKE_VENDOR_MACA)
#include "facts_maca.hpp"
#else
#include "facts_cuda.hpp"
#endif

int capability_of(const std::string& arch) {
  for (const char* before : {"sm_", "compute_", "mp_", "ivcore"})
    if (arch.compare(0, strlen(before), before) == 0) return atoi(arch.c_str() + strlen(before));
  return 0;
}
