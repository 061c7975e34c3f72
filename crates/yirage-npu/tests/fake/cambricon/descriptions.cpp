// Handles and descriptions, and what every call of libcnnl.so has to hold.
#include "descriptions.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>

namespace {

// The device of this thread, as the runtime beside this library has it.
int device_here() {
    static auto *get = [] {
        Dl_info info;
        if (!dladdr(reinterpret_cast<void *>(&device_here), &info)) abort();
        std::string path = info.dli_fname;
        path = path.substr(0, path.rfind('/')) + "/" RUNTIME_LIBRARY;
        void *runtime = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        auto found = reinterpret_cast<int (*)()>(runtime ? dlsym(runtime, "fakeDevice") : nullptr);
        if (!found) abort();
        return found;
    }();
    return get();
}

template <typename T>
int create(const char *name, void **where, Kind kind, uint64_t Stats::*counted) {
    Call call(name);
    call.want(where, "a null pointer");
    if (!call.is_right()) return call.answer();
    auto *made = new T;
    made->kind = kind;
    *where = static_cast<Description *>(made);
    machine().count(counted, 1);
    return kSuccess;
}

int destroy(const char *name, void *given, Kind kind, uint64_t Stats::*counted) {
    auto *found = static_cast<Description *>(given);
    if (!found || found->kind != kind || !found->alive) return machine().refuse(name, kBadParam, "it is gone already");
    found->alive = false;
    machine().count(counted, -1);
    return kSuccess;
}

int32_t element(int type) {
    switch (type) {
        case kCnnlHalf: return kF16;
        case kCnnlFloat: return kF32;
        case kCnnlInt32: return kI32;
        case kCnnlBool: return kBool;
        case kCnnlBFloat16: return kBF16;
        default: return -1;
    }
}

}  // namespace

Call::Call(const char *name) : name(name), code(machine().enter(name, false)) {}

Handle *Call::handle(void *given) {
    auto *found = in<Handle>(given, Kind::handle);
    want(!found || found->device == device_here(), "a handle of another device than this thread's");
    return found;
}
Shaped Call::tensor(void *given, const void *data) {
    auto *found = in<Tensor>(given, Kind::tensor);
    want(found && found->is_set, "a tensor that was not described");
    if (code) return Shaped{{1}, {1}, 0, kF32, nullptr, 1};
    Shaped shaped = *found;
    shaped.data = data;
    return shaped;
}
Shaped Call::dense(void *given, const void *data) {
    Shaped shaped = tensor(given, data);
    int64_t behind = 1;
    for (size_t i = shaped.dims.size(); i > 0; i--) {
        want(shaped.dims[i - 1] == 1 || shaped.strides[i - 1] == behind, "elements that do not lie one after the other");
        behind *= shaped.dims[i - 1];
    }
    return shaped;
}
int Call::says(size_t *where, uint64_t bytes) {
    want(where, "a null pointer");
    if (!code) *where = bytes;
    return code;
}
int Call::runs(Handle *handle, void *workspace, size_t bytes, uint64_t wanted, Task task) {
    want(bytes >= wanted, "less to work in than it said it wants");
    want(!bytes || machine().is_inside(workspace, bytes), "a workspace that is not the device's memory");
    want(handle && handle->queue, "a handle without a queue");
    if (code) return code;
    std::string said = std::string(name) + " touches memory that is not its own";
    int submitted = machine().submit(name, handle->queue, [=](Device &device) {
        if (int code = machine().enter("operator", false)) return device.fault("an operator was ordered to fail"), code;
        if (bytes) {
            uint8_t *spent = device.memory(workspace, bytes);
            if (!spent) return device.fault("its workspace is gone");
            memset(spent, 0x5a, bytes);
        }
        machine().count(&Stats::runs, 1);
        return task(device) ? kSuccess : device.fault(said);
    });
    // What its queue says is not one of this library's answers.
    return submitted ? 6 : kSuccess;
}

EXPORTED int cnnlCreate(void **handle) {
    int code = create<Handle>("cnnlCreate", handle, Kind::handle, &Stats::contexts);
    if (!code) static_cast<Handle *>(static_cast<Description *>(*handle))->device = device_here();
    return code;
}
EXPORTED int cnnlDestroy(void *handle) { return destroy("cnnlDestroy", handle, Kind::handle, &Stats::contexts); }
EXPORTED int cnnlSetQueue(void *handle, void *queue) {
    Call call("cnnlSetQueue");
    auto *found = call.handle(handle);
    if (call.is_right()) found->queue = queue;
    return call.answer();
}
EXPORTED int cnnlCreateTensorDescriptor(void **tensor) {
    return create<Tensor>("cnnlCreateTensorDescriptor", tensor, Kind::tensor, &Stats::tensors);
}
EXPORTED int cnnlDestroyTensorDescriptor(void *tensor) {
    return destroy("cnnlDestroyTensorDescriptor", tensor, Kind::tensor, &Stats::tensors);
}
EXPORTED int cnnlSetTensorDescriptorEx_v2(void *tensor, int layout, int type, int rank, const int64_t *dims,
                                          const int64_t *strides) {
    Call call("cnnlSetTensorDescriptorEx_v2");
    auto *made = call.in<Tensor>(tensor, Kind::tensor);
    call.want(layout == 4 && element(type) >= 0, "a layout or type that is not known");
    call.want(rank > 0 && rank <= 8 && dims && strides, "a rank that is not known");
    for (int i = 0; call.is_right() && i < rank; i++)
        call.want(dims[i] > 0 && strides[i] >= 0, "no element, or a stride that goes backwards");
    if (!call.is_right()) return call.answer();
    made->dims.assign(dims, dims + rank), made->strides.assign(strides, strides + rank);
    made->offset = 0, made->type = element(type), made->data = nullptr, made->storage = 0, made->is_set = true;
    return kSuccess;
}
EXPORTED int cnnlCreateOpTensorDescriptor(void **made) {
    return create<Arithmetic>("cnnlCreateOpTensorDescriptor", made, Kind::arithmetic, &Stats::descriptions);
}
EXPORTED int cnnlDestroyOpTensorDescriptor(void *given) {
    return destroy("cnnlDestroyOpTensorDescriptor", given, Kind::arithmetic, &Stats::descriptions);
}
EXPORTED int cnnlCreateReduceDescriptor(void **made) {
    return create<Reduction>("cnnlCreateReduceDescriptor", made, Kind::reduction, &Stats::descriptions);
}
EXPORTED int cnnlDestroyReduceDescriptor(void *given) {
    return destroy("cnnlDestroyReduceDescriptor", given, Kind::reduction, &Stats::descriptions);
}
EXPORTED int cnnlMatMulDescCreate(void **made) {
    return create<Product>("cnnlMatMulDescCreate", made, Kind::product, &Stats::descriptions);
}
EXPORTED int cnnlMatMulDescDestroy(void *given) {
    return destroy("cnnlMatMulDescDestroy", given, Kind::product, &Stats::descriptions);
}
EXPORTED int cnnlMatMulAlgoCreate(void **made) {
    return create<Algorithm>("cnnlMatMulAlgoCreate", made, Kind::algorithm, &Stats::descriptions);
}
EXPORTED int cnnlMatMulAlgoDestroy(void *given) {
    return destroy("cnnlMatMulAlgoDestroy", given, Kind::algorithm, &Stats::descriptions);
}
EXPORTED int cnnlCreateMatMulHeuristicResult(void **made) {
    return create<Choice>("cnnlCreateMatMulHeuristicResult", made, Kind::choice, &Stats::descriptions);
}
EXPORTED int cnnlDestroyMatMulHeuristicResult(void *given) {
    return destroy("cnnlDestroyMatMulHeuristicResult", given, Kind::choice, &Stats::descriptions);
}
