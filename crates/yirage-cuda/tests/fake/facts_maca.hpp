// MetaX: a C500, its runtime and its compiler of MACA 3.
#pragma once

#include "options_clang.hpp"
#include "vendor.hpp"

namespace {

// Their numbers are in no public header.
const Attribute ATTRIBUTES[] = {{0, 0}};

// Code is made for the device at hand.
bool runs_on(const std::string&, const std::string&) { return true; }

// Nothing is known of what the compiler calls architectures.
bool is_arch(const std::string&, bool&) { return false; }

unsigned subgroup(const std::string&) { return 64; }

}  // namespace

const Vendor VENDOR = {
    /* device */ "MetaX C500",
    /* first */ 0,
    /* version */ 30003,
    /* arch */ "C500",
    /* attributes */ ATTRIBUTES,
    /* shared */ 65536,
    /* shared_by_request */ 65536,
    /* threads_along */ UINT32_MAX,
    /* runs_on */ runs_on,
    /* compiler_version */ {3, 0},
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
