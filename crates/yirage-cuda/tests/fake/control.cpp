#include "control.hpp"

#include <stdio.h>
#include <stdlib.h>

#include <string>

#include "events.hpp"
#include "graphs.hpp"
#include "machine.hpp"
#include "modules.hpp"
#include "streams.hpp"

namespace {

// Calls of a name still to come until one fails, and with what.
struct Failure {
  std::string call;
  int left;
  Code code;
};

// Those of the environment come first, as if they had been asked for before any call.
std::vector<Failure>& failures() {
  static std::vector<Failure>* all = [] {
    auto* read = new std::vector<Failure>;
    const std::string& text = machine().settings.fail;
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find(',', at), text.size());
      char call[64];
      int nth, code;
      if (sscanf(text.substr(at, end - at).c_str(), "%63[^:]:%d:%d", call, &nth, &code) != 3) {
        fprintf(stderr, "fake " PLATFORM ": FAKE_CUDA_FAIL is `%s`: expected CALL:NTH:CODE,...\n", text.c_str());
        abort();
      }
      read->push_back({call, nth, Code(code)});
      at = end + 1;
    }
    return read;
  }();
  return *all;
}

}  // namespace

Code injected(const char* call) {
  std::vector<Failure>& all = failures();
  Code code = SUCCESS;
  for (size_t at = 0; at < all.size();) {
    if (all[at].call == call && --all[at].left == 0) {
      if (!code) code = all[at].code;
      all.erase(all.begin() + at);
    } else {
      ++at;
    }
  }
  return code;
}

// The `nth` call of this name from now fails with `code`, once, and does nothing. The names `kernel` and `copy` are those of
// operations as a device runs them, whose fault then is the context's. With 0 for `nth` all that was asked for is forgotten.
API void fakeCudaFail(const char* call, int nth, int code) {
  Lock lock(machine().lock);
  if (nth <= 0)
    failures().clear();
  else
    failures().push_back({call, nth, Code(code)});
}

API void fakeCudaStats(FakeCudaStats* stats) {
  Machine& all = machine();
  Lock lock(all.lock);
  *stats = all.counted;
  for (size_t bytes : all.held) stats->bytes += bytes;
  stats->buffers = all.memory.size();
  stats->host_buffers = all.host_memory.size();
  stats->streams = all.streams.all.size();
  stats->events = all.events.all.size();
  stats->modules = all.modules.all.size();
  stats->graphs = all.graphs.all.size();
  stats->executables = all.executables.all.size();
  for (const Context* context : all.primary) stats->contexts += context != nullptr;
}
