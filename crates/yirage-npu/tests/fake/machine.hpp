// What the libraries of a maker in software have in common: the machine behind them.
//
// A call that breaks its prototype's contract is answered with an error, like a real library's, and counted as a violation: tests
// that do nothing wrong ask for none.
#pragma once

#include "settings.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#define EXPORTED extern "C" __attribute__((visibility("default")))

// A maker's numbers for what a call answers.
struct Codes {
    int invalid, no_context, no_device, out_of_memory, not_yet, fault;
};
// Those of the runtime's library.
extern const Codes codes;

enum : int { kSuccess = 0 };

// What is counted; the same fields as `FakeNpuStats` of the tests.
struct Stats {
    uint64_t bytes, buffers, host_buffers, contexts, streams, events, tensors, descriptions, executors;
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
    virtual const Settings &settings() = 0;

protected:
    ~Machine() = default;
};

// The machine of the library that lies beside this one.
Machine &machine();
