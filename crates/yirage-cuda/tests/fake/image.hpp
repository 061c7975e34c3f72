// What the fake compiler gives for machine code and the same vendor's fake driver takes for it: a header, and a shared object
// of this machine.
#pragma once

#include <stdint.h>

#include "api.hpp"

struct ImageHeader {
  char magic[16];
  // Of the shared object behind the header.
  uint64_t bytes;
  // `sm_90` and the like.
  char arch[64];
  // What the compiler was told.
  char options[424];
};

const char IMAGE_MAGIC[16] = "fake " PLATFORM " code";
