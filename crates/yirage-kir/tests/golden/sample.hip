#define SUBGROUP 64u
#ifndef __global__
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __launch_bounds__(threads) __attribute__((launch_bounds(threads)))
#endif
#ifndef __forceinline__
#define __forceinline__ inline __attribute__((always_inline))
#endif
#ifdef __clang__
#pragma clang fp contract(off)
#endif
typedef unsigned int uint;
#define FUNCTION static __device__ __forceinline__
FUNCTION uint bits_as_u32(int x) { return (uint)x; }
FUNCTION int bits_as_i32(uint x) { return (int)x; }
FUNCTION int magnitude(int x) { return x < 0 ? (int)(0u - (uint)x) : x; }
FUNCTION int quotient(int a, int b) { return b == -1 ? (int)(0u - (uint)a) : a / b; }
FUNCTION int remainder_of(int a, int b) { return b == -1 ? 0 : a % b; }
FUNCTION uint thread_of_group() { return __builtin_amdgcn_workitem_id_x(); }
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
FUNCTION float half_as_f32(uint x) { return (float)__builtin_bit_cast(_Float16, (unsigned short)x); }
FUNCTION uint f32_as_half(float x) { return (uint)__builtin_bit_cast(unsigned short, (_Float16)x); }
FUNCTION int subgroup_shuffle(int x, uint lane) { return __builtin_amdgcn_ds_bpermute((int)(lane << 2), x); }
FUNCTION uint subgroup_shuffle(uint x, uint lane) { return (uint)subgroup_shuffle((int)x, lane); }
FUNCTION float subgroup_shuffle(float x, uint lane) { return bits_as_f32(subgroup_shuffle(bits_as_i32(x), lane)); }
FUNCTION uint lane_of_subgroup() { return thread_of_group() & (SUBGROUP - 1u); }
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

extern "C" __global__ void __launch_bounds__(256) sample_38b4ace7169c23e4(
    const uint* __restrict__ b0,
    const uint* __restrict__ b1,
    const uint* __restrict__ b2,
    uint* __restrict__ b3,
    uint* __restrict__ b4) {
  __shared__ uint s0[256];
  __shared__ uint s1[256];
  __shared__ uint s2[16];
  __shared__ uint s3[16];
  const uint r0 = 1u;
  const uint r1 = b0[r0];
  const uint r2 = 3u;
  const uint r3 = b0[r2];
  const uint r4 = 2u;
  const uint r5 = b0[r4];
  const uint r6 = 0u;
  const uint r7 = b0[r6];
  const uint r8 = group_of_grid_0();
  const uint r9 = r8 + r0;
  const uint r10 = r9 < r1 ? r9 : r1;
  for (uint r11 = r8; r11 < r10; r11 += r0) {
    const uint r12 = b2[r11];
    const int r13 = bits_as_i32(r12);
    const uint r14 = bits_as_u32(r13);
    const bool r15 = r14 < r3;
    const uint r16 = 256u;
    const uint r17 = r15 ? r14 : r6;
    const uint r18 = r15 ? r16 : r6;
    const uint r19 = r17 * r16;
    uint v0 = r6;
    uint v1 = r6;
    uint v2 = r6;
    const uint r20 = 4294967295u;
    uint v3 = r20;
    uint v4 = r6;
    uint v5 = r6;
    const uint r21 = thread_of_group();
    const uint r22 = 1024u;
    for (uint r23 = r21; r23 < r18; r23 += r22) {
      const uint r24 = r19 + r23;
      const uint r25 = b1[r24];
      const float r26 = bits_as_f32(r25);
      const float r27 = bits_as_f32(2139095040u);
      const uint r28 = bits_as_u32(r26);
      const uint r29 = 2147483647u;
      const uint r30 = 2139095040u;
      const uint r31 = r28 & r29;
      const bool r32 = r30 < r31;
      const bool r33 = r26 == r27;
      const bool r34 = r32 | r33;
      const uint r35 = v3;
      const uint r36 = r35 < r23 ? r35 : r23;
      const uint r37 = r34 ? r36 : r35;
      v3 = r37;
      const float r38 = bits_as_f32(0u);
      const uint r39 = 2147483648u;
      const bool r40 = r26 == r38;
      const float r41 = r40 ? r38 : r26;
      const uint r42 = bits_as_u32(r41);
      const bool r43 = r39 <= r42;
      const uint r44 = ~r42;
      const uint r45 = r42 | r39;
      const uint r46 = r43 ? r44 : r45;
      const uint r47 = v4;
      const bool r48 = r47 < r46;
      if (r48) {
        v4 = r46;
        v5 = r23;
      }
      const uint r49 = r23 + r16;
      const bool r50 = r49 < r18;
      if (r50) {
        const uint r51 = r19 + r49;
        const uint r52 = b1[r51];
        const float r53 = bits_as_f32(r52);
        const uint r54 = bits_as_u32(r53);
        const uint r55 = r54 & r29;
        const bool r56 = r30 < r55;
        const bool r57 = r53 == r27;
        const bool r58 = r56 | r57;
        const uint r59 = v3;
        const uint r60 = r59 < r49 ? r59 : r49;
        const uint r61 = r58 ? r60 : r59;
        v3 = r61;
        const bool r62 = r53 == r38;
        const float r63 = r62 ? r38 : r53;
        const uint r64 = bits_as_u32(r63);
        const bool r65 = r39 <= r64;
        const uint r66 = ~r64;
        const uint r67 = r64 | r39;
        const uint r68 = r65 ? r66 : r67;
        const uint r69 = v4;
        const bool r70 = r69 < r68;
        if (r70) {
          v4 = r68;
          v5 = r49;
        }
      }
      const uint r71 = 512u;
      const uint r72 = r23 + r71;
      const bool r73 = r72 < r18;
      if (r73) {
        const uint r74 = r19 + r72;
        const uint r75 = b1[r74];
        const float r76 = bits_as_f32(r75);
        const uint r77 = bits_as_u32(r76);
        const uint r78 = r77 & r29;
        const bool r79 = r30 < r78;
        const bool r80 = r76 == r27;
        const bool r81 = r79 | r80;
        const uint r82 = v3;
        const uint r83 = r82 < r72 ? r82 : r72;
        const uint r84 = r81 ? r83 : r82;
        v3 = r84;
        const bool r85 = r76 == r38;
        const float r86 = r85 ? r38 : r76;
        const uint r87 = bits_as_u32(r86);
        const bool r88 = r39 <= r87;
        const uint r89 = ~r87;
        const uint r90 = r87 | r39;
        const uint r91 = r88 ? r89 : r90;
        const uint r92 = v4;
        const bool r93 = r92 < r91;
        if (r93) {
          v4 = r91;
          v5 = r72;
        }
      }
      const uint r94 = 768u;
      const uint r95 = r23 + r94;
      const bool r96 = r95 < r18;
      if (r96) {
        const uint r97 = r19 + r95;
        const uint r98 = b1[r97];
        const float r99 = bits_as_f32(r98);
        const uint r100 = bits_as_u32(r99);
        const uint r101 = r100 & r29;
        const bool r102 = r30 < r101;
        const bool r103 = r99 == r27;
        const bool r104 = r102 | r103;
        const uint r105 = v3;
        const uint r106 = r105 < r95 ? r105 : r95;
        const uint r107 = r104 ? r106 : r105;
        v3 = r107;
        const bool r108 = r99 == r38;
        const float r109 = r108 ? r38 : r99;
        const uint r110 = bits_as_u32(r109);
        const bool r111 = r39 <= r110;
        const uint r112 = ~r110;
        const uint r113 = r110 | r39;
        const uint r114 = r111 ? r112 : r113;
        const uint r115 = v4;
        const bool r116 = r115 < r114;
        if (r116) {
          v4 = r114;
          v5 = r95;
        }
      }
    }
    const uint r117 = v3;
    const uint r118 = v4;
    const uint r119 = v5;
    const uint r120 = 16u;
    s0[r21] = r117;
    s1[r21] = r117;
    group_barrier();
    const bool r121 = r21 < r120;
    if (r121) {
      const uint r122 = r21 * r120;
      const uint r123 = s0[r122];
      const uint r124 = s1[r122];
      uint v6 = r123;
      uint v7 = r124;
      const uint r125 = r122 + r0;
      const uint r126 = r122 + r120;
      for (uint r127 = r125; r127 < r126; r127 += r0) {
        const uint r128 = v6;
        const uint r129 = v7;
        const uint r130 = s0[r127];
        const uint r131 = s1[r127];
        const uint r132 = r128 < r130 ? r128 : r130;
        v6 = r132;
        v7 = r129;
      }
      const uint r133 = v6;
      const uint r134 = v7;
      s2[r21] = r133;
      s3[r21] = r134;
    }
    group_barrier();
    const uint r135 = s2[r6];
    const uint r136 = s3[r6];
    uint v8 = r135;
    uint v9 = r136;
    for (uint r137 = r0; r137 < r120; r137 += r0) {
      const uint r138 = v8;
      const uint r139 = v9;
      const uint r140 = s2[r137];
      const uint r141 = s3[r137];
      const uint r142 = r138 < r140 ? r138 : r140;
      v8 = r142;
      v9 = r139;
    }
    const uint r143 = v8;
    const uint r144 = v9;
    s0[r21] = r118;
    s1[r21] = r119;
    group_barrier();
    if (r121) {
      const uint r145 = r21 * r120;
      const uint r146 = s0[r145];
      const uint r147 = s1[r145];
      uint v10 = r146;
      uint v11 = r147;
      const uint r148 = r145 + r0;
      const uint r149 = r145 + r120;
      for (uint r150 = r148; r150 < r149; r150 += r0) {
        const uint r151 = v10;
        const uint r152 = v11;
        const uint r153 = s0[r150];
        const uint r154 = s1[r150];
        const bool r155 = r153 < r151;
        const bool r156 = r151 == r153;
        const bool r157 = r152 < r154;
        const bool r158 = r156 & r157;
        const bool r159 = r155 | r158;
        const uint r160 = r159 ? r151 : r153;
        const uint r161 = r159 ? r152 : r154;
        v10 = r160;
        v11 = r161;
      }
      const uint r162 = v10;
      const uint r163 = v11;
      s2[r21] = r162;
      s3[r21] = r163;
    }
    group_barrier();
    const uint r164 = s2[r6];
    const uint r165 = s3[r6];
    uint v12 = r164;
    uint v13 = r165;
    for (uint r166 = r0; r166 < r120; r166 += r0) {
      const uint r167 = v12;
      const uint r168 = v13;
      const uint r169 = s2[r166];
      const uint r170 = s3[r166];
      const bool r171 = r169 < r167;
      const bool r172 = r167 == r169;
      const bool r173 = r168 < r170;
      const bool r174 = r172 & r173;
      const bool r175 = r171 | r174;
      const uint r176 = r175 ? r167 : r169;
      const uint r177 = r175 ? r168 : r170;
      v12 = r176;
      v13 = r177;
    }
    const uint r178 = v12;
    const uint r179 = v13;
    const uint r180 = 8388607u;
    const bool r181 = r180 < r178;
    const bool r182 = r143 != r20;
    if (r182) {
      const uint r183 = r19 + r143;
      const uint r184 = b1[r183];
      const float r185 = bits_as_f32(r184);
      const uint r186 = bits_as_u32(r185);
      v0 = r0;
      v1 = r143;
      v2 = r186;
    } else {
      const uint r187 = r181 ? r6 : r2;
      v0 = r187;
    }
    const uint r188 = v0;
    const bool r189 = r188 == r6;
    const uint r190 = r189 ? r18 : r6;
    const bool r191 = r21 == r6;
    if (r191) {
      const uint r192 = v0;
      const uint r193 = v1;
      const uint r194 = v2;
      const bool r195 = r192 == r6;
      const uint r196 = r195 ? r179 : r20;
      b3[r11] = r196;
      const uint r197 = r11 * r2;
      b4[r197] = r192;
      const uint r198 = r197 + r0;
      b4[r198] = r193;
      const uint r199 = r197 + r4;
      b4[r199] = r194;
    }
    const uint r200 = v0;
    const bool r201 = r200 == r6;
    const uint r202 = r201 ? r190 : r6;
  }
}
