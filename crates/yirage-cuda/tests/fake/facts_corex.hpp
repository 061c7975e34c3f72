// Iluvatar: a BI-V150, its driver and its compiler of CoreX 4.2, which say to be those of CUDA 10.2.
#pragma once

#include "options_clang.hpp"
#include "vendor.hpp"

namespace {

// Numbers are CUDA's. What a launch may have along y and z is CUDA's too: the card's own is in no public document.
const Attribute ATTRIBUTES[] = {
    {1, 1024},        // threads of a block
    {2, 1024},        // and along x,
    {3, 1024},        // y
    {4, 64},          // and z
    {5, 0x7fffffff},  // blocks of a grid along x,
    {6, 65535},       // y
    {7, 65535},       // and z
    {8, 49152},       // shared memory of a block
    {9, 65536},       // constant memory
    {10, 64},         // threads of a warp
    {12, 65536},      // registers of a block
    {16, 32},         // multiprocessors
    {20, 0},          // compute mode: anybody's
    {31, 1},          // kernels at once
    {32, 1},          // ECC
    {38, 8388608},    // bytes of the L2 cache
    {39, 2048},       // threads of a multiprocessor
    {75, MAJOR},      // compute capability
    {76, MINOR},      //
    {0, 0},
};

// Code is made for the device at hand.
bool runs_on(const std::string&, const std::string&) { return true; }

// Nothing is known of what the compiler calls architectures.
bool is_arch(const std::string&, bool&) { return false; }

unsigned subgroup(const std::string&) { return 64; }

}  // namespace

const Vendor VENDOR = {
    /* device */ "Fake BI-V150",
    /* first */ 7,
    /* version */ 10020,
    /* arch */ "ivcore71",
    /* attributes */ ATTRIBUTES,
    /* shared */ 49152,
    /* shared_by_request */ 49152,
    /* threads_along */ UINT64_MAX,
    /* runs_on */ runs_on,
    /* compiler_version */ {10, 2},
    /* header */ "cuda.hpp",
    /* arch_options */ ARCH_OPTIONS,
    /* compiled_arch */ "the device's",
    /* is_arch */ is_arch,
    /* subgroup */ subgroup,
    /* contract_options */ CONTRACT_OPTIONS,
    /* other_options */ OTHER_OPTIONS,
    /* archs */ nullptr,
    /* arch_count */ 0,
};
