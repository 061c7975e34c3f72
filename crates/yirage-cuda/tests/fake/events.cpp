#include "events.hpp"

#include <cmath>

#include "graphs.hpp"

namespace {

const unsigned BLOCKING = 1, NO_TIME = 2;
const unsigned PATIENCE = 16;

Code event_of(const Context& context, Handle handle, std::shared_ptr<Event>& event) {
  return of_context(machine().events, handle, context, event);
}

}  // namespace

API int cuEventCreate(Handle* handle, unsigned flags) {
  return in_context(__func__, [&](Context& context, Lock&) {
    if (!handle || flags & ~(BLOCKING | NO_TIME)) return INVALID_VALUE;
    auto event = std::make_shared<Event>();
    event->context = &context;
    event->has_time = !(flags & NO_TIME);
    *handle = machine().events.add(event);
    return SUCCESS;
  });
}

API int cuEventDestroy_v2(Handle handle) {
  return in_context(__func__, [&](Context& context, Lock&) {
    std::shared_ptr<Event> event;
    TRY(event_of(context, handle, event));
    machine().events.all.erase(handle);
    return SUCCESS;
  });
}

API int cuEventRecord(Handle handle, Handle stream_handle) {
  return in_context(__func__, [&](Context& context, Lock&) {
    std::shared_ptr<Event> event;
    std::shared_ptr<Stream> stream;
    TRY(event_of(context, handle, event));
    TRY(stream_of(context, stream_handle, stream));
    if (stream->capture) {
      if (stream->capture->invalid) return STREAM_CAPTURE_INVALIDATED;
      event->token = nullptr;
      event->capture = stream->capture;
      event->before = stream->before;
      return SUCCESS;
    }
    event->capture = nullptr;
    event->token = std::make_shared<Token>();
    event->token->stream = stream;
    event->token->position = stream->pushed + 1;
    push(*stream, {nullptr, event->token, nullptr});
    return SUCCESS;
  });
}

// The event may be another device's.
API int cuStreamWaitEvent(Handle stream_handle, Handle handle, unsigned flags) {
  return in_context(__func__, [&](Context& context, Lock&) {
    std::shared_ptr<Stream> stream;
    TRY(stream_of(context, stream_handle, stream));
    const std::shared_ptr<Event> event = machine().events.find(handle);
    if (!event) return INVALID_HANDLE;
    if (flags) return INVALID_VALUE;
    if (stream->capture || event->capture) return join_capture(stream, *event);
    if (event->token) push(*stream, {nullptr, nullptr, event->token});
    return SUCCESS;
  });
}

API int cuEventQuery(Handle handle) {
  return in_context(__func__, [&](Context& context, Lock&) {
    std::shared_ptr<Event> event;
    TRY(event_of(context, handle, event));
    if (event->capture) return CAPTURED_EVENT;
    TRY(refused_in_capture());
    Token* const token = event->token.get();
    if (!token || token->done) return SUCCESS;
    // Who asks again and again waits.
    if (++token->asked > PATIENCE) want(*token->stream, token->position);
    return NOT_READY;
  });
}

API int cuEventSynchronize(Handle handle) {
  return in_context(__func__, [&](Context& context, Lock& lock) {
    std::shared_ptr<Event> event;
    TRY(event_of(context, handle, event));
    if (event->capture) return CAPTURED_EVENT;
    TRY(refused_in_capture());
    const std::shared_ptr<Token> token = event->token;
    return token ? wait_for(lock, token->stream, token->position) : SUCCESS;
  });
}

API int cuEventElapsedTime(float* milliseconds, Handle first_handle, Handle second_handle) {
  return in_context(__func__, [&](Context& context, Lock&) {
    std::shared_ptr<Event> first, second;
    if (!milliseconds) return INVALID_VALUE;
    TRY(event_of(context, first_handle, first));
    TRY(event_of(context, second_handle, second));
    if (first->capture || second->capture) return CAPTURED_EVENT;
    if (!first->has_time || !second->has_time || !first->token || !second->token) return INVALID_HANDLE;
    if (!first->token->done || !second->token->done) return NOT_READY;
    // A device counts in halves of a microsecond.
    const double halves = std::round(double(second->token->nanoseconds - first->token->nanoseconds) / 500);
    *milliseconds = float(halves / 2000);
    return SUCCESS;
  });
}
