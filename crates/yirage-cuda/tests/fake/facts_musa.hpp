// Moore Threads: an MTT S4000, its driver and its compiler of MUSA 4.3.
#pragma once

#include <algorithm>
#include <iterator>

#include "options_clang.hpp"
#include "vendor.hpp"

namespace {

// Numbers are CUDA's. What a launch may have along y and z is less here than on the device.
const Attribute ATTRIBUTES[] = {
    {1, 1024},        // threads of a block
    {2, 1024},        // and along x,
    {3, 1024},        // y
    {4, 64},          // and z
    {5, 0x7fffffff},  // blocks of a grid along x,
    {6, 65535},       // y
    {7, 65535},       // and z
    {8, 73728},       // shared memory of a block
    {9, 8192},        // constant memory
    {10, 128},        // threads of a warp, of which subgroups are quarters
    {12, 262144},     // registers of a block
    {16, 56},         // multiprocessors
    {20, 0},          // compute mode: anybody's
    {31, 1},          // kernels at once
    {32, 1},          // ECC
    {38, 25165824},   // bytes of the L2 cache
    {39, 6144},       // threads of a multiprocessor
    {75, MAJOR},      // compute capability
    {76, MINOR},      //
    {0, 0},
};

const char* const ARCHS[] = {"mp_21", "mp_22", "mp_31"};

// Nothing is told of code that runs on other architectures.
bool runs_on(const std::string& built_for, const std::string& device) { return built_for == device; }

bool is_arch(const std::string& value, bool& is_virtual) {
  is_virtual = false;
  return std::find(std::begin(ARCHS), std::end(ARCHS), value) != std::end(ARCHS);
}

unsigned subgroup(const std::string&) { return 32; }

}  // namespace

const Vendor VENDOR = {
    /* device */ "Fake MTT S4000",
    /* first */ 7,
    /* version */ 40300,
    /* arch */ "mp_22",
    /* attributes */ ATTRIBUTES,
    /* shared */ 73728,
    /* shared_by_request */ 73728,
    /* threads_along */ UINT64_MAX,
    /* runs_on */ runs_on,
    /* compiler_version */ {4, 3},
    /* header */ "cuda.hpp",
    /* arch_options */ ARCH_OPTIONS,
    /* compiled_arch */ nullptr,
    /* is_arch */ is_arch,
    /* subgroup */ subgroup,
    /* contract_options */ CONTRACT_OPTIONS,
    /* other_options */ OTHER_OPTIONS,
    /* archs */ nullptr,
    /* arch_count */ 0,
};
