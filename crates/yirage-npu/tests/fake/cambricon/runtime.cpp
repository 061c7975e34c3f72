// libcnrt.so: memory, queues, notifiers, by the prototypes of cnrt.h. A thread's device is the first one until it chooses another.
#include "../runtime.hpp"

const Codes codes{100006, 632019, 100005, 100100, 1, 100132};

namespace {

Context *context_of(int device) {
    static Context *all[16];
    if (!all[device]) all[device] = fake::new_context(device, false);
    return all[device];
}
void here() {
    if (!fake::current()) fake::current() = context_of(0);
}

}  // namespace

// For libcnnl.so: the device of the calling thread.
EXPORTED int fakeDevice() {
    here();
    return fake::current()->device;
}

EXPORTED int cnrtGetDevice(int *device) {
    if (int code = machine().enter("cnrtGetDevice", false)) return code;
    *device = fakeDevice();
    return kSuccess;
}
EXPORTED int cnrtSetDevice(int device) {
    const char *call = "cnrtSetDevice";
    if (int code = machine().enter(call, false)) return code;
    if (device < 0 || uint32_t(device) >= machine().settings().devices || device >= 16)
        return machine().refuse(call, codes.no_device, "there is no such device");
    fake::current() = context_of(device);
    return kSuccess;
}
EXPORTED int cnrtMemGetInfo(size_t *left, size_t *all) {
    here();
    return fake::memory_left("cnrtMemGetInfo", left, all);
}
EXPORTED int cnrtMalloc(void **address, size_t size) {
    here();
    return fake::alloc("cnrtMalloc", address, size);
}
EXPORTED int cnrtFree(void *address) {
    here();
    return fake::release("cnrtFree", address);
}
EXPORTED int cnrtHostMalloc(void **address, size_t size) {
    here();
    return fake::alloc_host("cnrtHostMalloc", address, size);
}
EXPORTED int cnrtFreeHost(void *address) {
    here();
    return fake::release_host("cnrtFreeHost", address);
}
EXPORTED int cnrtMemcpyAsync_V2(void *to, void *from, size_t bytes, void *queue, int kind) {
    const char *call = "cnrtMemcpyAsync_V2";
    here();
    if (kind < 0 || kind > 2) return machine().refuse(call, 632013, "no such direction");
    Direction direction = kind == 0 ? Direction::to_device : kind == 2 ? Direction::to_host : Direction::on_device;
    return fake::copy(call, to, from, bytes, direction, queue);
}
EXPORTED int cnrtMemsetAsync(void *to, int value, size_t bytes, void *queue) {
    here();
    return fake::fill("cnrtMemsetAsync", to, value, bytes, queue);
}
EXPORTED int cnrtQueueCreate(void **queue) {
    here();
    return fake::new_stream("cnrtQueueCreate", queue, true);
}
EXPORTED int cnrtQueueDestroy(void *queue) {
    here();
    return fake::drop_stream("cnrtQueueDestroy", queue);
}
EXPORTED int cnrtQueueQuery(void *queue) {
    here();
    return fake::wait("cnrtQueueQuery", queue, 0);
}
EXPORTED int cnrtQueueSync(void *queue) {
    here();
    return fake::wait("cnrtQueueSync", queue, -1);
}
EXPORTED int cnrtNotifierCreate(void **notifier) {
    here();
    return fake::new_event("cnrtNotifierCreate", notifier);
}
EXPORTED int cnrtNotifierDestroy(void *notifier) {
    here();
    return fake::drop_event("cnrtNotifierDestroy", notifier);
}
EXPORTED int cnrtPlaceNotifier(void *notifier, void *queue) {
    here();
    return fake::record("cnrtPlaceNotifier", notifier, queue);
}
EXPORTED int cnrtQueryNotifier(void *notifier) {
    here();
    bool happened = false;
    int code = fake::query("cnrtQueryNotifier", notifier, &happened);
    return code ? code : happened ? kSuccess : codes.not_yet;
}
