// NVIDIA: an H200, its driver and its compiler of CUDA 13.0.
#pragma once

#include <algorithm>
#include <iterator>

#include "vendor.hpp"

namespace {

const Attribute ATTRIBUTES[] = {
    {1, 1024},         // threads of a block
    {2, 1024},         // and along x,
    {3, 1024},         // y
    {4, 64},           // and z
    {5, 0x7fffffff},   // blocks of a grid along x,
    {6, 65535},        // y
    {7, 65535},        // and z
    {8, 49152},        // shared memory of a block
    {9, 65536},        // constant memory
    {10, 32},          // threads of a warp
    {12, 65536},       // registers of a block
    {13, 1980000},     // kHz
    {16, 132},         // multiprocessors
    {17, 0},           // a launch has no time limit
    {20, 0},           // compute mode: anybody's
    {31, 1},           // kernels at once
    {32, 1},           // ECC
    {36, 3201000},     // kHz of its memory
    {37, 6144},        // bits of its memory's bus
    {38, 62914560},    // bytes of the L2 cache
    {39, 2048},        // threads of a multiprocessor
    {40, 3},           // copies at once
    {41, 1},           // one address space
    {75, MAJOR},       // compute capability
    {76, MINOR},       //
    {78, 1},           // priorities of streams
    {81, 233472},      // shared memory of a multiprocessor
    {82, 65536},       // registers of a multiprocessor
    {83, 1},           // managed memory
    {95, 1},           // cooperative launches
    {97, 232448},      // shared memory of a block that asks for it
    {106, 32},         // blocks of a multiprocessor
    {115, 0},          // no memory pools
    {0, 0},
};

const int ARCHS[] = {75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121};
const char* const ARCH_OPTIONS[] = {"--gpu-architecture", "-arch", nullptr};
const ContractOption CONTRACT_OPTIONS[] = {
    {"--fmad=true", true}, {"--fmad=false", false}, {"-fmad=true", true}, {"-fmad=false", false}, {nullptr, false}};
const char* const OTHER_OPTIONS[] = {
    "--std=c++17",          "-std=c++17",           "--ftz=false",        "-ftz=false", "--prec-div=true",
    "-prec-div=true",       "--prec-sqrt=true",     "-prec-sqrt=true",    "--restrict", "-restrict",
    "-default-device",      "--generate-line-info", "--disable-warnings", "-lineinfo",  "--device-as-default-execution-space",
    "-w",                   nullptr};

// Machine code of one generation runs on later ones of it alone.
bool runs_on(const std::string& built_for, const std::string& device) {
  const int built = capability_of(built_for), own = capability_of(device);
  return built / 10 == own / 10 && built <= own;
}

bool is_arch(const std::string& value, bool& is_virtual) {
  is_virtual = value.compare(0, 8, "compute_") == 0;
  const int number = capability_of(value);
  if (std::find(std::begin(ARCHS), std::end(ARCHS), number) == std::end(ARCHS)) return false;
  const std::string digits = std::to_string(number);
  return value == "compute_" + digits || value == "sm_" + digits || (number >= 90 && value == "sm_" + digits + "a");
}

unsigned subgroup(const std::string&) { return 32; }

}  // namespace

// A handle is no ordinal.
const Vendor VENDOR = {
    /* device */ "Fake H200",
    /* first */ 7,
    /* version */ 13000,
    /* arch */ "sm_90",
    /* attributes */ ATTRIBUTES,
    /* shared */ 49152,
    /* shared_by_request */ 232448,
    /* threads_along */ UINT64_MAX,
    /* runs_on */ runs_on,
    /* compiler_version */ {13, 0},
    /* header */ "cuda.hpp",
    /* arch_options */ ARCH_OPTIONS,
    /* compiled_arch */ "sm_75",
    /* is_arch */ is_arch,
    /* subgroup */ subgroup,
    /* contract_options */ CONTRACT_OPTIONS,
    /* other_options */ OTHER_OPTIONS,
    /* archs */ ARCHS,
    /* arch_count */ int(std::size(ARCHS)),
};
