#include "vendor.hpp"

#include <stdlib.h>

#if defined(FAKE_VENDOR_HIP)
#include "facts_hip.hpp"
#elif defined(FAKE_VENDOR_MUSA)
#include "facts_musa.hpp"
#else
#include "facts_cuda.hpp"
#endif

int capability_of(const std::string& arch) {
  const size_t line = arch.find('_');
  return line == std::string::npos ? 0 : atoi(arch.c_str() + line + 1);
}
