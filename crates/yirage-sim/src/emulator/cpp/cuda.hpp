// Words of CUDA, which its compilers know without a header, and those of its kin.
#include "emulator.hpp"

#define __global__
#define __device__
#define __forceinline__ inline
// Of each group its own, where several are there together: they stand in one place, which is exchanged.
#define __shared__ static __attribute__((section("group_memory")))
#define __launch_bounds__(...)
#define EMULATED_PARAMETERS

#define threadIdx emulator::thread
#define blockIdx emulator::group

extern "C" float fabsf(float);
extern "C" float sqrtf(float);
extern "C" float floorf(float);
extern "C" float rintf(float);
extern "C" float fmaf(float, float, float);

inline void __syncthreads() { emulator::barrier(); }
inline float __uint_as_float(unsigned int x) { return __builtin_bit_cast(float, x); }
inline float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
inline unsigned int __float_as_uint(float x) { return __builtin_bit_cast(unsigned int, x); }
inline int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
inline int __popc(int x) { return __builtin_popcount((unsigned int)x); }

template <class T>
T __shfl_sync(unsigned int, T x, int lane, int width) {
  return emulator::exchanged(x, (unsigned int)lane, (unsigned int)width);
}
template <class T>
T __shfl(T x, int lane) {
  return emulator::exchanged(x, (unsigned int)lane, EMULATED_SUBGROUP);
}

#include "instructions.hpp"
