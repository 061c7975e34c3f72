// What the source of kernels finds of the emulator: the thread that runs, and where the threads of a group meet.
// No header of the system is included here, so that a source of many kernels is read in little time.
#pragma once

namespace emulator {

typedef unsigned int Word;

struct Index {
  Word x, y, z;
};

// Of the thread that runs now.
extern Index thread;
extern Index group;
// Threads of each group of the launch.
extern Word threads;

// The number of the group that runs now among all of all launches, and that of its thread among those of the groups that are there
// together.
extern unsigned long long group_run;
Word thread_there();

// Threads that are there together at most.
const Word MOST_THREADS = 1 << 16;

// Returns when all threads of the group have come here.
void barrier();

// Returns when so many threads of the group, from a multiple of so many on, have come here.
void meet_threads(Word count);

// Returns when a counter has come so far, which other groups of the launch raise: of a launch all of whose groups are there together.
void wait_at_least(const Word* counter, Word least);
void raise(Word* counter);

// Returns when what came before the launch is over, and when all threads of the group have come here. Before that a launch that
// begins early cannot touch what kernels write, and each of its threads has to come here.
void wait_for_earlier();

// Words that each thread of the subgroup gives, as many of each (8 at most), when all of them have come here: those of lane i
// begin at 8 i, and stay until all of them have called `gathered`.
const Word* gather(const Word* words, Word count, Word subgroup);
void gathered(Word subgroup);

// What went wrong in a kernel.
[[noreturn]] void fail(const char* why);

// What the thread of this lane in the subgroup gives, when all threads of the subgroup have come here. Of a lane that is no thread
// of the group nothing is known.
Word exchange(Word given, Word lane, Word subgroup);

template <class T>
T exchanged(T given, Word lane, Word subgroup) {
  return __builtin_bit_cast(T, exchange(__builtin_bit_cast(Word, given), lane, subgroup));
}

// A buffer as whatever pointer a kernel takes.
struct Buffer {
  void* memory;
  template <class T>
  operator T*() const {
    return (T*)memory;
  }
};

// A kernel of the program, known by its name as soon as the program runs.
struct Kernel {
  const char* name;
  Word threads;
  void (*run)(const Buffer* buffers);
  const Kernel* next;
  Kernel(const char* name, Word threads, void (*run)(const Buffer*));
};

}  // namespace emulator
