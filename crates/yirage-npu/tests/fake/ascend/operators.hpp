// Operators in two phases, and the elements of tensors as they run.
#pragma once

#include "objects.hpp"

#include <cmath>
#include <cstring>

// An executor that is being made; the first thing that is wrong with its operands is what it answers.
class FirstPhase {
public:
    FirstPhase(const char *call, uint64_t *workspace, aclOpExecutor **executor)
        : call(call), workspace(workspace), executor(executor) {
        code = machine().enter(call, false);
        if (!code && (!workspace || !executor)) fail(kAclnnNull, "a null pointer");
    }
    // An operand: it has to be there until the second phase has begun.
    Shaped in(const aclTensor *tensor) {
        if (!code && (!tensor || !tensor->alive)) fail(tensor ? kAclnnInvalid : kAclnnNull, "a tensor that is not there");
        if (code) return Shaped{{1}, {1}, 0, kF32, nullptr, 1};
        tensors.push_back(tensor);
        return *tensor;
    }
    double number(const aclScalar *scalar) {
        if (!code && (!scalar || !scalar->alive)) fail(scalar ? kAclnnInvalid : kAclnnNull, "a scalar that is not there");
        if (code) return 0;
        scalars.push_back(scalar);
        return scalar->value;
    }
    void want(bool holds, const char *why) {
        if (!code && !holds) fail(kAclnnInvalid, why);
    }
    // Ends the phase: what is to be done, and bytes that it wants to work in.
    int done(uint64_t bytes, Task task) {
        if (code) return code;
        *workspace = bytes;
        *executor = new aclOpExecutor{call, bytes, std::move(task), tensors, scalars};
        machine().count(&Stats::executors, 1);
        return kSuccess;
    }

private:
    void fail(int with, const char *why) { code = machine().refuse(call, with, why); }

    const char *call;
    uint64_t *workspace;
    aclOpExecutor **executor;
    int code;
    std::vector<const aclTensor *> tensors;
    std::vector<const aclScalar *> scalars;
};

int second_phase(const char *call, const char *first, void *workspace, uint64_t bytes, aclOpExecutor *executor, void *stream);

#define SECOND_PHASE(NAME)                                                                                      \
    EXPORTED int NAME(void *workspace, uint64_t bytes, aclOpExecutor *executor, void *stream) {                 \
        return second_phase(#NAME, #NAME "GetWorkspaceSize", workspace, bytes, executor, stream);               \
    }
