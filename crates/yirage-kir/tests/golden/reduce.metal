#define SUBGROUP 32u
#include <metal_stdlib>
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

[[max_total_threads_per_threadgroup(64)]] kernel void reduce_6c9979a52c3b7bda(
    device const uint* b0 [[buffer(0)]],
    device uint* b1 [[buffer(1)]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint3 group_index [[threadgroup_position_in_grid]],
    uint lane_index [[thread_index_in_simdgroup]]) {
  threadgroup float s0[64];
  const uint r0 = 1u;
  const uint r1 = 2u;
  const uint r2 = group_of_grid_0();
  const uint r3 = 0u;
  const uint r4 = r2 + r0;
  const uint r5 = r4 < r1 ? r4 : r1;
  const uint r6 = thread_of_group();
  for (uint r7 = r2; r7 < r5; r7 += r0) {
    const uint r8 = 64u;
    const float r9 = bits_as_f32(0u);
    float v0 = r9;
    for (uint r10 = r6; r10 < r0; r10 += r8) {
      const uint r11 = b0[r7];
      const float r12 = bits_as_f32(r11);
      const float r13 = r12 * r12;
      const float r14 = v0;
      const float r15 = r14 + r13;
      v0 = r15;
    }
    group_barrier();
    const float r16 = v0;
    s0[r6] = r16;
    group_barrier();
    const float r17 = s0[r3];
    const float r18 = s0[r0];
    const float r19 = s0[r1];
    const uint r20 = 3u;
    const float r21 = s0[r20];
    const uint r22 = 4u;
    const float r23 = s0[r22];
    const uint r24 = 5u;
    const float r25 = s0[r24];
    const uint r26 = 6u;
    const float r27 = s0[r26];
    const uint r28 = 7u;
    const float r29 = s0[r28];
    const uint r30 = 8u;
    const float r31 = s0[r30];
    const uint r32 = 9u;
    const float r33 = s0[r32];
    const uint r34 = 10u;
    const float r35 = s0[r34];
    const uint r36 = 11u;
    const float r37 = s0[r36];
    const uint r38 = 12u;
    const float r39 = s0[r38];
    const uint r40 = 13u;
    const float r41 = s0[r40];
    const uint r42 = 14u;
    const float r43 = s0[r42];
    const uint r44 = 15u;
    const float r45 = s0[r44];
    const uint r46 = 16u;
    const float r47 = s0[r46];
    const uint r48 = 17u;
    const float r49 = s0[r48];
    const uint r50 = 18u;
    const float r51 = s0[r50];
    const uint r52 = 19u;
    const float r53 = s0[r52];
    const uint r54 = 20u;
    const float r55 = s0[r54];
    const uint r56 = 21u;
    const float r57 = s0[r56];
    const uint r58 = 22u;
    const float r59 = s0[r58];
    const uint r60 = 23u;
    const float r61 = s0[r60];
    const uint r62 = 24u;
    const float r63 = s0[r62];
    const uint r64 = 25u;
    const float r65 = s0[r64];
    const uint r66 = 26u;
    const float r67 = s0[r66];
    const uint r68 = 27u;
    const float r69 = s0[r68];
    const uint r70 = 28u;
    const float r71 = s0[r70];
    const uint r72 = 29u;
    const float r73 = s0[r72];
    const uint r74 = 30u;
    const float r75 = s0[r74];
    const uint r76 = 31u;
    const float r77 = s0[r76];
    const uint r78 = 32u;
    const float r79 = s0[r78];
    const uint r80 = 33u;
    const float r81 = s0[r80];
    const uint r82 = 34u;
    const float r83 = s0[r82];
    const uint r84 = 35u;
    const float r85 = s0[r84];
    const uint r86 = 36u;
    const float r87 = s0[r86];
    const uint r88 = 37u;
    const float r89 = s0[r88];
    const uint r90 = 38u;
    const float r91 = s0[r90];
    const uint r92 = 39u;
    const float r93 = s0[r92];
    const uint r94 = 40u;
    const float r95 = s0[r94];
    const uint r96 = 41u;
    const float r97 = s0[r96];
    const uint r98 = 42u;
    const float r99 = s0[r98];
    const uint r100 = 43u;
    const float r101 = s0[r100];
    const uint r102 = 44u;
    const float r103 = s0[r102];
    const uint r104 = 45u;
    const float r105 = s0[r104];
    const uint r106 = 46u;
    const float r107 = s0[r106];
    const uint r108 = 47u;
    const float r109 = s0[r108];
    const uint r110 = 48u;
    const float r111 = s0[r110];
    const uint r112 = 49u;
    const float r113 = s0[r112];
    const uint r114 = 50u;
    const float r115 = s0[r114];
    const uint r116 = 51u;
    const float r117 = s0[r116];
    const uint r118 = 52u;
    const float r119 = s0[r118];
    const uint r120 = 53u;
    const float r121 = s0[r120];
    const uint r122 = 54u;
    const float r123 = s0[r122];
    const uint r124 = 55u;
    const float r125 = s0[r124];
    const uint r126 = 56u;
    const float r127 = s0[r126];
    const uint r128 = 57u;
    const float r129 = s0[r128];
    const uint r130 = 58u;
    const float r131 = s0[r130];
    const uint r132 = 59u;
    const float r133 = s0[r132];
    const uint r134 = 60u;
    const float r135 = s0[r134];
    const uint r136 = 61u;
    const float r137 = s0[r136];
    const uint r138 = 62u;
    const float r139 = s0[r138];
    const uint r140 = 63u;
    const float r141 = s0[r140];
    const float r142 = r17 + r47;
    const float r143 = r79 + r111;
    const float r144 = r142 + r143;
    const float r145 = r18 + r49;
    const float r146 = r81 + r113;
    const float r147 = r145 + r146;
    const float r148 = r19 + r51;
    const float r149 = r83 + r115;
    const float r150 = r148 + r149;
    const float r151 = r21 + r53;
    const float r152 = r85 + r117;
    const float r153 = r151 + r152;
    const float r154 = r23 + r55;
    const float r155 = r87 + r119;
    const float r156 = r154 + r155;
    const float r157 = r25 + r57;
    const float r158 = r89 + r121;
    const float r159 = r157 + r158;
    const float r160 = r27 + r59;
    const float r161 = r91 + r123;
    const float r162 = r160 + r161;
    const float r163 = r29 + r61;
    const float r164 = r93 + r125;
    const float r165 = r163 + r164;
    const float r166 = r31 + r63;
    const float r167 = r95 + r127;
    const float r168 = r166 + r167;
    const float r169 = r33 + r65;
    const float r170 = r97 + r129;
    const float r171 = r169 + r170;
    const float r172 = r35 + r67;
    const float r173 = r99 + r131;
    const float r174 = r172 + r173;
    const float r175 = r37 + r69;
    const float r176 = r101 + r133;
    const float r177 = r175 + r176;
    const float r178 = r39 + r71;
    const float r179 = r103 + r135;
    const float r180 = r178 + r179;
    const float r181 = r41 + r73;
    const float r182 = r105 + r137;
    const float r183 = r181 + r182;
    const float r184 = r43 + r75;
    const float r185 = r107 + r139;
    const float r186 = r184 + r185;
    const float r187 = r45 + r77;
    const float r188 = r109 + r141;
    const float r189 = r187 + r188;
    const float r190 = r144 + r168;
    const float r191 = r147 + r171;
    const float r192 = r150 + r174;
    const float r193 = r153 + r177;
    const float r194 = r156 + r180;
    const float r195 = r159 + r183;
    const float r196 = r162 + r186;
    const float r197 = r165 + r189;
    const float r198 = r190 + r194;
    const float r199 = r191 + r195;
    const float r200 = r192 + r196;
    const float r201 = r193 + r197;
    const float r202 = r198 + r200;
    const float r203 = r199 + r201;
    const float r204 = r202 + r203;
    const float r205 = bits_as_f32(2143289344u);
    const bool r206 = r0 == r3;
    const float r207 = (float)r0;
    const float r208 = r204 / r207;
    const float r209 = r206 ? r205 : r208;
    const bool r210 = r6 == r3;
    if (r210) {
      const uint r211 = bits_as_u32(r209);
      b1[r7] = r211;
    }
  }
}
