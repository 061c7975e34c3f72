//! What stands before the first kernel of a source in C++: the functions that kernels call, by each language's own means.

/// CUDA's family: threads, groups and functions that all of its compilers know without a header.
pub(super) const CUDA_COMMON: &str = r#"typedef unsigned int uint;
static __device__ __forceinline__ uint thread_of_group() { return threadIdx.x; }
static __device__ __forceinline__ uint group_of_grid_0() { return blockIdx.x; }
static __device__ __forceinline__ uint group_of_grid_1() { return blockIdx.y; }
static __device__ __forceinline__ uint group_of_grid_2() { return blockIdx.z; }
static __device__ __forceinline__ void group_barrier() { __syncthreads(); }
static __device__ __forceinline__ float bits_as_f32(uint x) { return __uint_as_float(x); }
static __device__ __forceinline__ float bits_as_f32(int x) { return __int_as_float(x); }
static __device__ __forceinline__ uint bits_as_u32(float x) { return __float_as_uint(x); }
static __device__ __forceinline__ uint bits_as_u32(int x) { return (uint)x; }
static __device__ __forceinline__ int bits_as_i32(float x) { return __float_as_int(x); }
static __device__ __forceinline__ int bits_as_i32(uint x) { return (int)x; }
static __device__ __forceinline__ float magnitude(float x) { return fabsf(x); }
static __device__ __forceinline__ int magnitude(int x) { return x < 0 ? -x : x; }
static __device__ __forceinline__ float root(float x) { return sqrtf(x); }
static __device__ __forceinline__ float round_down(float x) { return floorf(x); }
static __device__ __forceinline__ float round_to_even(float x) { return rintf(x); }
static __device__ __forceinline__ uint count_ones(uint x) { return __popc(x); }
"#;

/// Floats of 16 bits by PTX's conversions.
pub(super) const CUDA_HALF: &str = r#"static __device__ __forceinline__ float half_as_f32(uint x) {
  float y; unsigned short h = (unsigned short)x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(h));
  return y;
}
static __device__ __forceinline__ uint f32_as_half(float x) {
  unsigned short h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
  return h;
}
"#;

/// Floats of 16 bits by arithmetic on bits, for compilers without a type that is known to have no header.
pub(super) const SOFT_HALF: &str = r#"static __device__ __forceinline__ float half_as_f32(uint x) {
  const uint size = x & 0x7fffu, sign = (x & 0x8000u) << 16;
  const uint normal = (size << 13) + 0x38000000u, special = (size << 13) + 0x70000000u;
  const uint subnormal = bits_as_u32((float)size * 5.9604645e-8f);
  const uint bits = size >= 0x7c00u ? special : size >= 0x400u ? normal : subnormal;
  return bits_as_f32(bits | sign);
}
static __device__ __forceinline__ uint f32_as_half(float x) {
  const uint bits = bits_as_u32(x), size = bits & 0x7fffffffu, sign = (bits >> 16) & 0x8000u;
  if (size > 0x7f800000u) return sign | 0x7e00u;
  if (size >= 0x47800000u) return sign | 0x7c00u;
  if (size < 0x38800000u) return sign | (bits_as_u32(bits_as_f32(size) + 0.5f) - 0x3f000000u);
  const uint moved = size - 0x38000000u;
  return sign | ((moved + 0xfffu + ((moved >> 13) & 1u)) >> 13);
}
"#;

/// Subgroups by CUDA's shuffles of 32 threads.
pub(super) const CUDA_SHUFFLE: &str = r#"static __device__ __forceinline__ uint lane_of_subgroup() { return threadIdx.x & 31u; }
template <class T> static __device__ __forceinline__ T subgroup_shuffle(T x, uint lane) { return __shfl_sync(0xffffffffu, x, (int)lane); }
template <class T> static __device__ __forceinline__ T subgroup_add(T x) {
  for (int step = 16; step > 0; step >>= 1) x += __shfl_xor_sync(0xffffffffu, x, step);
  return x;
}
template <class T> static __device__ __forceinline__ T subgroup_max(T x) {
  for (int step = 16; step > 0; step >>= 1) { const T y = __shfl_xor_sync(0xffffffffu, x, step); x = x < y ? y : x; }
  return x;
}
template <class T> static __device__ __forceinline__ T subgroup_min(T x) {
  for (int step = 16; step > 0; step >>= 1) { const T y = __shfl_xor_sync(0xffffffffu, x, step); x = x < y ? x : y; }
  return x;
}
"#;

/// What HIP's run-time compiler wants said.
pub(super) const HIP: &str = "#pragma clang fp contract(off)\n";

/// Subgroups by HIP's shuffles of 64 threads.
pub(super) const HIP_SHUFFLE: &str = r#"static __device__ __forceinline__ uint lane_of_subgroup() { return threadIdx.x & 63u; }
template <class T> static __device__ __forceinline__ T subgroup_shuffle(T x, uint lane) { return __shfl(x, (int)lane); }
template <class T> static __device__ __forceinline__ T subgroup_add(T x) {
  for (int step = 32; step > 0; step >>= 1) x += __shfl_xor(x, step);
  return x;
}
template <class T> static __device__ __forceinline__ T subgroup_max(T x) {
  for (int step = 32; step > 0; step >>= 1) { const T y = __shfl_xor(x, step); x = x < y ? y : x; }
  return x;
}
template <class T> static __device__ __forceinline__ T subgroup_min(T x) {
  for (int step = 32; step > 0; step >>= 1) { const T y = __shfl_xor(x, step); x = x < y ? x : y; }
  return x;
}
"#;

/// The Metal Shading Language.
pub(super) const METAL: &str = r#"#include <metal_stdlib>
using namespace metal;
#pragma METAL fp math_mode(safe)
#define thread_of_group() thread_index
#define group_of_grid_0() group_index.x
#define group_of_grid_1() group_index.y
#define group_of_grid_2() group_index.z
#define lane_of_subgroup() lane_index
#define group_barrier() threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device)
#define bits_as_f32(x) as_type<float>(x)
#define bits_as_u32(x) as_type<uint>(x)
#define bits_as_i32(x) as_type<int>(x)
#define magnitude(x) abs(x)
#define root(x) precise::sqrt(x)
#define round_down(x) floor(x)
#define round_to_even(x) rint(x)
#define count_ones(x) popcount(x)
#define half_as_f32(x) float(as_type<half>(ushort(x)))
#define f32_as_half(x) uint(as_type<ushort>(half(x)))
#define subgroup_shuffle(x, lane) simd_shuffle(x, ushort(lane))
#define subgroup_add(x) simd_sum(x)
#define subgroup_max(x) simd_max(x)
#define subgroup_min(x) simd_min(x)
"#;

/// What a kernel of Metal is given beside its buffers.
pub(super) const METAL_PARAMETERS: [&str; 3] = [
    "uint thread_index [[thread_index_in_threadgroup]]",
    "uint3 group_index [[threadgroup_position_in_grid]]",
    "uint lane_index [[thread_index_in_simdgroup]]",
];
