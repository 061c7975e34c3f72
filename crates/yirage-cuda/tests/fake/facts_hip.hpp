// AMD: a device of CDNA 2, its runtime and its compiler of ROCm 6.0.
#pragma once

#include <algorithm>
#include <iterator>
#include <vector>

#include "options_clang.hpp"
#include "vendor.hpp"

namespace {

// Numbers are HIP's own: this one is of multiprocessors.
const Attribute ATTRIBUTES[] = {{63, 104}, {0, 0}};

const char* const PROCESSORS[] = {"gfx900",  "gfx906",  "gfx908",  "gfx90a",  "gfx926",  "gfx928",  "gfx936",  "gfx940",
                                  "gfx941",  "gfx942",  "gfx950",  "gfx1010", "gfx1012", "gfx1030", "gfx1031", "gfx1032",
                                  "gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1200", "gfx1201"};
const char* const FEATURES[] = {"sramecc+", "sramecc-", "xnack+", "xnack-"};

template <size_t N>
bool is_one_of(const char* const (&all)[N], const std::string& word) {
  return std::find(std::begin(all), std::end(all), word) != std::end(all);
}

// The processor, and the features behind it.
std::vector<std::string> words_of(const std::string& arch) {
  std::vector<std::string> words(1);
  for (char letter : arch)
    if (letter == ':')
      words.emplace_back();
    else
      words.back() += letter;
  return words;
}

// Code is for one processor. Where it says nothing of a feature it runs with and without that.
bool runs_on(const std::string& built_for, const std::string& device) {
  const std::vector<std::string> built = words_of(built_for), own = words_of(device);
  return built[0] == own[0] && std::all_of(built.begin(), built.end(), [&](const std::string& word) {
           return std::find(own.begin(), own.end(), word) != own.end();
         });
}

bool is_arch(const std::string& value, bool& is_virtual) {
  is_virtual = false;
  const std::vector<std::string> words = words_of(value);
  return is_one_of(PROCESSORS, words[0]) &&
         std::all_of(words.begin() + 1, words.end(), [](const std::string& word) { return is_one_of(FEATURES, word); });
}

// RDNA's processors have subgroups of half the size.
unsigned subgroup(const std::string& arch) {
  const std::string family = arch.substr(0, 5);
  return family == "gfx10" || family == "gfx11" || family == "gfx12" ? 32 : 64;
}

}  // namespace

// A handle is the ordinal, and threads of a launch are counted with 32 bits. HIPRTC tells the same version whatever it is.
const Vendor VENDOR = {
    /* device */ "Fake MI210",
    /* first */ 0,
    /* version */ 60032830,
    /* arch */ "gfx90a:sramecc+:xnack-",
    /* attributes */ ATTRIBUTES,
    /* shared */ 65536,
    /* shared_by_request */ 65536,
    /* threads_along */ UINT32_MAX,
    /* runs_on */ runs_on,
    /* compiler_version */ {9, 0},
    /* header */ "hip.hpp",
    /* arch_options */ ARCH_OPTIONS,
    /* compiled_arch */ nullptr,
    /* is_arch */ is_arch,
    /* subgroup */ subgroup,
    /* contract_options */ CONTRACT_OPTIONS,
    /* other_options */ OTHER_OPTIONS,
    /* archs */ nullptr,
    /* arch_count */ 0,
};
