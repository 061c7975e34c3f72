// libascendcl.so: contexts, memory, streams, events, by the prototypes of acl/acl_rt.h.
#include "../runtime.hpp"

const Codes codes{100000, 107002, 107001, 207001, 507046, 507015};

namespace {

enum : int { kRepeated = 100002 };

bool started = false;

}  // namespace

EXPORTED int aclrtGetVersion(int *major, int *minor, int *patch) {
    int version = machine().settings().version;
    *major = version < 0 ? 1 : version, *minor = version < 0 ? 14 : 0, *patch = 0;
    return kSuccess;
}
EXPORTED int aclInit(const char *settings) {
    if (settings) return machine().refuse("aclInit", codes.invalid, "no settings are known");
    if (int code = machine().enter("aclInit", false)) return code;
    if (started) return kRepeated;
    started = true;
    return kSuccess;
}
EXPORTED const char *aclGetRecentErrMsg() { return fake::recent(); }
EXPORTED int aclrtGetDeviceCount(uint32_t *count) {
    *count = machine().settings().devices;
    return machine().enter("aclrtGetDeviceCount", false);
}
EXPORTED const char *aclrtGetSocName() {
    const std::string &chip = machine().settings().chip;
    return chip.empty() ? "Ascend910B3" : chip.c_str();
}
EXPORTED int aclrtSetDevice(int32_t device) {
    static Context *defaults[16];
    if (device < 0 || uint32_t(device) >= machine().settings().devices || device >= 16) return codes.no_device;
    if (!defaults[device]) defaults[device] = fake::new_context(device, false);
    fake::current() = defaults[device];
    return kSuccess;
}
EXPORTED int aclrtResetDevice(int32_t) {
    fake::current() = nullptr;
    return kSuccess;
}
EXPORTED int aclrtCreateContext(void **context, int32_t device) {
    const char *call = "aclrtCreateContext";
    if (int code = machine().enter(call, false)) return code;
    if (!started) return machine().refuse(call, codes.invalid, "aclInit was not called");
    if (device < 0 || uint32_t(device) >= machine().settings().devices)
        return machine().refuse(call, codes.no_device, "there is no such device");
    *context = fake::current() = fake::new_context(device, true);
    return kSuccess;
}
EXPORTED int aclrtDestroyContext(void *context) { return fake::drop_context("aclrtDestroyContext", context); }
EXPORTED int aclrtGetCurrentContext(void **context) {
    if (!fake::is_context(fake::current())) return codes.no_context;
    *context = fake::current();
    return kSuccess;
}
EXPORTED int aclrtSetCurrentContext(void *context) {
    const char *call = "aclrtSetCurrentContext";
    if (int code = machine().enter(call, false)) return code;
    if (!fake::is_context(context)) return machine().refuse(call, codes.invalid, "there is no such context");
    fake::current() = static_cast<Context *>(context);
    return kSuccess;
}
EXPORTED int aclrtGetMemInfo(int kind, size_t *left, size_t *all) {
    if (kind != 1) return machine().refuse("aclrtGetMemInfo", codes.invalid, "no such memory");
    return fake::memory_left("aclrtGetMemInfo", left, all);
}
EXPORTED int aclrtMalloc(void **address, size_t size, int policy) {
    if (policy < 0 || policy > 4) return machine().refuse("aclrtMalloc", codes.invalid, "no such policy");
    return fake::alloc("aclrtMalloc", address, size);
}
EXPORTED int aclrtFree(void *address) { return fake::release("aclrtFree", address); }
EXPORTED int aclrtMallocHost(void **address, size_t size) { return fake::alloc_host("aclrtMallocHost", address, size); }
EXPORTED int aclrtFreeHost(void *address) { return fake::release_host("aclrtFreeHost", address); }
EXPORTED int aclrtMemcpyAsync(void *to, size_t room, const void *from, size_t bytes, int kind, void *stream) {
    const char *call = "aclrtMemcpyAsync";
    if (bytes > room || kind < 1 || kind > 3) return machine().refuse(call, codes.invalid, "bytes that do not fit");
    Direction direction = kind == 1 ? Direction::to_device : kind == 2 ? Direction::to_host : Direction::on_device;
    return fake::copy(call, to, from, bytes, direction, stream);
}
EXPORTED int aclrtMemsetAsync(void *to, size_t room, int32_t value, size_t bytes, void *stream) {
    const char *call = "aclrtMemsetAsync";
    if (bytes > room) return machine().refuse(call, codes.invalid, "bytes that do not fit");
    return fake::fill(call, to, value, bytes, stream);
}
EXPORTED int aclrtCreateStream(void **stream) { return fake::new_stream("aclrtCreateStream", stream, false); }
EXPORTED int aclrtDestroyStream(void *stream) { return fake::drop_stream("aclrtDestroyStream", stream); }
EXPORTED int aclrtSetStreamFailureMode(void *stream, uint64_t mode) {
    const char *call = "aclrtSetStreamFailureMode";
    if (mode > 1) return machine().refuse(call, codes.invalid, "no such mode");
    return fake::stop_on_failure(call, stream, mode == 1);
}
EXPORTED int aclrtSynchronizeStreamWithTimeout(void *stream, int32_t milliseconds) {
    return fake::wait("aclrtSynchronizeStreamWithTimeout", stream, milliseconds);
}
EXPORTED int aclrtCreateEvent(void **event) { return fake::new_event("aclrtCreateEvent", event); }
EXPORTED int aclrtDestroyEvent(void *event) { return fake::drop_event("aclrtDestroyEvent", event); }
EXPORTED int aclrtRecordEvent(void *event, void *stream) { return fake::record("aclrtRecordEvent", event, stream); }
EXPORTED int aclrtQueryEventStatus(void *event, int *status) {
    bool happened = false;
    int code = fake::query("aclrtQueryEventStatus", event, &happened);
    *status = happened ? 1 : 0;
    return code;
}
