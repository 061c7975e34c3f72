//! What stands before the first kernel of a source in C++: the functions that kernels call, by each language's own means.
//!
//! Every function is one of a few that the body of a kernel names, so that a language is a choice among these parts. `SUBGROUP`
//! is defined before them.

/// The words of CUDA's declarations, where a compiler knows the attributes alone.
pub(super) const HIP_WORDS: &str = r#"#ifndef __global__
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __launch_bounds__(threads) __attribute__((launch_bounds(threads)))
#endif
#ifndef __forceinline__
#define __forceinline__ inline __attribute__((always_inline))
#endif
"#;

/// What all of CUDA's family have in common. Where clang compiles, a product and a sum stay two operations.
pub(super) const COMMON: &str = r#"#ifdef __clang__
#pragma clang fp contract(off)
#endif
typedef unsigned int uint;
#define FUNCTION static __device__ __forceinline__
FUNCTION uint bits_as_u32(int x) { return (uint)x; }
FUNCTION int bits_as_i32(uint x) { return (int)x; }
FUNCTION int magnitude(int x) { return x < 0 ? (int)(0u - (uint)x) : x; }
FUNCTION int quotient(int a, int b) { return b == -1 ? (int)(0u - (uint)a) : a / b; }
FUNCTION int remainder_of(int a, int b) { return b == -1 ? 0 : a % b; }
"#;

/// Threads, groups and functions by names that CUDA's compilers know without a header.
pub(super) const CUDA: &str = r#"FUNCTION uint thread_of_group() { return threadIdx.x; }
FUNCTION uint group_of_grid_0() { return blockIdx.x; }
FUNCTION uint group_of_grid_1() { return blockIdx.y; }
FUNCTION uint group_of_grid_2() { return blockIdx.z; }
FUNCTION void group_barrier() { __syncthreads(); }
FUNCTION float bits_as_f32(uint x) { return __uint_as_float(x); }
FUNCTION float bits_as_f32(int x) { return __int_as_float(x); }
FUNCTION uint bits_as_u32(float x) { return __float_as_uint(x); }
FUNCTION int bits_as_i32(float x) { return __float_as_int(x); }
FUNCTION float magnitude(float x) { return fabsf(x); }
FUNCTION float root(float x) { return sqrtf(x); }
FUNCTION float round_down(float x) { return floorf(x); }
FUNCTION float round_to_even(float x) { return rintf(x); }
FUNCTION uint count_ones(uint x) { return (uint)__popc((int)x); }
"#;

/// The same by clang's own functions, which need no header of HIP.
pub(super) const HIP: &str = r#"FUNCTION uint thread_of_group() { return __builtin_amdgcn_workitem_id_x(); }
FUNCTION uint group_of_grid_0() { return __builtin_amdgcn_workgroup_id_x(); }
FUNCTION uint group_of_grid_1() { return __builtin_amdgcn_workgroup_id_y(); }
FUNCTION uint group_of_grid_2() { return __builtin_amdgcn_workgroup_id_z(); }
FUNCTION void group_barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
FUNCTION float bits_as_f32(uint x) { return __builtin_bit_cast(float, x); }
FUNCTION float bits_as_f32(int x) { return __builtin_bit_cast(float, x); }
FUNCTION uint bits_as_u32(float x) { return __builtin_bit_cast(uint, x); }
FUNCTION int bits_as_i32(float x) { return __builtin_bit_cast(int, x); }
FUNCTION float magnitude(float x) { return __builtin_fabsf(x); }
FUNCTION float root(float x) { return __builtin_sqrtf(x); }
FUNCTION float round_down(float x) { return __builtin_floorf(x); }
FUNCTION float round_to_even(float x) { return __builtin_rintf(x); }
FUNCTION uint count_ones(uint x) { return (uint)__builtin_popcount(x); }
"#;

/// Floats of 16 bits by PTX's conversions; by arithmetic where something else than NVIDIA's compiler reads the source.
pub(super) const PTX_HALF: &str = r#"#ifdef __CUDA_ARCH__
FUNCTION float half_as_f32(uint x) {
  float y; unsigned short h = (unsigned short)x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(h));
  return y;
}
FUNCTION uint f32_as_half(float x) {
  unsigned short h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
  return h;
}
#else
"#;

/// The end of [`PTX_HALF`].
pub(super) const END: &str = "#endif\n";

/// Floats of 16 bits by a type of the language.
pub(super) const NATIVE_HALF: &str = r#"FUNCTION float half_as_f32(uint x) { return (float)__builtin_bit_cast(_Float16, (unsigned short)x); }
FUNCTION uint f32_as_half(float x) { return (uint)__builtin_bit_cast(unsigned short, (_Float16)x); }
"#;

/// Floats of 16 bits by arithmetic on bits, for compilers without a type that is known to have no header.
pub(super) const SOFT_HALF: &str = r#"FUNCTION float half_as_f32(uint x) {
  const uint size = x & 0x7fffu, sign = (x & 0x8000u) << 16;
  const uint normal = (size << 13) + 0x38000000u, special = (size << 13) + 0x70000000u;
  const uint subnormal = bits_as_u32((float)size * 5.9604645e-8f);
  const uint bits = size >= 0x7c00u ? special : size >= 0x400u ? normal : subnormal;
  return bits_as_f32(bits | sign);
}
FUNCTION uint f32_as_half(float x) {
  const uint bits = bits_as_u32(x), size = bits & 0x7fffffffu, sign = (bits >> 16) & 0x8000u;
  if (size > 0x7f800000u) return sign | 0x7e00u;
  if (size >= 0x47800000u) return sign | 0x7c00u;
  if (size < 0x38800000u) return sign | (bits_as_u32(bits_as_f32(size) + 0.5f) - 0x3f000000u);
  const uint moved = size - 0x38000000u;
  return sign | ((moved + 0xfffu + ((moved >> 13) & 1u)) >> 13);
}
"#;

/// What another thread of the subgroup has, by a shuffle in which all of them meet.
pub(super) const CUDA_SHUFFLE: &str = r#"template <class T> FUNCTION T subgroup_shuffle(T x, uint lane) {
  return __shfl_sync(0xffffffffu, x, (int)lane, (int)SUBGROUP);
}
"#;

/// The same by the shuffle of languages whose subgroups run in step.
pub(super) const STEP_SHUFFLE: &str =
    "template <class T> FUNCTION T subgroup_shuffle(T x, uint lane) { return __shfl(x, (int)lane); }\n";

/// The same by clang's own function, which counts in bytes.
pub(super) const HIP_SHUFFLE: &str = r#"FUNCTION int subgroup_shuffle(int x, uint lane) { return __builtin_amdgcn_ds_bpermute((int)(lane << 2), x); }
FUNCTION uint subgroup_shuffle(uint x, uint lane) { return (uint)subgroup_shuffle((int)x, lane); }
FUNCTION float subgroup_shuffle(float x, uint lane) { return bits_as_f32(subgroup_shuffle(bits_as_i32(x), lane)); }
"#;

/// What a subgroup makes together, by shuffles: halves are joined with halves, as far as there are threads, and the first
/// thread's result is everybody's.
pub(super) const SUBGROUP: &str = r#"FUNCTION uint lane_of_subgroup() { return thread_of_group() & (SUBGROUP - 1u); }
FUNCTION float joined(float a, float b) { return a + b; }
FUNCTION uint joined(uint a, uint b) { return a + b; }
FUNCTION int joined(int a, int b) { return (int)((uint)a + (uint)b); }
struct JoinAdd { template <class T> FUNCTION T of(T a, T b) { return joined(a, b); } };
struct JoinMax { template <class T> FUNCTION T of(T a, T b) { return a < b ? b : a; } };
struct JoinMin { template <class T> FUNCTION T of(T a, T b) { return a < b ? a : b; } };
template <class F, class T> FUNCTION T of_subgroup(T x, uint threads) {
  const uint lane = lane_of_subgroup(), lanes = threads - (thread_of_group() - lane);
  for (uint step = SUBGROUP / 2u; step > 0u; step >>= 1) {
    const T y = subgroup_shuffle(x, lane ^ step);
    if ((lane ^ step) < lanes) x = F::of(x, y);
  }
  return subgroup_shuffle(x, 0u);
}
template <class T> FUNCTION T subgroup_add(T x, uint threads) { return of_subgroup<JoinAdd>(x, threads); }
template <class T> FUNCTION T subgroup_max(T x, uint threads) { return of_subgroup<JoinMax>(x, threads); }
template <class T> FUNCTION T subgroup_min(T x, uint threads) { return of_subgroup<JoinMin>(x, threads); }
"#;

/// The Metal Shading Language.
pub(super) const METAL: &str = r#"#include <metal_stdlib>
using namespace metal;
#pragma METAL fp math_mode(safe)
#pragma METAL fp contract(off)
#define thread_of_group() thread_index
#define group_of_grid_0() group_index.x
#define group_of_grid_1() group_index.y
#define group_of_grid_2() group_index.z
#define lane_of_subgroup() lane_index
#define group_barrier() threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device)
#define bits_as_f32(x) as_type<float>(x)
#define bits_as_u32(x) as_type<uint>(x)
#define bits_as_i32(x) as_type<int>(x)
inline float magnitude(float x) { return abs(x); }
inline int magnitude(int x) { return x < 0 ? int(0u - uint(x)) : x; }
inline int quotient(int a, int b) { return b == -1 ? int(0u - uint(a)) : a / b; }
inline int remainder_of(int a, int b) { return b == -1 ? 0 : a % b; }
#define root(x) precise::sqrt(x)
#define round_down(x) floor(x)
#define round_to_even(x) rint(x)
#define count_ones(x) popcount(x)
#define half_as_f32(x) float(as_type<half>(ushort(x)))
#define f32_as_half(x) uint(as_type<ushort>(half(x)))
#define subgroup_shuffle(x, lane) simd_shuffle(x, ushort(lane))
#define subgroup_add(x, threads) simd_sum(x)
#define subgroup_max(x, threads) simd_max(x)
#define subgroup_min(x, threads) simd_min(x)
"#;

/// What a kernel of Metal is given beside its buffers.
pub(super) const METAL_PARAMETERS: [&str; 3] = [
    "uint thread_index [[thread_index_in_threadgroup]]",
    "uint3 group_index [[threadgroup_position_in_grid]]",
    "uint lane_index [[thread_index_in_simdgroup]]",
];
