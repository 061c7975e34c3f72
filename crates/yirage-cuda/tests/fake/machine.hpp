// The whole fake machine: one lock, one condition, tables of what was handed out.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "api.hpp"
#include "control.hpp"
#include "settings.hpp"

struct Stream;
struct Event;
struct Module;
struct Function;
struct Graph;
struct Executable;
struct Capture;

typedef std::unique_lock<std::mutex> Lock;

// Things by handles that are no addresses and never come again, so that a stale one is always found.
template <class T>
struct Handles {
  std::map<Handle, std::shared_ptr<T>> all;

  Handle add(std::shared_ptr<T> thing);
  std::shared_ptr<T> find(Handle handle) const {
    auto found = all.find(handle);
    return found == all.end() ? nullptr : found->second;
  }
};

// The primary context of a device from the first time that it is retained to the last time that it is released.
struct Context {
  int ordinal;
  Handle handle;
  unsigned retained = 0;
  // Threads of its streams that have not ended.
  unsigned workers = 0;
  bool destroyed = false;
  // What every call answers since an operation has failed.
  Code fault = SUCCESS;
};

// Memory of a device or pinned memory of the host, between guards that nobody may touch.
struct Buffer {
  Context* context;
  size_t bytes;
  // What is mapped for it, with what lies around it.
  char* guarded;
  size_t mapped;
};

struct Machine {
  std::mutex lock;
  // Something has changed that somebody may be waiting for.
  std::condition_variable changed;
  bool started = false;
  Settings settings = read_settings();
  // Of each device, the context that is retained.
  std::vector<Context*> primary;
  // Bytes held of each device.
  std::vector<size_t> held;
  // All contexts that there have been.
  std::map<Handle, std::unique_ptr<Context>> contexts;
  std::map<Address, Buffer> memory, host_memory;
  Handles<Stream> streams;
  Handles<Event> events;
  Handles<Module> modules;
  Handles<Function> functions;
  Handles<Graph> graphs;
  Handles<Executable> executables;
  std::vector<std::shared_ptr<Capture>> captures;
  FakeCudaStats counted = {};
};

// It is never destroyed: threads of streams may outlive every static object.
Machine& machine();

// A handle or an identity that was never given before.
Handle new_handle();

template <class T>
Handle Handles<T>::add(std::shared_ptr<T> thing) {
  const Handle handle = new_handle();
  all[handle] = std::move(thing);
  return handle;
}

// The thing of a handle, if it belongs to this context.
template <class T>
Code of_context(const Handles<T>& handles, Handle handle, const Context& context, std::shared_ptr<T>& thing) {
  thing = handles.find(handle);
  if (!thing) return INVALID_HANDLE;
  return thing->context == &context ? SUCCESS : INVALID_CONTEXT;
}

// The context that this thread has made current, or none, and whether calls may use it.
Code current_context(Context*& context);

// Multiprocessors of a device.
int multiprocessors();

// A call that needs no context: `body` runs under the lock.
template <class Body>
int without_context(const char* call, Body body) {
  Lock lock(machine().lock);
  if (const Code code = injected(call)) return code;
  return machine().started ? body() : NOT_INITIALIZED;
}

// A call that needs the current context, which is whole.
template <class Body>
int in_context(const char* call, Body body) {
  Lock lock(machine().lock);
  if (const Code code = injected(call)) return code;
  Context* context;
  if (const Code code = current_context(context)) return code;
  return body(*context, lock);
}

#define TRY(expression) \
  if (const Code code_ = (expression)) return code_
