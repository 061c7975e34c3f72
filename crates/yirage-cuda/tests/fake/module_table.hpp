// The one thing that a module's shared object shows.
#pragma once

#include "grid.hpp"
#include "module.hpp"

struct ModuleTable {
  const ModuleKernel* kernels;
  void (*run_grid)(const emulator::Launch& launch);
  void (*describe)(char* text, size_t size, const char* why);
  // The driver's: where a launch that went wrong ends.
  void (*failed)(const char* text);
};
