// What a maker's runtime library in software is made of: its functions check their arguments and call these.
#pragma once

#include "machine.hpp"

#include <cstring>
#include <string>

// A device that a thread has made its own.
struct Context {
    int device;
    uint64_t things = 0;
};

enum class Direction { to_device, to_host, on_device };

namespace fake {

// This thread's device; null where it has none.
Context *&current();
// A context of its own; `is_counted` where somebody has to give it back.
Context *new_context(int device, bool is_counted);
int drop_context(const char *call, void *context);
bool is_context(void *context);

int memory_left(const char *call, size_t *left, size_t *all);
int alloc(const char *call, void **address, size_t size);
int release(const char *call, void *address);
int alloc_host(const char *call, void **address, size_t size);
int release_host(const char *call, void *address);
int copy(const char *call, void *to, const void *from, size_t bytes, Direction direction, void *stream);
int fill(const char *call, void *to, int value, size_t bytes, void *stream);

// `stops` where what comes behind a failure does not run.
int new_stream(const char *call, void **stream, bool stops);
int stop_on_failure(const char *call, void *stream, bool stops);
int drop_stream(const char *call, void *stream);
// So long at most; without end where it is negative.
int wait(const char *call, void *stream, int32_t milliseconds);
int new_event(const char *call, void **event);
int drop_event(const char *call, void *event);
int record(const char *call, void *event, void *stream);
int query(const char *call, void *event, bool *happened);

// What was last said to this thread.
const char *recent();

}  // namespace fake
