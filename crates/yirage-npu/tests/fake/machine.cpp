// The machine: contexts, memory that the host cannot touch, streams that run later, events.
#include "runtime.hpp"

#include <sys/mman.h>
#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
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

struct Buffer {
    uint64_t size, mapped;
    int device;
    std::unique_ptr<uint8_t[]> bytes;
};

struct Stream;
struct Event {
    Context *context;
    bool recorded = false, happened = false;
};

thread_local std::string recent;
thread_local Context *of_thread = nullptr;

struct Fault {
    std::string call;
    int nth, code;
};

class TheMachine final : public Machine {
public:
    int enter(const char *call, bool wants_context) override {
        Lock lock(mutex);
        if (wants_context && (!of_thread || !contexts.count(of_thread)))
            return violation(call, codes.no_context, "this thread has no context");
        return ordered(call);
    }
    int refuse(const char *call, int code, const std::string &why) override {
        Lock lock(mutex);
        return violation(call, code, why);
    }
    int submit(const char *call, void *stream, Task task) override;
    bool is_inside(const void *address, uint64_t bytes) override {
        Lock lock(mutex);
        return of_thread && find(of_thread->device, address, bytes);
    }
    void count(uint64_t Stats::*field, int64_t by) override {
        Lock lock(mutex);
        stats.*field += by;
    }
    const Settings &settings() override { return told; }

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
    Settings told;
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
        return codes.fault;
    }
    void run() {
        std::mt19937 random(the().told.seed);
        Lock lock(the().mutex);
        for (;;) {
            changed.wait(lock, [&] { return ending || !tasks.empty(); });
            if (tasks.empty()) return;
            Task task = std::move(tasks.front());
            tasks.pop_front();
            busy = true;
            bool skip = failed && stops;
            lock.unlock();
            if (the().told.delay_us)
                std::this_thread::sleep_for(std::chrono::microseconds(random() % the().told.delay_us));
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
    if (!streams.count(stream)) return violation(call, codes.invalid, "there is no such stream");
    if (stream->context != of_thread) return violation(call, codes.no_context, "the stream is of another context");
    if (stream->failed) {
        recent = stream->why;
        return stream->failed;
    }
    stream->tasks.push_back(std::move(task));
    stream->changed.notify_all();
    return kSuccess;
}

bool is_page_locked(const void *address, uint64_t bytes) {
    Lock lock(the().mutex);
    auto at = reinterpret_cast<uintptr_t>(address);
    auto next = the().host_buffers.upper_bound(at);
    if (next == the().host_buffers.begin()) return false;
    auto &[base, size] = *std::prev(next);
    return at - base <= size && bytes <= size - (at - base);
}

}  // namespace

EXPORTED Machine *fakeMachine() { return &the(); }
Machine &machine() { return the(); }

EXPORTED void fakeStats(Stats *stats) {
    Lock lock(the().mutex);
    *stats = the().stats;
}
EXPORTED void fakeFail(const char *call, int nth, int code) {
    Lock lock(the().mutex);
    the().fault = {call, nth, code};
}

// For libraries beside this one: work of their own in a stream, and the bytes that it touches.
EXPORTED int fakeEnqueue(void *stream, void (*work)(void *), void *context) {
    return the().submit("collective", stream, [=](Device &) {
        work(context);
        return int(kSuccess);
    });
}
EXPORTED void *fakeMemory(void *handle, const void *address, uint64_t bytes) {
    Lock lock(the().mutex);
    auto stream = static_cast<Stream *>(handle);
    return the().streams.count(stream) ? the().find(stream->context->device, address, bytes) : nullptr;
}

namespace fake {

Context *&current() { return of_thread; }
const char *recent() { return ::recent.empty() ? nullptr : ::recent.c_str(); }

Context *new_context(int device, bool is_counted) {
    Lock lock(the().mutex);
    auto made = new Context{device};
    the().contexts.insert(made);
    if (is_counted) the().stats.contexts++;
    return made;
}
int drop_context(const char *call, void *handle) {
    Lock lock(the().mutex);
    auto context = static_cast<Context *>(handle);
    if (!the().contexts.erase(context)) return the().violation(call, codes.invalid, "there is no such context");
    if (context->things) the().violation(call, codes.invalid, "it still has memory, streams or events");
    the().stats.contexts--;
    if (of_thread == context) of_thread = nullptr;
    return kSuccess;
}
bool is_context(void *context) {
    Lock lock(the().mutex);
    return context && the().contexts.count(static_cast<Context *>(context));
}

int memory_left(const char *call, size_t *left, size_t *all) {
    if (int code = the().enter(call, true)) return code;
    Lock lock(the().mutex);
    *all = the().told.memory, *left = *all - the().used[of_thread->device];
    return kSuccess;
}
int alloc(const char *call, void **address, size_t size) {
    if (int code = the().enter(call, true)) return code;
    if (!size) return the().refuse(call, codes.invalid, "no byte");
    Lock lock(the().mutex);
    if (size > the().told.memory - the().used[of_thread->device]) {
        ::recent = std::string(call) + ": the device has no room";
        return codes.out_of_memory;
    }
    // Addresses that nobody of the host may touch; the bytes lie elsewhere.
    uint64_t mapped = (size + 4095) / 4096 * 4096;
    void *base = mmap(nullptr, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) return codes.out_of_memory;
    Buffer buffer{size, mapped, of_thread->device, std::unique_ptr<uint8_t[]>(new uint8_t[size])};
    memset(buffer.bytes.get(), 0xa5, size);
    the().buffers.emplace(reinterpret_cast<uintptr_t>(base), std::move(buffer));
    the().used[of_thread->device] += size;
    the().stats.bytes += size, the().stats.buffers++, of_thread->things++;
    *address = base;
    return kSuccess;
}
int release(const char *call, void *address) {
    if (int code = the().enter(call, true)) return code;
    Lock lock(the().mutex);
    auto found = the().buffers.find(reinterpret_cast<uintptr_t>(address));
    if (found == the().buffers.end()) return the().violation(call, codes.invalid, "there is no such memory");
    the().used[found->second.device] -= found->second.size;
    the().stats.bytes -= found->second.size, the().stats.buffers--, of_thread->things--;
    munmap(address, found->second.mapped);
    the().buffers.erase(found);
    return kSuccess;
}
int alloc_host(const char *call, void **address, size_t size) {
    if (int code = the().enter(call, true)) return code;
    if (!size) return the().refuse(call, codes.invalid, "no byte");
    Lock lock(the().mutex);
    *address = malloc(size);
    the().host_buffers[reinterpret_cast<uintptr_t>(*address)] = size;
    the().stats.host_buffers++, of_thread->things++;
    return kSuccess;
}
int release_host(const char *call, void *address) {
    if (int code = the().enter(call, true)) return code;
    Lock lock(the().mutex);
    if (!the().host_buffers.erase(reinterpret_cast<uintptr_t>(address)))
        return the().violation(call, codes.invalid, "there is no such memory");
    the().stats.host_buffers--, of_thread->things--;
    free(address);
    return kSuccess;
}

int copy(const char *call, void *to, const void *from, size_t bytes, Direction direction, void *stream) {
    if (int code = the().enter(call, true)) return code;
    if (!bytes) return the().refuse(call, codes.invalid, "no byte");
    const void *host = direction == Direction::to_device ? from : to;
    const void *device = direction == Direction::to_device ? to : from;
    bool is_inside = direction == Direction::on_device;
    if (!is_inside && !is_page_locked(host, bytes))
        return the().refuse(call, codes.invalid, "memory of the host that is not page-locked");
    if (!the().is_inside(device, bytes) || (is_inside && !the().is_inside(to, bytes)))
        return the().refuse(call, codes.invalid, "bytes that are not all in the device's memory");
    return the().submit(call, stream, [=](Device &on) {
        if (int code = the().enter("copy", false)) return on.fault("a copy was ordered to fail"), code;
        auto *a = direction == Direction::to_host ? static_cast<uint8_t *>(to) : on.memory(to, bytes);
        auto *b = direction == Direction::to_device ? static_cast<const uint8_t *>(from) : on.memory(from, bytes);
        if (!a || !b) return on.fault("a copy touches memory that is gone");
        memmove(a, b, bytes);
        the().count(&Stats::copies, 1);
        return int(kSuccess);
    });
}
int fill(const char *call, void *to, int value, size_t bytes, void *stream) {
    if (int code = the().enter(call, true)) return code;
    if (!bytes || !the().is_inside(to, bytes))
        return the().refuse(call, codes.invalid, "bytes that are not all in the device's memory");
    return the().submit(call, stream, [=](Device &on) {
        auto *a = on.memory(to, bytes);
        if (!a) return on.fault("a fill touches memory that is gone");
        memset(a, value, bytes);
        the().count(&Stats::copies, 1);
        return int(kSuccess);
    });
}

int new_stream(const char *call, void **stream, bool stops) {
    if (int code = the().enter(call, true)) return code;
    Lock lock(the().mutex);
    auto made = new Stream(of_thread);
    made->stops = stops;
    the().streams.insert(made);
    the().stats.streams++, of_thread->things++;
    *stream = made;
    return kSuccess;
}
int stop_on_failure(const char *call, void *handle, bool stops) {
    if (int code = the().enter(call, true)) return code;
    Lock lock(the().mutex);
    auto stream = static_cast<Stream *>(handle);
    if (!the().streams.count(stream)) return the().violation(call, codes.invalid, "there is no such stream");
    stream->stops = stops;
    return kSuccess;
}
int drop_stream(const char *call, void *handle) {
    if (int code = the().enter(call, true)) return code;
    auto stream = static_cast<Stream *>(handle);
    {
        Lock lock(the().mutex);
        if (!the().streams.erase(stream)) return the().violation(call, codes.invalid, "there is no such stream");
        if (!stream->tasks.empty() || stream->busy)
            the().violation(call, codes.invalid, "it has not run everything");
        the().stats.streams--, stream->context->things--;
        stream->ending = true;
        stream->changed.notify_all();
    }
    stream->thread.join();
    delete stream;
    return kSuccess;
}
int wait(const char *call, void *handle, int32_t milliseconds) {
    if (int code = the().enter(call, true)) return code;
    Lock lock(the().mutex);
    auto stream = static_cast<Stream *>(handle);
    if (!the().streams.count(stream)) return the().violation(call, codes.invalid, "there is no such stream");
    auto idle = [&] { return stream->tasks.empty() && !stream->busy; };
    if (milliseconds < 0) {
        stream->changed.wait(lock, idle);
    } else if (!stream->changed.wait_for(lock, std::chrono::milliseconds(milliseconds), idle)) {
        return codes.not_yet;
    }
    if (stream->failed) ::recent = stream->why;
    return stream->failed;
}
int new_event(const char *call, void **event) {
    if (int code = the().enter(call, true)) return code;
    Lock lock(the().mutex);
    auto made = new Event{of_thread};
    the().events.insert(made);
    the().stats.events++, of_thread->things++;
    *event = made;
    return kSuccess;
}
int drop_event(const char *call, void *handle) {
    if (int code = the().enter(call, true)) return code;
    Lock lock(the().mutex);
    if (!the().events.erase(static_cast<Event *>(handle)))
        return the().violation(call, codes.invalid, "there is no such event");
    the().stats.events--, of_thread->things--;
    return kSuccess;
}
int record(const char *call, void *handle, void *stream) {
    if (int code = the().enter(call, true)) return code;
    auto event = static_cast<Event *>(handle);
    {
        Lock lock(the().mutex);
        if (!the().events.count(event)) return the().violation(call, codes.invalid, "there is no such event");
        if (std::exchange(event->recorded, true)) return the().violation(call, codes.invalid, "it was recorded before");
    }
    return the().submit(call, stream, [=](Device &) {
        Lock lock(the().mutex);
        event->happened = true;
        return int(kSuccess);
    });
}
int query(const char *call, void *handle, bool *happened) {
    if (int code = the().enter(call, true)) return code;
    Lock lock(the().mutex);
    auto event = static_cast<Event *>(handle);
    if (!the().events.count(event)) return the().violation(call, codes.invalid, "there is no such event");
    *happened = event->happened;
    return kSuccess;
}

}  // namespace fake
