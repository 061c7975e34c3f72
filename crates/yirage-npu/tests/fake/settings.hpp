// What a machine is told by the file `settings` beside its libraries.
#pragma once

#include <cstdint>
#include <string>

struct Settings {
    uint32_t devices = 1;
    uint64_t memory = 1ull << 30;
    uint32_t delay_us = 0, seed = 1;
    std::string chip;
    // The first of the three numbers of the interface's version; -1 is the maker's own.
    int version = -1;
    // What is added to numbers that no public header has, and whether conversions to 16 bits saturate.
    int numbers = 0;
    bool saturates = false;

    Settings();
};
