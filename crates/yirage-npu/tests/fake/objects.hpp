// Descriptions of operands and executors, as libnnopbase.so makes them and libopapi.so reads them.
//
// What was given back is kept and marked, so that whoever uses it later is found.
#pragma once

#include "machine.hpp"

#include <memory>
#include <vector>

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

struct aclTensor : Shaped {
    bool alive = true;
};
struct aclScalar {
    double value;
    int32_t type;
    bool alive = true;
};
struct aclOpExecutor {
    const char *operation;
    uint64_t workspace;
    Task task;
    std::vector<const aclTensor *> tensors;
    std::vector<const aclScalar *> scalars;
    bool alive = true, repeatable = false;
};
