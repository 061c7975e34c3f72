// Where ranks meet, which are threads or processes: a file of shared memory for each identity, removed by the last who leaves.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "elements.hpp"

const int MOST_RANKS = 8;
const size_t SLOT = 8 << 20, MAILBOX = 1 << 20;

// What a rank does, as the others compare it.
struct Signature {
  int kind, type, operation, peer;
  uint64_t count, number;
};

struct Meeting;

// One rank's place. Waits end when all have come, when it is aborted, or when a rank is found to do something else.
struct Place {
  Meeting* meeting;
  int rank, ranks;
  std::atomic<bool> aborted{false};
  // What has gone wrong, 0 for nothing.
  std::atomic<int> failed{0};
};

// Waits until all ranks have come; null for a rank that is there already or a group of another size, with why.
Place* join(const std::string& identity, int rank, int ranks, std::string& why);
void leave(Place* place);

// Gives `bytes` and gets what all give, in `got`, which then are lent to `use`; what it answers has failed already where it is false.
bool meet(Place& place, const Signature& own, const void* give, size_t bytes,
          void (*use)(void* context, const std::vector<const char*>& all), void* context);

// A message, which is waited for on both sides.
bool send(Place& place, const Signature& own, const void* give, size_t bytes, int to);
bool receive(Place& place, const Signature& own, void* get, size_t bytes, int from);
