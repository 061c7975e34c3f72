// Products of a weight with few rows of activations: y[r, n] = sum over k of x[r, k] * w[n, k], for the weight's format `WEIGHT`
// of `COLUMNS` rows of `K` elements as they lie in the file, and `ROWS` rows of activations, `TILE` (1, 2, 4 or 8) of them a block.
//
// A block makes 16 columns. Its warps take units of 64 elements along k in turn, each straight from memory to registers,
// `AHEAD` units before they are multiplied, over all barriers. Activations are cut into three terms of bf16 whose sum they are
// (24 bits), so tensor cores give products as f32 has them; codes of weights are whole numbers, which bf16 has exactly. Sums of
// units meet in order of the warps.
//
// The order of additions follows from K alone: unit u is added by warp u % WARPS after all its units before it. Neither the
// number of rows nor `TILE` nor the grid has a part in it.

const Word WARPS = 8, THREADS = WARPS * 32;
const Word UNIT = 64, UNITS = (K + UNIT - 1) / UNIT;
const Word ROUNDS = (UNITS + WARPS - 1) / WARPS, ROUND = WARPS * UNIT;
const Word TERMS = 3;
// Rounds whose activations lie in shared memory at once.
const Word ROUNDS_OF_CHUNK = ROUNDS < 8 / TILE ? ROUNDS : 8 / TILE;
const Word CHUNK = ROUNDS_OF_CHUNK * ROUND;
// Bytes from one row of activations to the next: neighbouring rows begin in other banks.
const Word PITCH = CHUNK * 2 + 64;

struct MatmulMemory {
  Words4 terms[TERMS][TILE][PITCH / 16];
  float sums[CHUNK / 32][TILE];
  float partial[WARPS][16][TILE];
};

// Two floats as bf16, cut off behind the eighth bit; and what is cut off, of an infinity nothing.
DEVICE Word cut_to_bf16(float low, float high) { return __float_as_uint(low) >> 16 | (__float_as_uint(high) & 0xffff0000u); }
DEVICE float rest_of_low(float x, Word pair) {
  const float rest = x - __uint_as_float(pair << 16);
  return rest == rest ? rest : 0;
}
DEVICE float rest_of_high(float x, Word pair) {
  const float rest = x - __uint_as_float(pair & 0xffff0000u);
  return rest == rest ? rest : 0;
}

// Activations in shared memory. A lane reads those of its own column.
struct Activations {
  const MatmulMemory& memory;
  Word column;

  // Eight elements of a term, from a multiple of eight on.
  __device__ __forceinline__ Words4 eight(Word term, Word k) const { return memory.terms[term][column][k / 8]; }
  // Four elements of a term, from a multiple of four on.
  __device__ __forceinline__ Words2 four(Word term, Word k) const {
    return ((const Words2*)memory.terms[term][column])[k / 4];
  }
};

// Sums of a lane: those of its row (`lane / 4`) for two neighbouring columns of activations, and of the eighth row behind it.
typedef float Sums[4];

DEVICE void add_scaled(Sums& sums, const Sums& of, float scale, float scale_of_eighth) {
  sums[0] = fmaf(scale, of[0], sums[0]);
  sums[1] = fmaf(scale, of[1], sums[1]);
  sums[2] = fmaf(scale_of_eighth, of[2], sums[2]);
  sums[3] = fmaf(scale_of_eighth, of[3], sums[3]);
}

// Whether a half of a unit is there: the last unit may have one alone.
DEVICE bool is_there(Word unit, Word half) { return K % UNIT == 0 || unit * 2 + half < K / 32; }

// Eight elements of two rows of the weight with those of the activations, where their pairs lie in the same order, of as many
// of the activations' terms as count.
DEVICE void multiply_eight(Sums& sums, const Words4& a, const Words4& b, const Activations& x, Word k, Word terms = TERMS) {
  UNROLL for (Word term = 0; term < terms; ++term) {
    const Words4 v = x.eight(term, k);
    multiply_bf16(sums, a.x, b.x, a.y, b.y, v.x, v.y);
    multiply_bf16(sums, a.z, b.z, a.w, b.w, v.z, v.w);
  }
}

// A lane's part of a unit, of both its rows, as it lies in memory. `rows`: where the rows begin. `SHUFFLED`: each four elements
// are multiplied in the order 0 2 1 3, in which masks leave the codes of a word.

// Floats are the sum of three terms too. What two small terms make is less than what a sum of f32 keeps.
struct WeightF32 {
  static const Word ROW_BYTES = K * 4, AHEAD = 2;
  static const bool SHUFFLED = false;
  Words4 words[2][2][2];

  __device__ __forceinline__ void read(const unsigned char* const (&rows)[2], Word unit, Word part) {
    UNROLL for (Word half = 0; half < 2; ++half)
      UNROLL for (Word row = 0; row < 2; ++row)
        UNROLL for (Word four = 0; four < 2; ++four)
          if (is_there(unit, half))
            words[half][row][four] = read_weight((const Words4*)(rows[row] + unit * 256 + half * 128 + part * 32 + four * 16));
  }
  // Eight floats' next terms, which they lose.
  static __device__ __forceinline__ Words4 next_term(float (&eight)[8]) {
    Words4 v;
    Word* pairs = &v.x;
    UNROLL for (Word at = 0; at < 4; ++at) {
      pairs[at] = cut_to_bf16(eight[at * 2], eight[at * 2 + 1]);
      eight[at * 2] = rest_of_low(eight[at * 2], pairs[at]);
      eight[at * 2 + 1] = rest_of_high(eight[at * 2 + 1], pairs[at]);
    }
    return v;
  }
  __device__ __forceinline__ void multiply(Sums& sums, const Activations& x, Word unit, Word k, Word part, Word) const {
    UNROLL for (Word half = 0; half < 2; ++half) {
      if (!is_there(unit, half)) break;
      float rest[2][8];
      UNROLL for (Word row = 0; row < 2; ++row)
        UNROLL for (Word at = 0; at < 8; ++at) rest[row][at] = __uint_as_float((&words[half][row][at / 4].x)[at % 4]);
      UNROLL for (Word term = 0; term < TERMS; ++term) {
        const Words4 a = next_term(rest[0]), b = next_term(rest[1]);
        multiply_eight(sums, a, b, x, k + half * 32 + part * 8, TERMS - term);
      }
    }
  }
};

struct WeightBF16 {
  static const Word ROW_BYTES = K * 2, AHEAD = 3;
  static const bool SHUFFLED = false;
  Words4 words[2][2];

  __device__ __forceinline__ void read(const unsigned char* const (&rows)[2], Word unit, Word part) {
    UNROLL for (Word half = 0; half < 2; ++half)
      UNROLL for (Word row = 0; row < 2; ++row)
        if (is_there(unit, half)) words[half][row] = read_weight((const Words4*)(rows[row] + unit * 128 + half * 64 + part * 16));
  }
  __device__ __forceinline__ void multiply(Sums& sums, const Activations& x, Word unit, Word k, Word part, Word) const {
    UNROLL for (Word half = 0; half < 2; ++half)
      if (is_there(unit, half)) multiply_eight(sums, words[half][0], words[half][1], x, k + half * 32 + part * 8);
  }
};

// A float of 16 bits is the sum of two of bf16: 11 bits in 8 and 3.
struct WeightF16 : WeightBF16 {
  static __device__ __forceinline__ void split(const Words4& of, Words4& high, Words4& low) {
    const Word* from = &of.x;
    Word *to = &high.x, *rest = &low.x;
    UNROLL for (Word at = 0; at < 4; ++at) {
      const float a = float_of_half(from[at] & 0xffff), b = float_of_half(from[at] >> 16);
      to[at] = cut_to_bf16(a, b);
      rest[at] = cut_to_bf16(rest_of_low(a, to[at]), rest_of_high(b, to[at]));
    }
  }
  __device__ __forceinline__ void multiply(Sums& sums, const Activations& x, Word unit, Word k, Word part, Word) const {
    UNROLL for (Word half = 0; half < 2; ++half) {
      if (!is_there(unit, half)) break;
      Words4 high[2], low[2];
      split(words[half][0], high[0], low[0]);
      split(words[half][1], high[1], low[1]);
      multiply_eight(sums, high[0], high[1], x, k + half * 32 + part * 8);
      multiply_eight(sums, low[0], low[1], x, k + half * 32 + part * 8, TERMS - 1);
    }
  }
};

// Blocks of 32: a scale, and 32 bytes.
struct WeightQ8_0 {
  static const Word ROW_BYTES = K / 32 * 34, AHEAD = 3;
  static const bool SHUFFLED = true;
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
  static __device__ __forceinline__ Words4 decoded(const Word (&eight)[2]) {
    const Words4 v = {even(eight[0]), even(eight[0] >> 8), even(eight[1]), even(eight[1] >> 8)};
    return v;
  }
  __device__ __forceinline__ void multiply(Sums& sums, const Activations& x, Word unit, Word k, Word part, Word) const {
    UNROLL for (Word block = 0; block < 2; ++block) {
      if (!is_there(unit, block)) break;
      Sums products = {0, 0, 0, 0};
      multiply_eight(products, decoded(codes[block][0]), decoded(codes[block][1]), x, k + block * 32 + part * 8);
      add_scaled(sums, products, float_of_half(scales[block][0]), float_of_half(scales[block][1]));
    }
  }
};

// Blocks of 32: a scale, and 16 bytes, each with the code of element j in its low half and that of j + 16 in the other.
struct WeightQ4_0 {
  static const Word ROW_BYTES = K / 32 * 18, AHEAD = 4;
  static const bool SHUFFLED = true;
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

  __device__ __forceinline__ void multiply(Sums& sums, const Activations& x, Word unit, Word k, Word part, Word) const {
    UNROLL for (Word block = 0; block < 2; ++block) {
      if (!is_there(unit, block)) break;
      Sums products = {0, 0, 0, 0};
      const Word a = codes[block][0], b = codes[block][1], first = k + block * 32 + part * 4;
      UNROLL for (Word term = 0; term < TERMS; ++term) {
        const Words2 low = x.four(term, first), high = x.four(term, first + 16);
        multiply_bf16(products, even(a), even(b), even(a >> 8), even(b >> 8), low.x, low.y);
        multiply_bf16(products, even(a >> 4), even(b >> 4), even(a >> 12), even(b >> 12), high.x, high.y);
      }
      add_scaled(sums, products, float_of_half(scales[block][0]), float_of_half(scales[block][1]));
    }
  }
};

// Blocks of 256: two scales, 12 bytes with a scale and a minimum of 6 bits for each 32, and four times 32 bytes with the codes of
// 64: the first 32 in the low halves.
struct WeightQ4_K {
  static const Word ROW_BYTES = K / 256 * 144, AHEAD = 4;
  static const bool SHUFFLED = true;
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
  static __device__ __forceinline__ Words4 decoded(const Words2& eight, Word shift) {
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
  __device__ __forceinline__ void multiply(Sums& sums, const Activations& x, Word unit, Word k, Word part, Word pair) const {
    UNROLL for (Word half = 0; half < 2; ++half) {
      Sums products = {0, 0, 0, 0};
      multiply_eight(products, decoded(codes[0], half * 4), decoded(codes[1], half * 4), x, k + half * 32 + part * 8);
      float scale[2], minimum[2];
      UNROLL for (Word row = 0; row < 2; ++row) factors(heads[row], unit % 4 * 2 + half, scale[row], minimum[row]);
      add_scaled(sums, products, scale[0], scale[1]);
      const float* of_block = x.memory.sums[k / 32 + half];
      const float first = of_block[pair < TILE ? pair : 0], second = of_block[pair + 1 < TILE ? pair + 1 : 0];
      const Sums inputs = {first, second, first, second};
      add_scaled(sums, inputs, -minimum[0], -minimum[1]);
    }
  }
};

// As Q4_K, with 32 bytes more before the codes: bit i of byte j is the highest bit of element j of the i-th 32.
struct WeightQ5_K {
  static const Word ROW_BYTES = K / 256 * 176, AHEAD = 3;
  static const bool SHUFFLED = true;
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
  static __device__ __forceinline__ Words4 decoded(const Words2& codes, const Words2& bits, Word shift, Word bit) {
    const Word a = whole(codes.x, bits.x, shift, bit), b = whole(codes.y, bits.y, shift, bit);
    const Words4 v = {even(a), even(a >> 8), even(b), even(b >> 8)};
    return v;
  }
  __device__ __forceinline__ void multiply(Sums& sums, const Activations& x, Word unit, Word k, Word part, Word pair) const {
    UNROLL for (Word half = 0; half < 2; ++half) {
      const Word number = unit % 4 * 2 + half;
      Sums products = {0, 0, 0, 0};
      const Words4 a = decoded(codes[0], bits[0], half * 4, number), b = decoded(codes[1], bits[1], half * 4, number);
      multiply_eight(products, a, b, x, k + half * 32 + part * 8);
      float scale[2], minimum[2];
      UNROLL for (Word row = 0; row < 2; ++row) WeightQ4_K::factors(heads[row], number, scale[row], minimum[row]);
      add_scaled(sums, products, scale[0], scale[1]);
      const float* of_block = x.memory.sums[k / 32 + half];
      const float first = of_block[pair < TILE ? pair : 0], second = of_block[pair + 1 < TILE ? pair + 1 : 0];
      const Sums inputs = {first, second, first, second};
      add_scaled(sums, inputs, -minimum[0], -minimum[1]);
    }
  }
};

// Blocks of 256: for each 128 of them 64 bytes with the low halves of codes, those of the last 64 above those of the first; 32
// bytes for each 128 with two bits of each element; a scale with a sign for each 16; and a scale of all.
struct WeightQ6_K {
  static const Word ROW_BYTES = K / 256 * 210, AHEAD = 2;
  static const bool SHUFFLED = true;
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
  static __device__ __forceinline__ float scale(Word whole, Word scales, Word group) {
    return float_of_half(whole) * (float)(signed char)(scales >> group * 8 & 255);
  }
  __device__ __forceinline__ void multiply(Sums& sums, const Activations& x, Word unit, Word k, Word part, Word) const {
    UNROLL for (Word half = 0; half < 2; ++half)
      UNROLL for (Word group = 0; group < 2; ++group) {
        Sums products = {0, 0, 0, 0};
        const Word a = four_codes(low[half][0][group], high[0][group], unit % 2, half);
        const Word b = four_codes(low[half][1][group], high[1][group], unit % 2, half);
        UNROLL for (Word term = 0; term < TERMS; ++term) {
          const Words2 v = x.four(term, k + half * 32 + group * 16 + part * 4);
          multiply_bf16(products, even(a), even(b), even(a >> 8), even(b >> 8), v.x, v.y);
        }
        add_scaled(sums, products, scale(whole[0], scales[half][0], group), scale(whole[1], scales[half][1], group));
      }
  }
};

// Brings the activations of the chunk that begins at `first` to shared memory, as terms and as sums of 32.
DEVICE void stage(MatmulMemory& memory, const float* x, Word first, Word rows) {
  for (Word at = threadIdx.x; at < TILE * CHUNK / 4; at += THREADS) {
    const Word row = at / (CHUNK / 4), k = at % (CHUNK / 4) * 4;
    // A warp has one row alone.
    if (row >= rows) break;
    Floats4 v = {0, 0, 0, 0};
    if (first + k < K) v = read_written(x + (unsigned long long)row * K + first + k);
    float sum = (v.x + v.y) + (v.z + v.w);
    UNROLL for (int mask = 1; mask < 8; mask *= 2) sum += exchange_xor(sum, mask);
    if (k % 32 == 0) memory.sums[k / 32][row] = sum;
    if (WEIGHT::SHUFFLED) {
      const float second = v.y;
      v.y = v.z;
      v.z = second;
    }
    UNROLL for (Word term = 0; term < TERMS; ++term) {
      const Words2 pairs = {cut_to_bf16(v.x, v.y), cut_to_bf16(v.z, v.w)};
      ((Words2*)memory.terms[term][row])[k / 4] = pairs;
      v.x = rest_of_low(v.x, pairs.x);
      v.y = rest_of_high(v.y, pairs.x);
      v.z = rest_of_low(v.z, pairs.y);
      v.w = rest_of_high(v.w, pairs.y);
    }
  }
}

DEVICE void decode_matmul(MatmulMemory& memory, Word all_rows, const float* x, const unsigned char* w, float* y) {
  const Word lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = lane / 4, part = lane % 4;
  const Word first_row = blockIdx.x * TILE, first_column = blockIdx.y * 16;
  const Word rows = all_rows - first_row < TILE ? all_rows - first_row : TILE;
  const unsigned char* of_lane[2];
  UNROLL for (Word half = 0; half < 2; ++half) {
    const Word column = first_column + half * 8 + group;
    of_lane[half] = w + (unsigned long long)(column < COLUMNS ? column : COLUMNS - 1) * WEIGHT::ROW_BYTES;
  }
  WEIGHT ahead[WEIGHT::AHEAD];
  UNROLL for (Word slot = 0; slot < WEIGHT::AHEAD; ++slot)
    if (slot * WARPS + warp < UNITS) ahead[slot].read(of_lane, slot * WARPS + warp, part);
  let_next_begin();
  wait_for_earlier();
  // A captured grid is that of the most rows.
  if (first_row >= all_rows) return;
  x += (unsigned long long)first_row * K;
  // Columns behind the last row repeat it: what comes of them is dropped.
  const Activations own = {memory, group < rows ? group : rows - 1};
  Sums sums = {0, 0, 0, 0};
  for (Word from = 0; from < ROUNDS; from += WEIGHT::AHEAD) {
    UNROLL for (Word slot = 0; slot < WEIGHT::AHEAD; ++slot) {
      const Word round = from + slot, unit = round * WARPS + warp, next = unit + WEIGHT::AHEAD * WARPS;
      if (round >= ROUNDS) break;
      if (round % ROUNDS_OF_CHUNK == 0) {
        if (round > 0) __syncthreads();
        stage(memory, x, round * ROUND, rows);
        __syncthreads();
      }
      if (unit < UNITS) ahead[slot].multiply(sums, own, unit, round % ROUNDS_OF_CHUNK * ROUND + warp * UNIT, part, part * 2);
      if (next < UNITS) ahead[slot].read(of_lane, next, part);
    }
  }
  UNROLL for (Word at = 0; at < 4; ++at) {
    const Word row = part * 2 + at % 2;
    if (row < TILE) memory.partial[warp][at / 2 * 8 + group][row] = sums[at];
  }
  __syncthreads();
  if (threadIdx.x >= 16 * TILE) return;
  const Word column = threadIdx.x % 16, row = threadIdx.x / 16;
  float sum = 0;
  UNROLL for (Word of = 0; of < WARPS; ++of) sum += memory.partial[of][column][row];
  if (row < rows && first_column + column < COLUMNS) y[(unsigned long long)(first_row + row) * COLUMNS + first_column + column] = sum;
}
