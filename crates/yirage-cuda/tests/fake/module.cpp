// The part of a module's shared object that runs its kernels; a source of kernels is linked to it, and the emulator's grid.
#include "module_table.hpp"

extern "C" __attribute__((visibility("default"))) ModuleTable module_table;
ModuleTable module_table = {module_kernels, emulator::run_grid, emulator::describe, nullptr};

void emulator::failed(const char* text) {
  module_table.failed(text);
  __builtin_unreachable();
}
