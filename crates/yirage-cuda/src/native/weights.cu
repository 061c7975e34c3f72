// Weights as they lie in the file, decoded in registers, and what a warp makes of a half of a unit of them: 16 columns of the weight
// by 32 elements along k with 8 rows of activations. For the weight's format `WEIGHT` of `COLUMNS` rows of `K` elements.
//
// Activations are cut into three terms of bf16 whose sum they are (24 bits), so tensor cores give products as f32 has them; codes
// of weights are whole numbers, which bf16 has exactly. Whatever kernel calls this: the products of a half are added in one order.

const Word WARPS = 8, THREADS = WARPS * 32;
const Word UNIT = 64, UNITS = (K + UNIT - 1) / UNIT;

DEVICE void add_scaled(Sums& sums, const Sums& of, float scale, float scale_of_eighth) {
  sums[0] = fmaf(scale, of[0], sums[0]);
  sums[1] = fmaf(scale, of[1], sums[1]);
  sums[2] = fmaf(scale_of_eighth, of[2], sums[2]);
  sums[3] = fmaf(scale_of_eighth, of[3], sums[3]);
}

// Whether a half of a unit is there: the last unit may have one alone.
DEVICE bool is_there(Word unit, Word half) { return K % UNIT == 0 || unit * 2 + half < K / 32; }

// A lane's part of a half of a unit, decoded, of both its rows: as the sum of `OF_WEIGHT` terms, or as codes with `SCALES` scales,
// each of as many elements, and where `MINIMUM` says so with a minimum that the sum of activations is multiplied by.
template <Word OF_WEIGHT, Word SCALES, bool MINIMUM>
struct Decoded {
  static const Word TERMS_OF_WEIGHT = OF_WEIGHT, COUNT_OF_SCALES = SCALES;
  static const bool HAS_MINIMUM = MINIMUM;
  Words4 a[OF_WEIGHT], b[OF_WEIGHT];
  float scales[SCALES ? SCALES : 1][2], minimum[2];
};

// Adds the products of a half to sums. `Inputs` has the activations' terms, whose pairs lie in the weight's order, and their sums
// for the two columns of the lane.
template <class Half, class Inputs>
DEVICE void multiply(Sums& sums, const Half& half, const Inputs& x) {
  if (Half::COUNT_OF_SCALES == 0) {
    // What two small terms make is less than what a sum of f32 keeps.
    UNROLL for (Word of = 0; of < Half::TERMS_OF_WEIGHT; ++of)
      UNROLL for (Word term = 0; term < TERMS - of; ++term) {
        const Words4 a = half.a[of], b = half.b[of], v = x.term(term);
        multiply_bf16(sums, a.x, b.x, a.y, b.y, v.x, v.y);
        multiply_bf16(sums, a.z, b.z, a.w, b.w, v.z, v.w);
      }
    return;
  }
  const Words4 a = half.a[0], b = half.b[0];
  UNROLL for (Word scale = 0; scale < Half::COUNT_OF_SCALES; ++scale) {
    Sums products = {0, 0, 0, 0};
    UNROLL for (Word term = 0; term < TERMS; ++term) {
      const Words4 v = x.term(term);
      if (scale == 0) multiply_bf16(products, a.x, b.x, a.y, b.y, v.x, v.y);
      if (scale + 1 == Half::COUNT_OF_SCALES) multiply_bf16(products, a.z, b.z, a.w, b.w, v.z, v.w);
    }
    add_scaled(sums, products, half.scales[scale][0], half.scales[scale][1]);
  }
  if (Half::HAS_MINIMUM) {
    const float first = x.sum(0), second = x.sum(1);
    const Sums inputs = {first, second, first, second};
    add_scaled(sums, inputs, -half.minimum[0], -half.minimum[1]);
  }
}

// A lane's part of a unit, of both its rows, as it lies in memory. `rows`: where the rows begin. `SHUFFLED`: each four elements
// are multiplied in the order 0 2 1 3, in which masks leave the codes of a word. `SPLIT`: a lane has four elements of a half, and
// the four that lie 16 behind them; else eight neighbours.

struct WeightF32 {
  static const Word ROW_BYTES = K * 4, AHEAD = 2;
  static const bool SHUFFLED = false, SPLIT = false;
  typedef Decoded<3, 0, false> Half;
  Words4 words[2][2][2];

  __device__ __forceinline__ void read(const unsigned char* const (&rows)[2], Word unit, Word part) {
    UNROLL for (Word half = 0; half < 2; ++half)
      UNROLL for (Word row = 0; row < 2; ++row)
        UNROLL for (Word four = 0; four < 2; ++four)
          if (is_there(unit, half))
            words[half][row][four] = read_weight((const Words4*)(rows[row] + unit * 256 + half * 128 + part * 32 + four * 16));
  }
  __device__ __forceinline__ Half decoded(Word, Word half) const {
    float rest[2][8];
    UNROLL for (Word row = 0; row < 2; ++row)
      UNROLL for (Word at = 0; at < 8; ++at) rest[row][at] = __uint_as_float((&words[half][row][at / 4].x)[at % 4]);
    Half v;
    UNROLL for (Word term = 0; term < TERMS; ++term) {
      v.a[term] = next_term(rest[0]);
      v.b[term] = next_term(rest[1]);
    }
    return v;
  }
};

struct WeightBF16 {
  static const Word ROW_BYTES = K * 2, AHEAD = 3;
  static const bool SHUFFLED = false, SPLIT = false;
  typedef Decoded<1, 0, false> Half;
  Words4 words[2][2];

  __device__ __forceinline__ void read(const unsigned char* const (&rows)[2], Word unit, Word part) {
    UNROLL for (Word half = 0; half < 2; ++half)
      UNROLL for (Word row = 0; row < 2; ++row)
        if (is_there(unit, half)) words[half][row] = read_weight((const Words4*)(rows[row] + unit * 128 + half * 64 + part * 16));
  }
  __device__ __forceinline__ Half decoded(Word, Word half) const {
    Half v;
    v.a[0] = words[half][0];
    v.b[0] = words[half][1];
    return v;
  }
};

// A float of 16 bits is the sum of two of bf16: 11 bits in 8 and 3.
struct WeightF16 : WeightBF16 {
  typedef Decoded<2, 0, false> Half;

  static __device__ __forceinline__ void split(const Words4& of, Words4& high, Words4& low) {
    const Word* from = &of.x;
    Word *to = &high.x, *rest = &low.x;
    UNROLL for (Word at = 0; at < 4; ++at) {
      const float a = float_of_half(from[at] & 0xffff), b = float_of_half(from[at] >> 16);
      to[at] = cut_to_bf16(a, b);
      rest[at] = cut_to_bf16(rest_of_low(a, to[at]), rest_of_high(b, to[at]));
    }
  }
  __device__ __forceinline__ Half decoded(Word, Word half) const {
    Half v;
    split(words[half][0], v.a[0], v.a[1]);
    split(words[half][1], v.b[0], v.b[1]);
    return v;
  }
};

// Blocks of 32: a scale, and 32 bytes.
struct WeightQ8_0 {
  static const Word ROW_BYTES = K / 32 * 34, AHEAD = 3;
  static const bool SHUFFLED = true, SPLIT = false;
  typedef Decoded<1, 1, false> Half;
  Word codes[2][2][2], scales[2][2];

  __device__ __forceinline__ void read(const unsigned char* const (&rows)[2], Word unit, Word part) {
    UNROLL for (Word block = 0; block < 2; ++block)
      UNROLL for (Word row = 0; row < 2; ++row) {
        if (!is_there(unit, block)) break;
        const unsigned short* from = (const unsigned short*)(rows[row] + (unit * 2 + block) * 34);
        scales[block][row] = read_weight(from);
        UNROLL for (Word word = 0; word < 2; ++word)
          codes[block][row][word] = read_weight(from + 1 + part * 4 + word * 2) | read_weight(from + 2 + part * 4 + word * 2) << 16;
      }
  }
  // Codes 0 and 2 of four bytes with a sign: 128 and the low bits, less 128 or 256.
  static __device__ __forceinline__ Word even(Word four) {
    return subtract_bf16((four & 0x007f007fu) | 0x43004300u, (four & 0x00800080u) | 0x43004300u);
  }
  static __device__ __forceinline__ Words4 eight_codes(const Word (&eight)[2]) {
    const Words4 v = {even(eight[0]), even(eight[0] >> 8), even(eight[1]), even(eight[1] >> 8)};
    return v;
  }
  __device__ __forceinline__ Half decoded(Word, Word block) const {
    Half v;
    v.a[0] = eight_codes(codes[block][0]);
    v.b[0] = eight_codes(codes[block][1]);
    UNROLL for (Word row = 0; row < 2; ++row) v.scales[0][row] = float_of_half(scales[block][row]);
    return v;
  }
};

// Blocks of 32: a scale, and 16 bytes, each with the code of element j in its low half and that of j + 16 in the other.
struct WeightQ4_0 {
  static const Word ROW_BYTES = K / 32 * 18, AHEAD = 4;
  static const bool SHUFFLED = true, SPLIT = true;
  typedef Decoded<1, 1, false> Half;
  Word codes[2][2], scales[2][2];

  __device__ __forceinline__ void read(const unsigned char* const (&rows)[2], Word unit, Word part) {
    UNROLL for (Word block = 0; block < 2; ++block)
      UNROLL for (Word row = 0; row < 2; ++row) {
        if (!is_there(unit, block)) break;
        const unsigned short* from = (const unsigned short*)(rows[row] + (unit * 2 + block) * 18);
        scales[block][row] = read_weight(from);
        codes[block][row] = read_weight(from + 1 + part * 2) | read_weight(from + 2 + part * 2) << 16;
      }
  }
  // Codes 0 and 2 of four bytes' low halves, less 8: 128 and the code, less 136.
  static __device__ __forceinline__ Word even(Word four) { return subtract_bf16((four & 0x000f000fu) | 0x43004300u, 0x43084308u); }
  static __device__ __forceinline__ Words4 eight_codes(Word of) {
    const Words4 v = {even(of), even(of >> 8), even(of >> 4), even(of >> 12)};
    return v;
  }
  __device__ __forceinline__ Half decoded(Word, Word block) const {
    Half v;
    v.a[0] = eight_codes(codes[block][0]);
    v.b[0] = eight_codes(codes[block][1]);
    UNROLL for (Word row = 0; row < 2; ++row) v.scales[0][row] = float_of_half(scales[block][row]);
    return v;
  }
};

// Blocks of 256: two scales, 12 bytes with a scale and a minimum of 6 bits for each 32, and four times 32 bytes with the codes of
// 64: the first 32 in the low halves.
struct WeightQ4_K {
  static const Word ROW_BYTES = K / 256 * 144, AHEAD = 4;
  static const bool SHUFFLED = true, SPLIT = false;
  typedef Decoded<1, 1, true> Half;
  Words4 heads[2];
  Words2 codes[2];

  __device__ __forceinline__ void read(const unsigned char* const (&rows)[2], Word unit, Word part) {
    UNROLL for (Word row = 0; row < 2; ++row) {
      const unsigned char* block = rows[row] + unit / 4 * 144;
      heads[row] = read_weight((const Words4*)block);
      codes[row] = read_weight((const Words2*)(block + 16 + unit % 4 * 32 + part * 8));
    }
  }
  static __device__ __forceinline__ Word even(Word four) { return subtract_bf16((four & 0x000f000fu) | 0x43004300u, 0x43004300u); }
  static __device__ __forceinline__ Words4 eight_codes(const Words2& eight, Word shift) {
    const Word a = eight.x >> shift, b = eight.y >> shift;
    const Words4 v = {even(a), even(a >> 8), even(b), even(b >> 8)};
    return v;
  }
  // Scale and minimum of 32 elements.
  static __device__ __forceinline__ void factors(const Words4& head, Word number, float& scale, float& minimum) {
    const Word shift = number % 4 * 8, a = head.y >> shift & 255, b = head.z >> shift & 255, c = head.w >> shift & 255;
    const Word s = number < 4 ? a & 63 : (c & 15) | a >> 6 << 4, m = number < 4 ? b & 63 : c >> 4 | b >> 6 << 4;
    scale = float_of_half(head.x & 0xffff) * (float)s;
    minimum = float_of_half(head.x >> 16) * (float)m;
  }
  __device__ __forceinline__ Half decoded(Word unit, Word half) const {
    Half v;
    v.a[0] = eight_codes(codes[0], half * 4);
    v.b[0] = eight_codes(codes[1], half * 4);
    UNROLL for (Word row = 0; row < 2; ++row) factors(heads[row], unit % 4 * 2 + half, v.scales[0][row], v.minimum[row]);
    return v;
  }
};

// As Q4_K, with 32 bytes more before the codes: bit i of byte j is the highest bit of element j of the i-th 32.
struct WeightQ5_K {
  static const Word ROW_BYTES = K / 256 * 176, AHEAD = 3;
  static const bool SHUFFLED = true, SPLIT = false;
  typedef Decoded<1, 1, true> Half;
  Words4 heads[2];
  Words2 codes[2], bits[2];

  __device__ __forceinline__ void read(const unsigned char* const (&rows)[2], Word unit, Word part) {
    UNROLL for (Word row = 0; row < 2; ++row) {
      const unsigned char* block = rows[row] + unit / 4 * 176;
      heads[row] = read_weight((const Words4*)block);
      bits[row] = read_weight((const Words2*)(block + 16 + part * 8));
      codes[row] = read_weight((const Words2*)(block + 48 + unit % 4 * 32 + part * 8));
    }
  }
  static __device__ __forceinline__ Word even(Word four) { return subtract_bf16((four & 0x001f001fu) | 0x43004300u, 0x43004300u); }
  static __device__ __forceinline__ Word whole(Word codes, Word bits, Word shift, Word bit) {
    return (codes >> shift & 0x0f0f0f0fu) | (bits >> bit & 0x01010101u) << 4;
  }
  static __device__ __forceinline__ Words4 eight_codes(const Words2& codes, const Words2& bits, Word shift, Word bit) {
    const Word a = whole(codes.x, bits.x, shift, bit), b = whole(codes.y, bits.y, shift, bit);
    const Words4 v = {even(a), even(a >> 8), even(b), even(b >> 8)};
    return v;
  }
  __device__ __forceinline__ Half decoded(Word unit, Word half) const {
    const Word number = unit % 4 * 2 + half;
    Half v;
    v.a[0] = eight_codes(codes[0], bits[0], half * 4, number);
    v.b[0] = eight_codes(codes[1], bits[1], half * 4, number);
    UNROLL for (Word row = 0; row < 2; ++row) WeightQ4_K::factors(heads[row], number, v.scales[0][row], v.minimum[row]);
    return v;
  }
};

// Blocks of 256: for each 128 of them 64 bytes with the low halves of codes, those of the last 64 above those of the first; 32
// bytes for each 128 with two bits of each element; a scale with a sign for each 16; and a scale of all.
struct WeightQ6_K {
  static const Word ROW_BYTES = K / 256 * 210, AHEAD = 2;
  static const bool SHUFFLED = true, SPLIT = true;
  typedef Decoded<1, 2, false> Half;
  Word low[2][2][2], high[2][2], scales[2][2], whole[2];

  static __device__ __forceinline__ Word two_halves(const unsigned char* at) {
    return read_weight((const unsigned short*)at) | read_weight((const unsigned short*)(at + 2)) << 16;
  }
  __device__ __forceinline__ void read(const unsigned char* const (&rows)[2], Word unit, Word part) {
    UNROLL for (Word row = 0; row < 2; ++row) {
      const unsigned char* block = rows[row] + unit / 4 * 210;
      const Word upper = unit % 4 / 2;
      UNROLL for (Word group = 0; group < 2; ++group) {
        UNROLL for (Word half = 0; half < 2; ++half)
          low[half][row][group] = two_halves(block + upper * 64 + half * 32 + group * 16 + part * 4);
        high[row][group] = two_halves(block + 128 + upper * 32 + group * 16 + part * 4);
      }
      UNROLL for (Word half = 0; half < 2; ++half)
        scales[half][row] = read_weight((const unsigned short*)(block + 192 + unit % 4 * 4 + half * 2));
      whole[row] = read_weight((const unsigned short*)(block + 208));
    }
  }
  // Codes 0 and 2 of four bytes, less 32: 128 and the code, less 160.
  static __device__ __forceinline__ Word even(Word four) { return subtract_bf16((four & 0x003f003fu) | 0x43004300u, 0x43204320u); }
  static __device__ __forceinline__ Word four_codes(Word low, Word high, Word odd, Word half) {
    return (low >> odd * 4 & 0x0f0f0f0fu) | (high >> (odd * 4 + half * 2) & 0x03030303u) << 4;
  }
  __device__ __forceinline__ Words4 eight_codes(Word row, Word odd, Word half) const {
    const Word a = four_codes(low[half][row][0], high[row][0], odd, half), b = four_codes(low[half][row][1], high[row][1], odd, half);
    const Words4 v = {even(a), even(a >> 8), even(b), even(b >> 8)};
    return v;
  }
  static __device__ __forceinline__ float scale(Word whole, Word scales, Word group) {
    return float_of_half(whole) * (float)(signed char)(scales >> group * 8 & 255);
  }
  __device__ __forceinline__ Half decoded(Word unit, Word half) const {
    Half v;
    v.a[0] = eight_codes(0, unit % 2, half);
    v.b[0] = eight_codes(1, unit % 2, half);
    UNROLL for (Word group = 0; group < 2; ++group)
      UNROLL for (Word row = 0; row < 2; ++row) v.scales[group][row] = scale(whole[row], scales[half][row], group);
    return v;
  }
};

// Where the rows of the weight begin that a lane has of 16 columns. Columns behind the last repeat it.
DEVICE void rows_of_lane(const unsigned char* (&rows)[2], const unsigned char* w, Word first_column) {
  UNROLL for (Word half = 0; half < 2; ++half) {
    const Word column = first_column + half * 8 + threadIdx.x % 32 / 4;
    rows[half] = w + (unsigned long long)(column < COLUMNS ? column : COLUMNS - 1) * WEIGHT::ROW_BYTES;
  }
}
