// Modules and their functions.
#pragma once

#include "machine.hpp"
#include "module_table.hpp"

struct Module {
  Context* context;
  void* library = nullptr;
  ModuleTable* table = nullptr;
  // What still stands in a queue must not run any more.
  bool unloaded = false;

  ~Module();
};

struct Function {
  Context* context;
  std::shared_ptr<Module> module;
  const ModuleKernel* kernel;
  // Bytes of shared memory that a launch may ask for.
  size_t most_shared;
};
