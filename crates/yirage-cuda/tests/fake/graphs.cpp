#include "graphs.hpp"

#include <algorithm>

namespace {

const unsigned GLOBAL = 0, THREAD = 1, RELAXED = 2;
// To be freed at a launch; to be uploaded; by the device; with the nodes' priorities.
const unsigned long long KNOWN_FLAGS = 1 | 2 | 4 | 8;

bool is_active(const std::shared_ptr<Capture>& capture) {
  const auto& all = machine().captures;
  return std::find(all.begin(), all.end(), capture) != all.end();
}

void merge(std::vector<bool>& into, const std::vector<bool>& from) {
  if (into.size() < from.size()) into.resize(from.size());
  for (size_t at = 0; at < from.size(); ++at)
    if (from[at]) into[at] = true;
}

// No stream is a part of it any more.
void dissolve(const std::shared_ptr<Capture>& capture) {
  for (auto& [handle, stream] : machine().streams.all)
    if (stream->capture == capture) {
      stream->capture = nullptr;
      stream->before.clear();
    }
  auto& all = machine().captures;
  all.erase(std::remove(all.begin(), all.end(), capture), all.end());
}

// Whether another stream has nodes that nothing of the first one waits for.
bool is_joined(const Stream& origin) {
  const auto& before = origin.before;
  return before.size() == origin.capture->nodes.size() && std::all_of(before.begin(), before.end(), [](bool is) { return is; });
}

Outcome run_all(const std::vector<Work>& nodes) {
  for (const Work& node : nodes) {
    Outcome outcome = node();
    if (outcome.code) return outcome;
  }
  return {};
}

template <class T>
Code destroy(Handles<T>& handles, Handle handle, const Context& context) {
  std::shared_ptr<T> thing;
  TRY(of_context(handles, handle, context, thing));
  handles.all.erase(handle);
  return SUCCESS;
}

}  // namespace

void invalidate(Capture& capture) { capture.invalid = true; }

Code refused_in_capture() {
  Code code = SUCCESS;
  for (const auto& capture : machine().captures) {
    const bool is_own = capture->thread == std::this_thread::get_id();
    if (capture->mode == RELAXED || (capture->mode == THREAD && !is_own)) continue;
    invalidate(*capture);
    code = STREAM_CAPTURE_UNSUPPORTED;
  }
  return code;
}

Code refused_in_capture_of(Stream& stream) {
  if (!stream.capture) return refused_in_capture();
  invalidate(*stream.capture);
  return STREAM_CAPTURE_UNSUPPORTED;
}

Code capture_node(Stream& stream, Work work) {
  Capture& capture = *stream.capture;
  if (capture.invalid) return STREAM_CAPTURE_INVALIDATED;
  capture.nodes.push_back(std::move(work));
  stream.before.resize(capture.nodes.size());
  stream.before.back() = true;
  return SUCCESS;
}

Code join_capture(const std::shared_ptr<Stream>& stream, const Event& event) {
  if (!event.capture) {
    // A place outside of the capture. One that was never recorded is none.
    if (!event.token) return SUCCESS;
    invalidate(*stream->capture);
    return STREAM_CAPTURE_ISOLATION;
  }
  if (!is_active(event.capture)) return CAPTURED_EVENT;
  if (event.capture->invalid) return STREAM_CAPTURE_INVALIDATED;
  if (stream->capture && stream->capture != event.capture) {
    invalidate(*stream->capture);
    invalidate(*event.capture);
    return STREAM_CAPTURE_MERGE;
  }
  stream->capture = event.capture;
  merge(stream->before, event.before);
  return SUCCESS;
}

API int cuStreamBeginCapture_v2(Handle handle, unsigned mode) {
  return in_context(__func__, [&](Context& context, Lock&) {
    std::shared_ptr<Stream> stream;
    TRY(stream_of(context, handle, stream));
    if (mode > RELAXED) return INVALID_VALUE;
    if (stream->capture) return ILLEGAL_STATE;
    stream->capture = std::make_shared<Capture>();
    stream->capture->mode = mode;
    stream->capture->thread = std::this_thread::get_id();
    stream->capture->origin = stream.get();
    machine().captures.push_back(stream->capture);
    ++machine().counted.captures;
    return SUCCESS;
  });
}

API int cuStreamEndCapture(Handle handle, Handle* graph_handle) {
  return in_context(__func__, [&](Context& context, Lock&) {
    std::shared_ptr<Stream> stream;
    TRY(stream_of(context, handle, stream));
    if (!graph_handle) return INVALID_VALUE;
    *graph_handle = nullptr;
    const std::shared_ptr<Capture> capture = stream->capture;
    if (!capture) return ILLEGAL_STATE;
    if (capture->origin != stream.get()) {
      invalidate(*capture);
      return STREAM_CAPTURE_UNMATCHED;
    }
    if (capture->mode != RELAXED && capture->thread != std::this_thread::get_id()) return STREAM_CAPTURE_WRONG_THREAD;
    const bool joined = is_joined(*stream);
    dissolve(capture);
    if (capture->invalid) return STREAM_CAPTURE_INVALIDATED;
    if (!joined) return STREAM_CAPTURE_UNJOINED;
    auto graph = std::make_shared<Graph>();
    graph->context = &context;
    graph->nodes = std::move(capture->nodes);
    *graph_handle = machine().graphs.add(graph);
    return SUCCESS;
  });
}

API int cuGraphInstantiateWithFlags(Handle* executable_handle, Handle graph_handle, unsigned long long flags) {
  return in_context(__func__, [&](Context& context, Lock&) {
    std::shared_ptr<Graph> graph;
    TRY(of_context(machine().graphs, graph_handle, context, graph));
    if (!executable_handle || flags & ~KNOWN_FLAGS) return INVALID_VALUE;
    auto executable = std::make_shared<Executable>();
    executable->context = &context;
    executable->nodes = graph->nodes;
    *executable_handle = machine().executables.add(executable);
    return SUCCESS;
  });
}

// A launch that has begun ends, whatever becomes of the handle.
API int cuGraphLaunch(Handle handle, Handle stream_handle) {
  return in_context(__func__, [&](Context& context, Lock&) {
    std::shared_ptr<Executable> executable;
    std::shared_ptr<Stream> stream;
    TRY(of_context(machine().executables, handle, context, executable));
    TRY(stream_of(context, stream_handle, stream));
    if (stream->capture) {
      invalidate(*stream->capture);
      return STREAM_CAPTURE_UNSUPPORTED;
    }
    ++machine().counted.graph_launches;
    return submit(*stream, [executable] { return run_all(executable->nodes); });
  });
}

API int cuGraphDestroy(Handle handle) {
  return in_context(__func__, [&](Context& context, Lock&) { return destroy(machine().graphs, handle, context); });
}

API int cuGraphExecDestroy(Handle handle) {
  return in_context(__func__,
                    [&](Context& context, Lock&) { return destroy(machine().executables, handle, context); });
}
