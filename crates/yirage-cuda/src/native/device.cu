// What kernels that are written by hand call beside C++: words of several elements, and the device's own instructions. Whoever
// defines `EMULATED_INSTRUCTIONS` has all of it by other means.
#ifndef EMULATED_INSTRUCTIONS

typedef unsigned int Word;

struct alignas(8) Words2 { Word x, y; };
struct alignas(16) Words4 { Word x, y, z, w; };
struct alignas(16) Floats4 { float x, y, z, w; };

#define DEVICE static __device__ __forceinline__
#define UNROLL _Pragma("unroll")
// What several turns at once would have on the way takes more registers than there are.
#define KEEP_LOOP _Pragma("unroll 1")

// What lies at an address, which is a multiple of its size.
template <class T>
DEVICE T read_at(const void* at) { return *(const T*)at; }
// Bytes of a weight, which nothing writes while kernels run and which are read once: they leave no trace in the first cache.
DEVICE Words4 read_weight(const Words4* at) {
  Words4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(at));
  return v;
}
DEVICE Words2 read_weight(const Words2* at) {
  Words2 v;
  asm volatile("ld.global.nc.v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(at));
  return v;
}
// Half a word, whose neighbours are read by instructions that follow.
DEVICE Word read_weight(const unsigned short* at) {
  unsigned short v;
  asm volatile("ld.global.nc.u16 %0, [%1];" : "=h"(v) : "l"(at));
  return v;
}
// What an earlier launch has written: by the second cache, which all multiprocessors have in common.
DEVICE Floats4 read_written(const float* at) {
  Floats4 v;
  asm volatile("ld.global.cg.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(at) : "memory");
  return v;
}
// Differences of two pairs of bf16.
DEVICE Word subtract_bf16(Word a, Word b) {
  Word v;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(v) : "r"(a), "r"(0x3f803f80u), "r"(b ^ 0x80008000u));
  return v;
}
DEVICE float float_of_half(Word x) {
  float v;
  asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"((unsigned short)x));
  return v;
}
// sums += a * b, of 16 rows and 8 columns by 16 elements of bf16, as PTX's m16n8k16 has them in the lanes of a warp.
DEVICE void multiply_bf16(float (&sums)[4], Word a0, Word a1, Word a2, Word a3, Word b0, Word b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
               : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
DEVICE float exchange_xor(float x, int mask) { return __shfl_xor_sync(0xffffffffu, x, mask, 32); }
DEVICE float exchange_from(float x, int lane) { return __shfl_sync(0xffffffffu, x, lane, 32); }
// Begins a copy to shared memory of what an earlier launch has written: by the second cache, past registers.
DEVICE void copy_async(Floats4* to, const float* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" : : "r"((Word)__cvta_generic_to_shared(to)), "l"(from) : "memory");
}
// What the thread has begun to copy since it last said so is a group.
DEVICE void commit_copies() { asm volatile("cp.async.commit_group;" : : : "memory"); }
// The thread's groups are there, but for the `LATER` last ones.
template <Word LATER>
DEVICE void wait_for_copies() { asm volatile("cp.async.wait_group %0;" : : "n"(LATER) : "memory"); }
// The number of the block and of the thread in it, and where all of its threads meet, or so many of them by a barrier's number.
DEVICE Word own_group() { return blockIdx.x; }
DEVICE Word block_thread() { return threadIdx.x; }
DEVICE void meet_all() { __syncthreads(); }
template <Word COUNT>
DEVICE void meet_threads(Word barrier) { asm volatile("bar.sync %0, %1;" : : "r"(barrier), "n"(COUNT) : "memory"); }
// A function that is not written out where it is called.
#define KEPT_APART __noinline__
// Returns when a counter has come so far that other blocks of the launch raise: what those had written is there, for this thread and
// for those that meet it then. Of one that never comes so far an error is told.
DEVICE void wait_at_least(const Word* counter, Word least) {
  Word value;
  for (Word polls = 0;; ++polls) {
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(counter) : "memory");
    if (value >= least) return;
    if (polls >> 28) asm volatile("trap;");
  }
}
// Raises a counter by one, behind all that the threads have written that this one has met.
DEVICE void raise(Word* counter) {
  asm volatile("fence.acq_rel.gpu;" : : : "memory");
  asm volatile("red.release.gpu.global.add.u32 [%0], 1;" : : "l"(counter) : "memory");
}
// What came before on the stream is over, and what it wrote is there. Of devices that start no launch early it is so already.
DEVICE void wait_for_earlier() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
// The launch that follows may begin, where it may begin early: it waits by itself for what this one writes.
DEVICE void let_next_begin() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

#endif
