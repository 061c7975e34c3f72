// The elements of tensors as operators read and write them.
#pragma once

#include "machine.hpp"

#include <vector>

// As ACL numbers them.
enum DataType : int32_t { kF32 = 0, kF16 = 1, kI32 = 3, kBool = 12, kBF16 = 27 };

inline uint64_t element_bytes(int32_t type) {
    switch (type) {
        case kF32:
        case kI32: return 4;
        case kF16:
        case kBF16: return 2;
        case kBool: return 1;
        default: return 0;
    }
}

// A tensor, as it is when a task is made of it.
struct Shaped {
    std::vector<int64_t> dims, strides;
    int64_t offset;
    int32_t type;
    const void *data;
    int64_t storage;

    int64_t elements() const {
        int64_t all = 1;
        for (auto n : dims) all *= n;
        return all;
    }
};

bool is_float(int32_t type);

// The shape of all together, empty where there is none.
std::vector<int64_t> spread(const std::vector<int64_t> &a, const std::vector<int64_t> &b);

// The elements of a tensor in the order of its dimensions, spread to `dims`; false where they are not in the device's memory.
bool load(Device &device, const Shaped &tensor, const std::vector<int64_t> &dims, std::vector<double> &elements);
bool load(Device &device, const Shaped &tensor, std::vector<double> &elements);
bool store(Device &device, const Shaped &tensor, const std::vector<double> &elements);

// Products of as many matrices of `rank` dimensions; false where they do not fit each other.
bool products_fit(const Shaped &a, const Shaped &b, const Shaped &out, size_t rank);
bool products(Device &device, const Shaped &a, const Shaped &b, const Shaped &out);
