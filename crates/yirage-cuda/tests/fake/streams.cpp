#include "streams.hpp"

#include <stdio.h>

#include <chrono>
#include <thread>

#include "graphs.hpp"

namespace {

std::chrono::microseconds draw_delay(Stream& stream) {
  if (machine().settings.seed == 0) return {};
  stream.drawn ^= stream.drawn << 13;
  stream.drawn ^= stream.drawn >> 7;
  stream.drawn ^= stream.drawn << 17;
  const unsigned kind = unsigned(stream.drawn >> 20) % 32, share = unsigned(stream.drawn >> 32) % 1000;
  // What somebody waits for comes without a delay, so a long one makes slow only who does not wait.
  if (kind < 4) return std::chrono::microseconds(4 * share);
  return std::chrono::microseconds(kind < 8 ? share / 5 : 0);
}

bool is_wanted(const Stream& stream) { return stream.finished < stream.wanted || stream.closing; }

void linger(Lock& lock, Stream& stream) {
  const auto delay = draw_delay(stream);
  if (delay.count() > 0) machine().changed.wait_for(lock, delay, [&] { return is_wanted(stream); });
}

void wait_for_token(Lock& lock, Stream& stream, Token& token) {
  while (!token.done) {
    if (is_wanted(stream)) want(*token.stream, token.position);
    machine().changed.wait(lock);
  }
}

void fail(Context& context, const Outcome& outcome) {
  ++machine().counted.faults;
  fprintf(stderr, "fake " PLATFORM ": device %d: %s\n", context.ordinal, outcome.why.c_str());
  if (!context.fault) context.fault = Code(outcome.code);
}

void run(Lock& lock, Stream& stream, const Command& command) {
  if (command.wait) {
    wait_for_token(lock, stream, *command.wait);
  } else if (command.record) {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    command.record->nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
    command.record->done = true;
  } else if (!stream.context->fault) {
    lock.unlock();
    const Outcome outcome = command.work();
    lock.lock();
    if (outcome.code) fail(*stream.context, outcome);
  }
}

void serve(std::shared_ptr<Stream> stream) {
  prepare_thread();
  Machine& all = machine();
  Lock lock(all.lock);
  for (;;) {
    all.changed.wait(lock, [&] { return stream->closing || !stream->queue.empty(); });
    if (stream->queue.empty()) break;
    linger(lock, *stream);
    run(lock, *stream, stream->queue.front());
    stream->queue.pop_front();
    ++stream->finished;
    all.changed.notify_all();
  }
  --stream->context->workers;
  all.changed.notify_all();
}

}  // namespace

unsigned long long draw_seed() {
  static unsigned long long count = 0;
  return machine().settings.seed * 1000003 + ++count;
}

Code stream_of(const Context& context, Handle handle, std::shared_ptr<Stream>& stream) {
  return of_context(machine().streams, handle, context, stream);
}

void want(Stream& stream, uint64_t position) {
  if (stream.wanted >= position) return;
  stream.wanted = position;
  machine().changed.notify_all();
}

void push(Stream& stream, Command command) {
  stream.queue.push_back(std::move(command));
  ++stream.pushed;
  machine().changed.notify_all();
}

Code submit(Stream& stream, Work work) {
  if (stream.capture) return capture_node(stream, std::move(work));
  push(stream, {std::move(work), nullptr, nullptr});
  return SUCCESS;
}

Code wait_for(Lock& lock, const std::shared_ptr<Stream>& stream, uint64_t position) {
  want(*stream, position);
  machine().changed.wait(lock, [&] { return stream->finished >= position || stream->context->fault; });
  return stream->context->destroyed ? CONTEXT_IS_DESTROYED : stream->context->fault;
}

size_t end_streams(Lock& lock, const Context& context) {
  size_t count = 0;
  auto& table = machine().streams.all;
  for (auto at = table.begin(); at != table.end();) {
    if (at->second->context != &context) {
      ++at;
      continue;
    }
    at->second->closing = true;
    at = table.erase(at);
    ++count;
  }
  machine().changed.notify_all();
  machine().changed.wait(lock, [&] { return context.workers == 0; });
  return count;
}

API int cuStreamCreate(Handle* handle, unsigned flags) {
  return in_context(__func__, [&](Context& context, Lock&) {
    if (!handle || flags > 1) return INVALID_VALUE;
    auto stream = std::make_shared<Stream>();
    stream->context = &context;
    stream->drawn = draw_seed() * 0x9e3779b97f4a7c15ull | 1;
    *handle = machine().streams.add(stream);
    ++context.workers;
    std::thread(serve, stream).detach();
    return SUCCESS;
  });
}

// What stands in its queue is still run.
API int cuStreamDestroy_v2(Handle handle) {
  return in_context(__func__, [&](Context& context, Lock&) {
    std::shared_ptr<Stream> stream;
    TRY(stream_of(context, handle, stream));
    if (stream->capture) invalidate(*stream->capture);
    stream->closing = true;
    machine().streams.all.erase(handle);
    machine().changed.notify_all();
    return SUCCESS;
  });
}

API int cuStreamSynchronize(Handle handle) {
  return in_context(__func__, [&](Context& context, Lock& lock) {
    std::shared_ptr<Stream> stream;
    TRY(stream_of(context, handle, stream));
    TRY(refused_in_capture_of(*stream));
    return wait_for(lock, stream, stream->pushed);
  });
}

API int cuStreamQuery(Handle handle) {
  return in_context(__func__, [&](Context& context, Lock&) {
    std::shared_ptr<Stream> stream;
    TRY(stream_of(context, handle, stream));
    TRY(refused_in_capture_of(*stream));
    return stream->finished == stream->pushed ? SUCCESS : NOT_READY;
  });
}

// Puts work of another library of the maker's into a stream, as that library does with launches of its own; it is no fault of the
// device's, whatever becomes of it.
API int fakeCudaEnqueue(Handle handle, void (*work)(void*), void* context) {
  return in_context(__func__, [&](Context& current, Lock&) {
    std::shared_ptr<Stream> stream;
    TRY(stream_of(current, handle, stream));
    return submit(*stream, [work, context]() -> Outcome {
      work(context);
      return {SUCCESS, ""};
    });
  });
}
