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

// Returns when all threads of the group have come here.
void barrier();

// What the thread of this lane in the subgroup gives, when all threads of the group have come here. Of a lane that is no thread
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
