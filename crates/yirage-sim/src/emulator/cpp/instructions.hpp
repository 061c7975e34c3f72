// What the CUDA kernels that are written by hand call beside C++, as `device.cu` of `yirage-cuda` has it in NVIDIA's instructions.
#pragma once

#define EMULATED_INSTRUCTIONS

typedef unsigned int Word;

struct alignas(8) Words2 { Word x, y; };
struct alignas(16) Words4 { Word x, y, z, w; };
struct alignas(16) Floats4 { float x, y, z, w; };

#define DEVICE static inline
#define UNROLL
#define KEEP_LOOP
#define KEPT_APART

template <class T>
T read_aligned(const void* at) {
  if ((unsigned long)at % alignof(T)) emulator::fail("an address that is no multiple of what is read there");
  return *(const T*)at;
}
template <class T>
T read_at(const void* at) { return read_aligned<T>(at); }
inline Words4 read_weight(const Words4* at) { return read_aligned<Words4>(at); }
inline Words2 read_weight(const Words2* at) { return read_aligned<Words2>(at); }
inline Word read_weight(const unsigned short* at) { return read_aligned<unsigned short>(at); }
inline Floats4 read_written(const float* at) { return read_aligned<Floats4>(at); }

inline float float_of_bf16(Word x) { return __uint_as_float(x << 16); }
// Of results that are no float of bf16 nothing is said: they are cut off.
inline Word difference_bf16(Word a, Word b) { return __float_as_uint(float_of_bf16(a & 0xffffu) - float_of_bf16(b & 0xffffu)) >> 16; }
inline Word subtract_bf16(Word a, Word b) { return difference_bf16(a, b) | difference_bf16(a >> 16, b >> 16) << 16; }
inline float float_of_half(Word x) {
  const Word sign = (x & 0x8000u) << 16, exponent = x >> 10 & 31, bits = x & 1023;
  if (exponent == 0) return __uint_as_float(sign | __float_as_uint((float)bits * 0x1p-24f));
  return __uint_as_float(sign | (exponent == 31 ? 255 : exponent + 112) << 23 | bits << 13);
}

// An element of a row of 16 that four lanes have in pairs: lane i the elements 2 i and 2 i + 1, and those 8 behind them.
inline float element_bf16(const Word* lanes, Word word, Word step, Word element) {
  const Word pair = lanes[element % 8 / 2 * 8 + word + (element < 8 ? 0 : step)];
  return float_of_bf16(element % 2 ? pair >> 16 : pair & 0xffffu);
}

inline void multiply_bf16(float (&sums)[4], Word a0, Word a1, Word a2, Word a3, Word b0, Word b1) {
  const Word words[6] = {a0, a1, a2, a3, b0, b1}, lane = emulator::thread.x % 32;
  const Word* all = emulator::gather(words, 6, 32);
  for (Word at = 0; at < 4; ++at) {
    const Word* a = all + lane / 4 * 32;
    const Word* b = all + (lane % 4 * 2 + at % 2) * 32;
    double sum = sums[at];
    for (Word k = 0; k < 16; ++k) sum += (double)element_bf16(a, at / 2, 2, k) * element_bf16(b, 4, 1, k);
    sums[at] = (float)sum;
  }
  emulator::gathered(32);
}

// Copies of a thread that are on the way. What they bring is read when they begin, and is there when they are waited for: until then
// there are bits that belong to no copy.
const Word MOST_COPIES = 64;
struct CopyQueue {
  unsigned long long group_run;
  Word count, groups;
  struct {
    Floats4* to;
    Floats4 value;
    Word group;
  } copies[MOST_COPIES];
};
inline CopyQueue& copies_of_thread() {
  static CopyQueue* queues[emulator::MOST_THREADS];
  CopyQueue*& kept = queues[emulator::thread_there()];
  if (!kept) kept = new CopyQueue();
  CopyQueue& queue = *kept;
  if (queue.group_run != emulator::group_run) queue.count = queue.groups = 0;
  queue.group_run = emulator::group_run;
  return queue;
}
inline void copy_async(Floats4* to, const float* from) {
  CopyQueue& queue = copies_of_thread();
  if (queue.count == MOST_COPIES) emulator::fail("it has begun too many copies that nobody waits for");
  if ((unsigned long)to % alignof(Floats4)) emulator::fail("an address that is no multiple of what is copied there");
  auto& copy = queue.copies[queue.count++];
  copy.to = to;
  copy.value = read_aligned<Floats4>(from);
  copy.group = queue.groups;
  const Words4 poison = {0xffbadbadu, 0xffbadbadu, 0xffbadbadu, 0xffbadbadu};
  *(Words4*)to = poison;
}
inline void commit_copies() { ++copies_of_thread().groups; }
template <Word LATER>
inline void wait_for_copies() {
  CopyQueue& queue = copies_of_thread();
  Word left = 0;
  for (Word at = 0; at < queue.count; ++at) {
    if (queue.copies[at].group + LATER < queue.groups)
      *queue.copies[at].to = queue.copies[at].value;
    else
      queue.copies[left++] = queue.copies[at];
  }
  queue.count = left;
}

inline float exchange_from(float x, int lane) { return emulator::exchanged(x, lane, 32); }
inline float exchange_xor(float x, int mask) { return emulator::exchanged(x, (emulator::thread.x % 32) ^ mask, 32); }

inline Word own_group() { return emulator::group.x; }
inline Word block_thread() { return emulator::thread.x; }
inline void meet_all() { emulator::barrier(); }
template <Word COUNT>
inline void meet_threads(Word) { emulator::meet_threads(COUNT); }
inline void wait_at_least(const Word* counter, Word least) { emulator::wait_at_least(counter, least); }
inline void raise(Word* counter) { emulator::raise(counter); }

inline void wait_for_earlier() { emulator::wait_for_earlier(); }
inline void let_next_begin() {}
