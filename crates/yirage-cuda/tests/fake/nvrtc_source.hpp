// Kernels of a source in CUDA or HIP, found in its text.
#pragma once

#include <string>
#include <vector>

struct SourceKernel {
  std::string name;
  // What `__launch_bounds__` says, or 1024.
  std::string threads;
  int parameters;
  // Types of what it declares in shared memory.
  std::vector<std::string> shared;
};

// The kernels that are known by their own names, `extern "C"`; of others the compiler would make other names.
std::vector<SourceKernel> kernels_of(const std::string& source);

// What stands behind the source in C++: the table of its kernels, of which none may declare more shared memory than that.
std::string table_of(const std::vector<SourceKernel>& kernels, size_t most_shared);
