// libascendcl.so: contexts, memory that the host cannot touch, streams that run later, events.
#include "machine.hpp"

#include <sys/mman.h>
#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace {

using Lock = std::unique_lock<std::mutex>;

struct Settings {
    uint32_t devices = 1;
    uint64_t memory = 1ull << 30;
    uint32_t delay_us = 0, seed = 1;
    std::string chip = "Ascend910B3";
    int version[3] = {1, 14, 0};

    Settings() {
        Dl_info info;
        if (!dladdr(reinterpret_cast<void *>(&machine), &info)) return;
        std::string path = info.dli_fname;
        std::ifstream file(path.substr(0, path.rfind('/')) + "/settings");
        for (std::string line; std::getline(file, line);) {
            auto at = line.find('=');
            std::string name = line.substr(0, at), value = line.substr(at + 1);
            if (name == "devices") devices = std::stoul(value);
            if (name == "memory") memory = std::stoull(value);
            if (name == "delay_us") delay_us = std::stoul(value);
            if (name == "seed") seed = std::stoul(value);
            if (name == "chip") chip = value;
            if (name == "version") version[0] = std::stoi(value);
        }
    }
};

struct Buffer {
    uint64_t size, mapped;
    int device;
    std::unique_ptr<uint8_t[]> bytes;
};

struct Context {
    int device;
    uint64_t things = 0;
};

struct Stream;
struct Event {
    Context *context;
    bool recorded = false, happened = false;
};

thread_local std::string recent;
thread_local Context *current = nullptr;

struct Fault {
    std::string call;
    int nth, code;
};

class TheMachine final : public Machine {
public:
    int enter(const char *call, bool wants_context) override {
        Lock lock(mutex);
        if (wants_context && (!current || !contexts.count(current)))
            return violation(call, kNoContext, "this thread has no context");
        return ordered(call);
    }
    int refuse(const char *call, int code, const std::string &why) override {
        Lock lock(mutex);
        return violation(call, code, why);
    }
    int submit(const char *call, void *stream, Task task) override;
    bool is_inside(const void *address, uint64_t bytes) override {
        Lock lock(mutex);
        return current && find(current->device, address, bytes);
    }
    void count(uint64_t Stats::*field, int64_t by) override {
        Lock lock(mutex);
        stats.*field += by;
    }

    int violation(const char *call, int code, const std::string &why) {
        recent = std::string(call) + ": " + why;
        stats.violations++;
        return code;
    }
    int ordered(const char *call) {
        if (fault.call == call && fault.nth > 0 && --fault.nth == 0) {
            recent = std::string(call) + ": it was ordered to fail";
            return fault.code;
        }
        return kSuccess;
    }
    uint8_t *find(int device, const void *address, uint64_t bytes) {
        auto at = reinterpret_cast<uintptr_t>(address);
        auto next = buffers.upper_bound(at);
        if (next == buffers.begin()) return nullptr;
        auto &[base, buffer] = *std::prev(next);
        if (buffer.device != device || at - base > buffer.size || bytes > buffer.size - (at - base)) return nullptr;
        return buffer.bytes.get() + (at - base);
    }

    std::mutex mutex;
    Settings settings;
    bool started = false;
    Stats stats{};
    Fault fault{"", 0, 0};
    std::map<uintptr_t, Buffer> buffers;
    std::map<uintptr_t, uint64_t> host_buffers;
    std::set<Context *> contexts;
    std::set<Stream *> streams;
    std::set<Event *> events;
    std::map<int, uint64_t> used;
};

TheMachine &the() {
    static TheMachine *machine = new TheMachine;
    return *machine;
}

struct Stream final : Device {
    Context *context;
    std::deque<Task> tasks;
    std::condition_variable changed;
    bool busy = false, ending = false, stops = false;
    int failed = 0;
    std::string why;
    std::thread thread;

    explicit Stream(Context *of) : context(of), thread([this] { run(); }) {}

    uint8_t *memory(const void *address, uint64_t bytes) override {
        Lock lock(the().mutex);
        return the().find(context->device, address, bytes);
    }
    int fault(const std::string &said) override {
        Lock lock(the().mutex);
        why = said;
        the().stats.faults++;
        return kFault;
    }
    void run() {
        std::mt19937 random(the().settings.seed);
        Lock lock(the().mutex);
        for (;;) {
            changed.wait(lock, [&] { return ending || !tasks.empty(); });
            if (tasks.empty()) return;
            Task task = std::move(tasks.front());
            tasks.pop_front();
            busy = true;
            bool skip = failed && stops;
            lock.unlock();
            if (the().settings.delay_us)
                std::this_thread::sleep_for(std::chrono::microseconds(random() % the().settings.delay_us));
            int code = skip ? 0 : task(*this);
            task = nullptr;
            lock.lock();
            if (code && !failed) failed = code;
            busy = false;
            changed.notify_all();
        }
    }
};

int TheMachine::submit(const char *call, void *handle, Task task) {
    Lock lock(mutex);
    auto stream = static_cast<Stream *>(handle);
    if (!streams.count(stream)) return violation(call, kInvalid, "there is no such stream");
    if (stream->context != current) return violation(call, kNoContext, "the stream is of another context");
    if (stream->failed) {
        recent = stream->why;
        return stream->failed;
    }
    stream->tasks.push_back(std::move(task));
    stream->changed.notify_all();
    return kSuccess;
}

int wait(const char *call, void *handle, int32_t milliseconds) {
    if (int code = the().enter(call, true)) return code;
    Lock lock(the().mutex);
    auto stream = static_cast<Stream *>(handle);
    if (!the().streams.count(stream)) return the().violation(call, kInvalid, "there is no such stream");
    auto idle = [&] { return stream->tasks.empty() && !stream->busy; };
    if (milliseconds < 0) {
        stream->changed.wait(lock, idle);
    } else if (!stream->changed.wait_for(lock, std::chrono::milliseconds(milliseconds), idle)) {
        return kSyncTimeout;
    }
    if (stream->failed) recent = stream->why;
    return stream->failed;
}

}  // namespace

EXPORTED Machine *fakeMachine() { return &the(); }
Machine &machine() { return the(); }

EXPORTED void fakeAclStats(Stats *stats) {
    Lock lock(the().mutex);
    *stats = the().stats;
}
EXPORTED void fakeAclFail(const char *call, int nth, int code) {
    Lock lock(the().mutex);
    the().fault = {call, nth, code};
}

EXPORTED int aclrtGetVersion(int *major, int *minor, int *patch) {
    *major = the().settings.version[0], *minor = the().settings.version[1], *patch = the().settings.version[2];
    return kSuccess;
}
EXPORTED int aclInit(const char *settings) {
    if (settings) return the().refuse("aclInit", kInvalid, "no settings are known");
    if (int code = the().enter("aclInit", false)) return code;
    Lock lock(the().mutex);
    return std::exchange(the().started, true) ? kRepeated : kSuccess;
}
EXPORTED const char *aclGetRecentErrMsg() { return recent.empty() ? nullptr : recent.c_str(); }
EXPORTED int aclrtGetDeviceCount(uint32_t *count) {
    *count = the().settings.devices;
    return the().enter("aclrtGetDeviceCount", false);
}
EXPORTED const char *aclrtGetSocName() { return the().settings.chip.c_str(); }
EXPORTED int aclrtSetDevice(int32_t device) {
    static Context defaults[16];
    if (device < 0 || uint32_t(device) >= the().settings.devices) return kNoDevice;
    Lock lock(the().mutex);
    defaults[device].device = device;
    the().contexts.insert(&defaults[device]);
    current = &defaults[device];
    return kSuccess;
}
EXPORTED int aclrtResetDevice(int32_t) {
    current = nullptr;
    return kSuccess;
}
EXPORTED int aclrtCreateContext(void **context, int32_t device) {
    if (int code = the().enter("aclrtCreateContext", false)) return code;
    if (!the().started) return the().refuse("aclrtCreateContext", kInvalid, "aclInit was not called");
    if (device < 0 || uint32_t(device) >= the().settings.devices)
        return the().refuse("aclrtCreateContext", kNoDevice, "there is no such device");
    Lock lock(the().mutex);
    current = new Context{device};
    the().contexts.insert(current);
    the().stats.contexts++;
    *context = current;
    return kSuccess;
}
EXPORTED int aclrtDestroyContext(void *handle) {
    Lock lock(the().mutex);
    auto context = static_cast<Context *>(handle);
    if (!the().contexts.erase(context))
        return the().violation("aclrtDestroyContext", kInvalid, "there is no such context");
    if (context->things) the().violation("aclrtDestroyContext", kInvalid, "it still has memory, streams or events");
    the().stats.contexts--;
    if (current == context) current = nullptr;
    return kSuccess;
}
EXPORTED int aclrtGetCurrentContext(void **context) {
    Lock lock(the().mutex);
    if (!current || !the().contexts.count(current)) return kNoContext;
    *context = current;
    return kSuccess;
}
EXPORTED int aclrtSetCurrentContext(void *context) {
    if (int code = the().enter("aclrtSetCurrentContext", false)) return code;
    Lock lock(the().mutex);
    if (!the().contexts.count(static_cast<Context *>(context)))
        return the().violation("aclrtSetCurrentContext", kInvalid, "there is no such context");
    current = static_cast<Context *>(context);
    return kSuccess;
}
EXPORTED int aclrtGetMemInfo(int kind, size_t *left, size_t *all) {
    if (int code = the().enter("aclrtGetMemInfo", true)) return code;
    Lock lock(the().mutex);
    *all = the().settings.memory, *left = *all - the().used[current->device];
    return kind == 1 ? kSuccess : kInvalid;
}
EXPORTED int aclrtMalloc(void **address, size_t size, int policy) {
    if (int code = the().enter("aclrtMalloc", true)) return code;
    if (!size || policy < 0 || policy > 4) return the().refuse("aclrtMalloc", kInvalid, "no byte, or no such policy");
    Lock lock(the().mutex);
    if (size > the().settings.memory - the().used[current->device]) {
        recent = "aclrtMalloc: the device has no room";
        return kOutOfMemory;
    }
    // Addresses that nobody of the host may touch; the bytes lie elsewhere.
    uint64_t mapped = (size + 4095) / 4096 * 4096;
    void *base = mmap(nullptr, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) return kOutOfMemory;
    Buffer buffer{size, mapped, current->device, std::unique_ptr<uint8_t[]>(new uint8_t[size])};
    memset(buffer.bytes.get(), 0xa5, size);
    the().buffers.emplace(reinterpret_cast<uintptr_t>(base), std::move(buffer));
    the().used[current->device] += size;
    the().stats.bytes += size, the().stats.buffers++, current->things++;
    *address = base;
    return kSuccess;
}
EXPORTED int aclrtFree(void *address) {
    if (int code = the().enter("aclrtFree", true)) return code;
    Lock lock(the().mutex);
    auto found = the().buffers.find(reinterpret_cast<uintptr_t>(address));
    if (found == the().buffers.end()) return the().violation("aclrtFree", kInvalid, "there is no such memory");
    the().used[found->second.device] -= found->second.size;
    the().stats.bytes -= found->second.size, the().stats.buffers--, current->things--;
    munmap(address, found->second.mapped);
    the().buffers.erase(found);
    return kSuccess;
}
EXPORTED int aclrtMallocHost(void **address, size_t size) {
    if (int code = the().enter("aclrtMallocHost", true)) return code;
    if (!size) return the().refuse("aclrtMallocHost", kInvalid, "no byte");
    Lock lock(the().mutex);
    *address = malloc(size);
    the().host_buffers[reinterpret_cast<uintptr_t>(*address)] = size;
    the().stats.host_buffers++, current->things++;
    return kSuccess;
}
EXPORTED int aclrtFreeHost(void *address) {
    if (int code = the().enter("aclrtFreeHost", true)) return code;
    Lock lock(the().mutex);
    if (!the().host_buffers.erase(reinterpret_cast<uintptr_t>(address)))
        return the().violation("aclrtFreeHost", kInvalid, "there is no such memory");
    the().stats.host_buffers--, current->things--;
    free(address);
    return kSuccess;
}

static bool is_page_locked(const void *address, uint64_t bytes) {
    Lock lock(the().mutex);
    auto at = reinterpret_cast<uintptr_t>(address);
    auto next = the().host_buffers.upper_bound(at);
    if (next == the().host_buffers.begin()) return false;
    auto &[base, size] = *std::prev(next);
    return at - base <= size && bytes <= size - (at - base);
}

EXPORTED int aclrtMemcpyAsync(void *to, size_t room, const void *from, size_t bytes, int kind, void *stream) {
    const char *call = "aclrtMemcpyAsync";
    if (int code = the().enter(call, true)) return code;
    if (!bytes || bytes > room || kind < 1 || kind > 3) return the().refuse(call, kInvalid, "bytes that do not fit");
    const void *host = kind == 1 ? from : to, *device = kind == 1 ? to : from;
    if (kind != 3 && !is_page_locked(host, bytes))
        return the().refuse(call, kInvalid, "memory of the host that is not page-locked");
    if (!the().is_inside(device, bytes) || (kind == 3 && !the().is_inside(to, bytes)))
        return the().refuse(call, kInvalid, "bytes that are not all in the device's memory");
    return the().submit(call, stream, [=](Device &on) {
        if (int code = the().enter("copy", false)) return on.fault("a copy was ordered to fail"), code;
        auto *a = kind == 2 ? static_cast<uint8_t *>(to) : on.memory(to, bytes);
        auto *b = kind == 1 ? static_cast<const uint8_t *>(from) : on.memory(from, bytes);
        if (!a || !b) return on.fault("a copy touches memory that is gone");
        memmove(a, b, bytes);
        the().count(&Stats::copies, 1);
        return int(kSuccess);
    });
}
EXPORTED int aclrtMemsetAsync(void *to, size_t room, int32_t value, size_t bytes, void *stream) {
    const char *call = "aclrtMemsetAsync";
    if (int code = the().enter(call, true)) return code;
    if (!bytes || bytes > room || !the().is_inside(to, room))
        return the().refuse(call, kInvalid, "bytes that are not all in the device's memory");
    return the().submit(call, stream, [=](Device &on) {
        auto *a = on.memory(to, bytes);
        if (!a) return on.fault("a fill touches memory that is gone");
        memset(a, value, bytes);
        the().count(&Stats::copies, 1);
        return int(kSuccess);
    });
}
EXPORTED int aclrtCreateStream(void **stream) {
    if (int code = the().enter("aclrtCreateStream", true)) return code;
    Lock lock(the().mutex);
    auto made = new Stream(current);
    the().streams.insert(made);
    the().stats.streams++, current->things++;
    *stream = made;
    return kSuccess;
}
EXPORTED int aclrtDestroyStream(void *handle) {
    if (int code = the().enter("aclrtDestroyStream", true)) return code;
    auto stream = static_cast<Stream *>(handle);
    {
        Lock lock(the().mutex);
        if (!the().streams.erase(stream))
            return the().violation("aclrtDestroyStream", kInvalid, "there is no such stream");
        if (!stream->tasks.empty() || stream->busy)
            the().violation("aclrtDestroyStream", kInvalid, "it has not run everything");
        the().stats.streams--, stream->context->things--;
        stream->ending = true;
        stream->changed.notify_all();
    }
    stream->thread.join();
    delete stream;
    return kSuccess;
}
EXPORTED int aclrtSetStreamFailureMode(void *handle, uint64_t mode) {
    if (int code = the().enter("aclrtSetStreamFailureMode", true)) return code;
    Lock lock(the().mutex);
    static_cast<Stream *>(handle)->stops = mode == 1;
    return mode <= 1 ? kSuccess : kInvalid;
}
EXPORTED int aclrtSynchronizeStreamWithTimeout(void *stream, int32_t milliseconds) {
    return wait("aclrtSynchronizeStreamWithTimeout", stream, milliseconds);
}
EXPORTED int aclrtCreateEvent(void **event) {
    if (int code = the().enter("aclrtCreateEvent", true)) return code;
    Lock lock(the().mutex);
    auto made = new Event{current};
    the().events.insert(made);
    the().stats.events++, current->things++;
    *event = made;
    return kSuccess;
}
EXPORTED int aclrtDestroyEvent(void *handle) {
    if (int code = the().enter("aclrtDestroyEvent", true)) return code;
    Lock lock(the().mutex);
    if (!the().events.erase(static_cast<Event *>(handle)))
        return the().violation("aclrtDestroyEvent", kInvalid, "there is no such event");
    the().stats.events--, current->things--;
    return kSuccess;
}
EXPORTED int aclrtRecordEvent(void *handle, void *stream) {
    const char *call = "aclrtRecordEvent";
    if (int code = the().enter(call, true)) return code;
    auto event = static_cast<Event *>(handle);
    {
        Lock lock(the().mutex);
        if (!the().events.count(event)) return the().violation(call, kInvalid, "there is no such event");
        if (std::exchange(event->recorded, true)) return the().violation(call, kInvalid, "it was recorded before");
    }
    return the().submit(call, stream, [=](Device &) {
        Lock lock(the().mutex);
        event->happened = true;
        return int(kSuccess);
    });
}
EXPORTED int aclrtQueryEventStatus(void *handle, int *status) {
    const char *call = "aclrtQueryEventStatus";
    if (int code = the().enter(call, true)) return code;
    Lock lock(the().mutex);
    auto event = static_cast<Event *>(handle);
    if (!the().events.count(event)) return the().violation(call, kInvalid, "there is no such event");
    *status = event->happened ? 1 : 0;
    return kSuccess;
}
