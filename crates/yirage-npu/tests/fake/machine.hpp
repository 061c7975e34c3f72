// What the three libraries in software have in common: the machine behind them.
//
// A call that breaks its prototype's contract is answered with an error, like a real library's, and counted as a violation: tests
// that do nothing wrong ask for none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#define EXPORTED extern "C" __attribute__((visibility("default")))

enum : int {
    kSuccess = 0,
    kInvalid = 100000,
    kRepeated = 100002,
    kNoContext = 107002,
    kNoDevice = 107001,
    kOutOfMemory = 207001,
    kNoFeature = 207000,
    kSyncTimeout = 507046,
    kFault = 507015,
    kAclnnNull = 161001,
    kAclnnInvalid = 161002,
};

// What is counted; the same fields as `FakeAclStats` of the tests.
struct Stats {
    uint64_t bytes, buffers, host_buffers, contexts, streams, events, tensors, scalars, executors;
    uint64_t runs, copies, violations, faults;
};

// What a task of a stream may touch.
class Device {
public:
    // The bytes at an address of the device; null where not all of them are in one buffer.
    virtual uint8_t *memory(const void *address, uint64_t bytes) = 0;
    // What a task says that goes wrong.
    virtual int fault(const std::string &why) = 0;

protected:
    ~Device() = default;
};

using Task = std::function<int(Device &)>;

class Machine {
public:
    // Begins a call: an error that was ordered for it, or that this thread has no context where one is wanted.
    virtual int enter(const char *call, bool wants_context) = 0;
    // An error that a caller makes: kept as this thread's message.
    virtual int refuse(const char *call, int code, const std::string &why) = 0;
    // Puts a task into a stream of this thread's context.
    virtual int submit(const char *call, void *stream, Task task) = 0;
    // Whether these bytes are all in one buffer of this thread's device.
    virtual bool is_inside(const void *address, uint64_t bytes) = 0;
    virtual void count(uint64_t Stats::*field, int64_t by) = 0;

protected:
    ~Machine() = default;
};

// The machine of the library that lies beside this one.
Machine &machine();
