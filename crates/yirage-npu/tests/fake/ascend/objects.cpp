// libnnopbase.so: tensors, scalars, executors.
#include "objects.hpp"

#include <cstring>

EXPORTED aclTensor *aclCreateTensor(const int64_t *dims, uint64_t rank, int32_t type, const int64_t *strides, int64_t offset,
                                    int32_t format, const int64_t *storage, uint64_t storage_rank, void *data) {
    const char *call = "aclCreateTensor";
    if (machine().enter(call, false)) return nullptr;
    auto wrong = [&](const char *why) {
        machine().refuse(call, kAclInvalid, why);
        return nullptr;
    };
    if (!dims || !strides || !storage || !data) return wrong("a null pointer");
    if (!rank || rank > 8 || format != 2 || !element_bytes(type)) return wrong("a rank, format or type that is not known");
    auto made = new aclTensor;
    made->dims.assign(dims, dims + rank), made->strides.assign(strides, strides + rank);
    made->offset = offset, made->type = type, made->data = data, made->storage = 1;
    for (uint64_t i = 0; i < storage_rank; i++) made->storage *= storage[i];
    int64_t last = offset;
    for (uint64_t i = 0; i < rank; i++) {
        if (dims[i] <= 0 || strides[i] < 0) return wrong("no element, or a stride that goes backwards");
        last += (dims[i] - 1) * strides[i];
    }
    if (offset < 0 || last >= made->storage) return wrong("elements that are not in its storage");
    machine().count(&Stats::tensors, 1);
    return made;
}
EXPORTED int aclDestroyTensor(const aclTensor *tensor) {
    if (!tensor || !tensor->alive) return machine().refuse("aclDestroyTensor", kAclInvalid, "it is gone already");
    const_cast<aclTensor *>(tensor)->alive = false;
    machine().count(&Stats::tensors, -1);
    return kSuccess;
}
EXPORTED aclScalar *aclCreateScalar(void *value, int32_t type) {
    if (machine().enter("aclCreateScalar", false)) return nullptr;
    double number = 0;
    if (type == kF32) {
        float read;
        memcpy(&read, value, sizeof read), number = read;
    } else if (type == kI32) {
        int32_t read;
        memcpy(&read, value, sizeof read), number = read;
    } else {
        machine().refuse("aclCreateScalar", kAclInvalid, "a type that is not known");
        return nullptr;
    }
    machine().count(&Stats::descriptions, 1);
    return new aclScalar{number, type};
}
EXPORTED int aclDestroyScalar(const aclScalar *scalar) {
    if (!scalar || !scalar->alive) return machine().refuse("aclDestroyScalar", kAclInvalid, "it is gone already");
    const_cast<aclScalar *>(scalar)->alive = false;
    machine().count(&Stats::descriptions, -1);
    return kSuccess;
}
EXPORTED int aclSetAclOpExecutorRepeatable(aclOpExecutor *executor) {
    if (!executor || !executor->alive)
        return machine().refuse("aclSetAclOpExecutorRepeatable", kAclnnInvalid, "it is gone already");
    executor->repeatable = true;
    return kSuccess;
}
EXPORTED int aclDestroyAclOpExecutor(aclOpExecutor *executor) {
    const char *call = "aclDestroyAclOpExecutor";
    if (!executor || !executor->alive) return machine().refuse(call, kAclnnInvalid, "it is gone already");
    if (!executor->repeatable) return machine().refuse(call, kAclnnInvalid, "it is not repeatable: running it takes it");
    executor->alive = false;
    machine().count(&Stats::executors, -1);
    return kSuccess;
}
