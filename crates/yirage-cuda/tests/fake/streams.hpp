// Queues of a device, each with a thread of its own that runs what stands in it, late where the seed says so.
#pragma once

#include <deque>
#include <functional>
#include <set>

#include "faults.hpp"
#include "machine.hpp"

// Something that a device does. A graph does it again and again.
typedef std::function<Outcome()> Work;

// A place in a queue that has a time once the device has come there.
struct Token {
  std::shared_ptr<Stream> stream;
  uint64_t position;
  bool done = false;
  // How often somebody has asked whether it is.
  unsigned asked = 0;
  int64_t nanoseconds = 0;
};

// One of the three.
struct Command {
  Work work;
  std::shared_ptr<Token> record, wait;
};

struct Stream {
  Context* context;
  std::deque<Command> queue;
  // Commands so far, those that are over, and those that somebody waits for.
  uint64_t pushed = 0, finished = 0, wanted = 0;
  bool closing = false;
  unsigned long long drawn;
  // While it is captured, that and which of its nodes come before whatever the stream gets next.
  std::shared_ptr<Capture> capture;
  std::vector<bool> before;
  // Where buffers begin that kernels were given to write.
  std::set<Address> written;
};

// The stream of a handle, if it belongs to the context. No function of the fake knows the default stream.
Code stream_of(const Context& context, Handle handle, std::shared_ptr<Stream>& stream);

// Puts something into a queue, or into the graph that is being captured there.
Code submit(Stream& stream, Work work);
void push(Stream& stream, Command command);

// Lets a stream run up to there without delays.
void want(Stream& stream, uint64_t position);

// Returns when the stream is there, or with what its context has failed with.
Code wait_for(Lock& lock, const std::shared_ptr<Stream>& stream, uint64_t position);

// A number that no other launch is given, from the seed.
unsigned long long draw_seed();

// Ends the threads of a context's streams, and says how many streams it still had.
size_t end_streams(Lock& lock, const Context& context);
