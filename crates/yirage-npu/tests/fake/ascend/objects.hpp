// Descriptions of operands and executors, as libnnopbase.so makes them and libopapi.so reads them.
//
// What was given back is kept and marked, so that whoever uses it later is found.
#pragma once

#include "../elements.hpp"

#include <memory>
#include <vector>

enum : int { kAclnnNull = 161001, kAclnnInvalid = 161002, kAclInvalid = 100000 };

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
