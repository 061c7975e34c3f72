// The system's C++ compiler as NVRTC or one of its kin.
#pragma once

#include <string>
#include <vector>

// What options ask for. Those that the emulator cannot do are not known.
struct CompileOptions {
  std::string arch;
  // `compute_90`, of which no machine code is made.
  bool is_virtual = false;
  // Products and sums may become one operation, as they do unless an option forbids it.
  bool contract = true;
  std::vector<std::string> definitions;
  std::string all;
};

// Whether all options are known; else `log` says which is not.
bool read_options(int count, const char* const* given, CompileOptions& options, std::string& log);

// Makes an image of a source. Without one the log says why.
bool compile(const std::string& source, const std::string& name, const CompileOptions& options, std::string& image,
             std::string& log);
