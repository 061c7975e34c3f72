// How a program runs launches, and what it has to say where one goes wrong.
#pragma once

#include <stddef.h>

#include "emulator.hpp"

namespace emulator {

struct Launch {
  const char* name;
  void (*run)(const Buffer* buffers);
  const Buffer* buffers;
  // Threads of each group.
  Word threads;
  Index grid;
  // What orders of threads are drawn from.
  unsigned long long seed;
  // Of a launch that begins early: keeps from it what earlier ones write, or gives it to it.
  void (*withhold)(bool withheld) = nullptr;
  // Whether all groups are there together, so that they may wait for each other.
  bool together = false;
};

// Guards of memory are as large as the largest page of a system.
const size_t PAGE = 1 << 14;

// Runs a launch to its end. One at a time.
void run_grid(const Launch& launch);

// Memory of zeros.
char* map(size_t bytes);

// What went wrong, with the thread that ran.
void describe(char* text, size_t size, const char* why);

// The program's own: what becomes of a launch that went wrong.
[[noreturn]] void failed(const char* text);

}  // namespace emulator
