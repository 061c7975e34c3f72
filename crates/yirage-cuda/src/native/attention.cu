// Attention over a cache in blocks of 32 positions: `HEADS` query heads that read `KV_HEADS` heads of `K_WIDTH` elements of a key and
// `V_WIDTH` of a value behind it, stored as `CACHE`. A block makes the results of `TOKENS` tokens for `HEADS_OF_BLOCK` query heads
// of one key head: 16 rows for each of `ROW_TILES`.
//
// Warp w meets the cache's blocks w, w + WARPS and so on in ascending order, each with all rows: scores by tensor cores from terms of
// bf16, the largest of them so far, weights relative to that, and the sums of weighted values. Warps' sums meet in order. So the order
// of additions follows from positions alone: a row has the same bytes in every batch and however a prompt is cut. What another row
// sees and this one does not has the weight 0.

const Word WARPS = 8, THREADS = WARPS * 32;
const Word POSITIONS = 32;
const Word ROWS = ROW_TILES * 16;
const Word RATIO = HEADS / KV_HEADS, GROUPS = (RATIO + HEADS_OF_BLOCK - 1) / HEADS_OF_BLOCK;
const Word K_BLOCKS = (K_WIDTH + 31) / 32;
// Neighbouring elements of a value that a lane has, which are as many columns of 8, and how many of them it reads at once.
const Word RUN = V_WIDTH / 8, READ = RUN % 8 == 0 ? 8 : RUN % 4 == 0 ? 4 : 2;
// Columns of 8 whose sums meet at once.
const Word SLICE = RUN % 4 == 0 ? 4 : 2, SLICE_PITCH = SLICE * 8 + 4;
// The score of what is not seen.
#define LOWEST (-3.402823466e+38f)

// Elements of the cache as floats, `COUNT` (2, 4 or 8) from a multiple of as many on, and how many terms of bf16 they are.
struct CacheF32 {
  static const Word TERMS_OF_CACHE = 3;
  template <Word COUNT>
  static __device__ __forceinline__ void read(float* to, const unsigned char* cache, unsigned long long at) {
    UNROLL for (Word pair = 0; pair < COUNT / 2; ++pair) {
      const Words2 v = read_at<Words2>(cache + (at + pair * 2) * 4);
      to[pair * 2] = __uint_as_float(v.x);
      to[pair * 2 + 1] = __uint_as_float(v.y);
    }
  }
};

DEVICE void read_halves(Word (&to)[1], const unsigned char* from) { to[0] = read_at<Word>(from); }
DEVICE void read_halves(Word (&to)[2], const unsigned char* from) {
  const Words2 v = read_at<Words2>(from);
  to[0] = v.x;
  to[1] = v.y;
}
DEVICE void read_halves(Word (&to)[4], const unsigned char* from) {
  const Words4 v = read_at<Words4>(from);
  to[0] = v.x;
  to[1] = v.y;
  to[2] = v.z;
  to[3] = v.w;
}

struct CacheBF16 {
  static const Word TERMS_OF_CACHE = 1;
  template <Word COUNT>
  static __device__ __forceinline__ void read(float* to, const unsigned char* cache, unsigned long long at) {
    Word words[COUNT / 2];
    read_halves(words, cache + at * 2);
    UNROLL for (Word pair = 0; pair < COUNT / 2; ++pair) {
      to[pair * 2] = __uint_as_float(words[pair] << 16);
      to[pair * 2 + 1] = __uint_as_float(words[pair] & 0xffff0000u);
    }
  }
};

struct CacheF16 {
  static const Word TERMS_OF_CACHE = 2;
  template <Word COUNT>
  static __device__ __forceinline__ void read(float* to, const unsigned char* cache, unsigned long long at) {
    Word words[COUNT / 2];
    read_halves(words, cache + at * 2);
    UNROLL for (Word pair = 0; pair < COUNT / 2; ++pair) {
      to[pair * 2] = float_of_half(words[pair] & 0xffff);
      to[pair * 2 + 1] = float_of_half(words[pair] >> 16);
    }
  }
};

// Blocks of 32: a scale, and 32 bytes.
struct CacheQ8_0 {
  static const Word TERMS_OF_CACHE = 3;
  template <Word COUNT>
  static __device__ __forceinline__ void read(float* to, const unsigned char* cache, unsigned long long at) {
    const unsigned char* block = cache + at / 32 * 34;
    const float scale = float_of_half(read_at<unsigned short>(block));
    UNROLL for (Word pair = 0; pair < COUNT / 2; ++pair) {
      const Word codes = read_at<unsigned short>(block + 2 + at % 32 + pair * 2);
      to[pair * 2] = scale * (float)(signed char)(codes & 255);
      to[pair * 2 + 1] = scale * (float)(signed char)(codes >> 8);
    }
  }
};

// e^x of what is not above 0; NaN of NaN.
DEVICE float exponential(float x) {
  if (!(x > -87.0f)) return x == x ? 0 : x;
  const float n = rintf(x * 1.44269504f);
  const float r = fmaf(n, 2.12194440e-4f, fmaf(n, -0.693359375f, x));
  float v = 1.0f / 5040;
  v = fmaf(v, r, 1.0f / 720);
  v = fmaf(v, r, 1.0f / 120);
  v = fmaf(v, r, 1.0f / 24);
  v = fmaf(v, r, 1.0f / 6);
  v = fmaf(v, r, 0.5f);
  v = fmaf(v, r, 1.0f);
  v = fmaf(v, r, 1.0f);
  return v * __int_as_float(((int)n + 127) << 23);
}

// An odd polynomial near 0, by the exponential elsewhere.
DEVICE float hyperbolic_tangent(float x) {
  const float size = fabsf(x);
  if (size < 0.65f) {
    const float z = x * x;
    float v = -0.005923963f;
    v = fmaf(v, z, 0.020873662f);
    v = fmaf(v, z, -0.05382381f);
    v = fmaf(v, z, 0.13332584f);
    v = fmaf(v, z, -0.33333327f);
    return fmaf(v * z, x, x);
  }
  const float e = exponential(size * -2.0f), v = (1.0f - e) / (1.0f + e);
  return x < 0 ? -v : v;
}

struct AttentionMemory {
  // Of each token the positions that it sees, and where its sequence's blocks stand in the table.
  int first[TOKENS], end[TOKENS];
  Word table_row[TOKENS];
  // Of each row what the warps' sums are multiplied by, first their largest scores and sums of weights; and the sum of all weights.
  float largest[WARPS][ROWS], weights[WARPS][ROWS], total[ROWS];
  // Queries are read no longer when sums meet.
  union {
    Words4 queries[TERMS][K_BLOCKS][ROW_TILES][2][32];
    float partial[WARPS][16][SLICE_PITCH];
  };
};

// What a kernel is given. The numbers are the step's own.
struct AttentionInputs {
  Word tokens, seqs, blocks;
  const float* queries;
  const unsigned char* cache;
  const int* positions;
  const int* seq_of;
  const int* table;
  const float* sinks;
};

// The row's token in the block, and its query head, of which there may be none.
DEVICE Word token_of(Word row) { return row / HEADS_OF_BLOCK; }
DEVICE Word head_of(Word row) { return blockIdx.y % GROUPS * HEADS_OF_BLOCK + row % HEADS_OF_BLOCK; }
DEVICE bool is_row(const AttentionInputs& in, Word row) {
  return token_of(row) < TOKENS && blockIdx.x * TOKENS + token_of(row) < in.tokens && head_of(row) < RATIO;
}

// What tokens see. Whatever a step says, nothing beside the table is read.
DEVICE void note_tokens(AttentionMemory& memory, const AttentionInputs& in) {
  if (threadIdx.x >= TOKENS) return;
  const Word token = blockIdx.x * TOKENS + threadIdx.x;
  int first = 0, end = 0;
  Word row = 0;
  if (token < in.tokens) {
    const int position = in.positions[token], most = (int)(in.blocks * POSITIONS);
    const Word seq = (Word)in.seq_of[token];
    row = (seq < in.seqs ? seq : in.seqs - 1) * in.blocks;
    end = position < 0 ? 0 : position < most ? position + 1 : most;
    if (WINDOW > 0 && position >= WINDOW) first = position - (WINDOW - 1);
    if (first > end) first = end;
  }
  memory.first[threadIdx.x] = first;
  memory.end[threadIdx.x] = end;
  memory.table_row[threadIdx.x] = row;
}

// Queries as terms, each lane's as it multiplies them: eight elements of its row, and of the eighth row behind it.
DEVICE void stage_queries(AttentionMemory& memory, const AttentionInputs& in, Word kv_head) {
  for (Word at = threadIdx.x; at < K_BLOCKS * ROWS * 4; at += THREADS) {
    const Word lane = at % 32, half = at / 32 % 2, tile = at / 64 % ROW_TILES, block = at / 64 / ROW_TILES;
    const Word row = tile * 16 + half * 8 + lane / 4, element = block * 32 + lane % 4 * 8;
    float eight[8] = {};
    if (is_row(in, row) && element < K_WIDTH) {
      const Word token = blockIdx.x * TOKENS + token_of(row), head = kv_head * RATIO + head_of(row);
      const float* from = in.queries + ((unsigned long long)token * HEADS + head) * K_WIDTH + element;
      UNROLL for (Word four = 0; four < 2; ++four) {
        const Floats4 v = read_at<Floats4>(from + four * 4);
        eight[four * 4] = v.x;
        eight[four * 4 + 1] = v.y;
        eight[four * 4 + 2] = v.z;
        eight[four * 4 + 3] = v.w;
      }
    }
    UNROLL for (Word term = 0; term < TERMS; ++term) memory.queries[term][block][tile][half][lane] = next_term(eight);
  }
}

// What a lane has of its rows, `lane / 4` and the eighth behind it of each tile.
struct RowSums {
  float largest[ROW_TILES][2], weights[ROW_TILES][2];
  Sums values[ROW_TILES][RUN];
};

// Tokens of the block that are neighbours and of one sequence, and all that they see together.
struct TokenRun {
  Word from, to, table_row;
  int first, end;
};

DEVICE TokenRun run_from(const AttentionMemory& memory, Word from) {
  TokenRun run = {from, from, memory.table_row[from], 0x7fffffff, 0};
  for (; run.to < TOKENS && memory.table_row[run.to] == run.table_row; ++run.to) {
    const int first = memory.first[run.to], end = memory.end[run.to];
    if (end > run.end) run.end = end;
    if (end > 0 && first < run.first) run.first = first;
  }
  return run;
}

// A block of the cache: where its keys begin, and which of its positions any of the run's tokens sees.
struct CacheBlock {
  const AttentionInputs& in;
  int start, first, end;
  unsigned long long head;

  __device__ __forceinline__ bool is_there(Word place) const {
    return start + (int)place >= first && start + (int)place < end;
  }
  __device__ __forceinline__ unsigned long long element(Word place) const {
    return head + (unsigned long long)place * (KV_HEADS * (K_WIDTH + V_WIDTH));
  }
};

// Scores of 32 positions, in columns of 8.
typedef Sums Scores[ROW_TILES][4];

DEVICE void add_scores(Scores& scores, const AttentionMemory& memory, const CacheBlock& block) {
  const Word lane = threadIdx.x % 32, part = lane % 4;
  UNROLL for (Word eight = 0; eight < 4; ++eight) {
    const Word place = eight * 8 + lane / 4;
    const unsigned long long key = block.element(place);
    KEEP_LOOP for (Word at = 0; at < K_BLOCKS; ++at) {
      float elements[8] = {};
      if (block.is_there(place) && at * 32 + part * 8 < K_WIDTH) CACHE::read<8>(elements, block.in.cache, key + at * 32 + part * 8);
      UNROLL for (Word of = 0; of < CACHE::TERMS_OF_CACHE; ++of) {
        const Words4 v = next_term(elements);
        UNROLL for (Word tile = 0; tile < ROW_TILES; ++tile)
          UNROLL for (Word term = 0; term < TERMS - of; ++term) {
            const Words4 a = memory.queries[term][at][tile][0][lane], b = memory.queries[term][at][tile][1][lane];
            multiply_bf16(scores[tile][eight], a.x, b.x, a.y, b.y, v.x, v.y);
            multiply_bf16(scores[tile][eight], a.z, b.z, a.w, b.w, v.z, v.w);
          }
      }
    }
  }
}

DEVICE float scaled(float product) {
  const float score = product * SCALE;
  return SOFTCAP > 0 ? hyperbolic_tangent(score / SOFTCAP) * SOFTCAP : score;
}

// Makes weights of scores, relative to the largest score so far, by which all sums are.
DEVICE void weigh(Scores& scores, RowSums& rows, const int (&seen)[ROW_TILES][2][2], int start) {
  const int own = start + (int)(threadIdx.x % 4 * 2);
  UNROLL for (Word tile = 0; tile < ROW_TILES; ++tile)
    UNROLL for (Word half = 0; half < 2; ++half) {
      const int first = seen[tile][half][0], end = seen[tile][half][1];
      float largest = LOWEST;
      UNROLL for (Word at = 0; at < 8; ++at) {
        const int position = own + (int)(at / 2 * 8 + at % 2);
        float& score = scores[tile][at / 2][half * 2 + at % 2];
        score = scaled(score);
        if (position >= first && position < end && score > largest) largest = score;
      }
      UNROLL for (int mask = 1; mask < 4; mask *= 2) {
        const float other = exchange_xor(largest, mask);
        if (other > largest) largest = other;
      }
      const float before = rows.largest[tile][half];
      if (before > largest) largest = before;
      const float factor = exponential(before - largest);
      rows.largest[tile][half] = largest;
      rows.weights[tile][half] *= factor;
      UNROLL for (Word column = 0; column < RUN; ++column)
        UNROLL for (Word at = 0; at < 2; ++at) rows.values[tile][column][half * 2 + at] *= factor;
      UNROLL for (Word at = 0; at < 8; ++at) {
        const int position = own + (int)(at / 2 * 8 + at % 2);
        float& score = scores[tile][at / 2][half * 2 + at % 2];
        score = position >= first && position < end ? exponential(score - largest) : 0;
        rows.weights[tile][half] += score;
      }
    }
}

// Adds the values of 32 positions by their weights.
DEVICE void add_values(RowSums& rows, const Scores& weights, const CacheBlock& block) {
  const Word group = threadIdx.x % 32 / 4, part = threadIdx.x % 4;
  UNROLL for (Word sixteen = 0; sixteen < 2; ++sixteen) {
    Words4 terms[ROW_TILES][TERMS];
    UNROLL for (Word tile = 0; tile < ROW_TILES; ++tile) {
      float eight[8];
      UNROLL for (Word at = 0; at < 8; ++at) eight[at] = weights[tile][sixteen * 2 + at / 4][at % 4];
      UNROLL for (Word term = 0; term < TERMS; ++term) terms[tile][term] = next_term(eight);
    }
    UNROLL for (Word from = 0; from < RUN; from += READ) {
      // Of the four positions that a lane has: two neighbours, and the eighth ones behind them.
      float values[4][READ];
      UNROLL for (Word own = 0; own < 4; ++own) {
        const Word place = sixteen * 16 + part * 2 + own % 2 + own / 2 * 8;
        UNROLL for (Word at = 0; at < READ; ++at) values[own][at] = 0;
        if (block.is_there(place)) CACHE::read<READ>(values[own], block.in.cache, block.element(place) + K_WIDTH + group * RUN + from);
      }
      UNROLL for (Word two = 0; two < READ; two += 2) {
        float eight[8];
        UNROLL for (Word at = 0; at < 8; ++at) eight[at] = values[at % 4][two + at / 4];
        UNROLL for (Word of = 0; of < CACHE::TERMS_OF_CACHE; ++of) {
          const Words4 v = next_term(eight);
          UNROLL for (Word tile = 0; tile < ROW_TILES; ++tile)
            UNROLL for (Word term = 0; term < TERMS - of; ++term) {
              const Words4 p = terms[tile][term];
              multiply_bf16(rows.values[tile][from + two], p.x, p.y, p.z, p.w, v.x, v.y);
              multiply_bf16(rows.values[tile][from + two + 1], p.x, p.y, p.z, p.w, v.z, v.w);
            }
        }
      }
    }
  }
}

// Meets what a run of tokens sees.
DEVICE void meet(RowSums& rows, const AttentionMemory& memory, const AttentionInputs& in, const TokenRun& run, Word kv_head) {
  int seen[ROW_TILES][2][2];
  UNROLL for (Word tile = 0; tile < ROW_TILES; ++tile)
    UNROLL for (Word half = 0; half < 2; ++half) {
      const Word row = tile * 16 + half * 8 + threadIdx.x % 32 / 4, token = token_of(row);
      const bool is_own = is_row(in, row) && token >= run.from && token < run.to;
      seen[tile][half][0] = is_own ? memory.first[token] : 0;
      seen[tile][half][1] = is_own ? memory.end[token] : 0;
    }
  const Word first = (Word)run.first / POSITIONS, behind = ((Word)run.end + POSITIONS - 1) / POSITIONS;
  for (Word number = first + (threadIdx.x / 32 + WARPS - first % WARPS) % WARPS; number < behind; number += WARPS) {
    // A block that is not there is read as the first.
    const int block = in.table[run.table_row + number];
    const unsigned long long slot = (unsigned long long)(block < 0 ? 0 : block) * POSITIONS;
    const CacheBlock of = {in, (int)(number * POSITIONS), run.first, run.end, (slot * KV_HEADS + kv_head) * (K_WIDTH + V_WIDTH)};
    Scores scores = {};
    add_scores(scores, memory, of);
    weigh(scores, rows, seen, of.start);
    add_values(rows, scores, of);
  }
}

// What the warps' sums of each row are multiplied by, and what their sum is divided by.
DEVICE void find_factors(AttentionMemory& memory, const AttentionInputs& in, Word kv_head) {
  const Word row = threadIdx.x;
  if (row >= ROWS) return;
  float largest = LOWEST, total = 0;
  if (SINKS && is_row(in, row)) largest = in.sinks[kv_head * RATIO + head_of(row)];
  const float sink = largest;
  UNROLL for (Word of = 0; of < WARPS; ++of)
    if (memory.largest[of][row] > largest) largest = memory.largest[of][row];
  UNROLL for (Word of = 0; of < WARPS; ++of) {
    const float factor = exponential(memory.largest[of][row] - largest);
    total += memory.weights[of][row] * factor;
    memory.largest[of][row] = factor;
  }
  if (SINKS) total += exponential(sink - largest);
  memory.total[row] = total;
}

DEVICE void attention(AttentionMemory& memory, const AttentionInputs& in, float* out) {
  const Word lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = lane / 4, part = lane % 4;
  const Word kv_head = blockIdx.y / GROUPS;
  let_next_begin();
  wait_for_earlier();
  // A captured grid is that of the most tokens.
  if (blockIdx.x * TOKENS >= in.tokens) return;
  note_tokens(memory, in);
  stage_queries(memory, in, kv_head);
  __syncthreads();
  RowSums rows;
  UNROLL for (Word tile = 0; tile < ROW_TILES; ++tile) {
    UNROLL for (Word half = 0; half < 2; ++half) {
      rows.largest[tile][half] = LOWEST;
      rows.weights[tile][half] = 0;
    }
    UNROLL for (Word column = 0; column < RUN; ++column)
      UNROLL for (Word at = 0; at < 4; ++at) rows.values[tile][column][at] = 0;
  }
  for (Word from = 0; from < TOKENS;) {
    const TokenRun run = run_from(memory, from);
    if (run.end > 0) meet(rows, memory, in, run, kv_head);
    from = run.to;
  }
  UNROLL for (Word tile = 0; tile < ROW_TILES; ++tile)
    UNROLL for (Word half = 0; half < 2; ++half) {
      float weights = rows.weights[tile][half];
      UNROLL for (int mask = 1; mask < 4; mask *= 2) weights += exchange_xor(weights, mask);
      if (part == 0) {
        memory.largest[warp][tile * 16 + half * 8 + group] = rows.largest[tile][half];
        memory.weights[warp][tile * 16 + half * 8 + group] = weights;
      }
    }
  __syncthreads();
  find_factors(memory, in, kv_head);
  UNROLL for (Word tile = 0; tile < ROW_TILES; ++tile)
    UNROLL for (Word slice = 0; slice < RUN; slice += SLICE) {
      UNROLL for (Word column = 0; column < SLICE; ++column)
        UNROLL for (Word at = 0; at < 4; ++at)
          memory.partial[warp][at / 2 * 8 + group][column * 8 + part * 2 + at % 2] = rows.values[tile][slice + column][at];
      __syncthreads();
      for (Word at = threadIdx.x; at < 16 * SLICE * 8; at += THREADS) {
        const Word of_tile = at / (SLICE * 8), place = at % (SLICE * 8), row = tile * 16 + of_tile;
        float sum = 0;
        UNROLL for (Word of = 0; of < WARPS; ++of) sum += memory.partial[of][of_tile][place] * memory.largest[of][row];
        const Word token = blockIdx.x * TOKENS + token_of(row), head = kv_head * RATIO + head_of(row);
        if (is_row(in, row))
          out[((unsigned long long)token * HEADS + head) * V_WIDTH + place % 8 * RUN + slice + place / 8] = sum / memory.total[row];
      }
      __syncthreads();
    }
}
