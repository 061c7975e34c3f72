// Captures of streams, and the graphs that they become.
#pragma once

#include <thread>

#include "events.hpp"

// What has been captured so far. Its nodes stand in an order in which they may run.
struct Capture {
  unsigned mode;
  std::thread::id thread;
  Stream* origin;
  std::vector<Work> nodes;
  bool invalid = false;
};

struct Graph {
  Context* context;
  std::vector<Work> nodes;
};

struct Executable {
  Context* context;
  std::vector<Work> nodes;
};

// For calls that a capture forbids, of this thread or of any: then they are refused, and the capture is worth nothing.
Code refused_in_capture();
// The same for calls that ask after a stream, which none may ask after that is captured.
Code refused_in_capture_of(Stream& stream);

void invalidate(Capture& capture);

Code capture_node(Stream& stream, Work work);

// A wait for an event where one of them is captured: the stream becomes a part of the event's capture.
Code join_capture(const std::shared_ptr<Stream>& stream, const Event& event);
