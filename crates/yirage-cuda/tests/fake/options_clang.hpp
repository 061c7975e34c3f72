// Options of compilers that are made of clang.
#pragma once

#include "vendor.hpp"

namespace {

const char* const ARCH_OPTIONS[] = {"--offload-arch", nullptr};
const ContractOption CONTRACT_OPTIONS[] = {
    {"-ffp-contract=off", false}, {"-ffp-contract=on", true}, {"-ffp-contract=fast", true}, {nullptr, false}};
const char* const OTHER_OPTIONS[] = {"-std=c++17", "--std=c++17", "-w", nullptr};

}  // namespace
