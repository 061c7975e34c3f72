// Events: the last place of a queue where one was recorded.
#pragma once

#include "streams.hpp"

struct Event {
  Context* context;
  bool has_time;
  // Where it was recorded last, if that was no capture.
  std::shared_ptr<Token> token;
  // The capture in which it was recorded last, and what comes before it there.
  std::shared_ptr<Capture> capture;
  std::vector<bool> before;
};
