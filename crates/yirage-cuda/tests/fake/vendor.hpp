// What is one vendor's and not another's beside names: its devices, and its compiler's options. `facts_*.hpp` have them.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <string>

#include "api.hpp"

struct Attribute {
  int number, value;
};

// Values that the architecture says.
const int MAJOR = -1, MINOR = -2;

// An option, and whether products and sums may become one operation where it is given.
struct ContractOption {
  const char* text;
  bool contract;
};

// Lists end with a 0.
struct Vendor {
  // A device's name.
  const char* device;
  // The first device's handle.
  Device first;
  // What the driver says unless a setting says otherwise.
  int version;
  const char* arch;
  // By the numbers of the driver's interface.
  const Attribute* attributes;
  // Bytes of shared memory of a block, and of one that asks for more.
  size_t shared, shared_by_request;
  // Threads of a launch along x at most.
  uint64_t threads_along;
  // Whether code for an architecture runs on a device.
  bool (*runs_on)(const std::string& built_for, const std::string& device);

  // The compiler's version.
  int compiler_version[2];
  // What stands in for the words that the compiler knows without a header.
  const char* header;
  // Options in the form `NAME=ARCH`.
  const char* const* arch_options;
  // What the compiler makes code for unless it is told, or nothing where it has to be told.
  const char* compiled_arch;
  // Whether it makes code for that; `is_virtual` where that is no machine code.
  bool (*is_arch)(const std::string& value, bool& is_virtual);
  // Threads of a subgroup.
  unsigned (*subgroup)(const std::string& arch);
  const ContractOption* contract_options;
  // Options that say what the emulator does.
  const char* const* other_options;
  // The architectures' numbers that the compiler tells, if it does.
  const int* archs;
  int arch_count;
};

extern const Vendor VENDOR;

// 90 of `sm_90`, or 0 where architectures have no such number.
int capability_of(const std::string& arch);
