// Products of a weight with few rows of activations: y[r, n] = sum over k of x[r, k] * w[n, k], for the weight of `weights.cu` and
// `ROWS` rows of activations, `TILE` (1, 2, 4 or 8) of them a block.
//
// A block makes 16 columns. Its warps take units of 64 elements along k in turn, each straight from memory to registers,
// `AHEAD` units before they are multiplied, over all barriers. Sums of units meet in order of the warps.
//
// The order of additions follows from K alone: unit u is added by warp u % WARPS after all its units before it. Neither the
// number of rows nor `TILE` nor the grid has a part in it.

const Word ROUNDS = (UNITS + WARPS - 1) / WARPS, ROUND = WARPS * UNIT;
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

// Activations of a half of a unit, which begins at `k`, in shared memory. A lane reads those of its own column.
struct Activations {
  const MatmulMemory& memory;
  Word column, k;

  __device__ __forceinline__ Words4 term(Word number) const {
    const Word part = threadIdx.x % 4;
    const Words4* row = memory.terms[number][column];
    if (!WEIGHT::SPLIT) return row[k / 8 + part];
    const Words2 low = ((const Words2*)row)[k / 4 + part], high = ((const Words2*)row)[k / 4 + 4 + part];
    const Words4 v = {low.x, low.y, high.x, high.y};
    return v;
  }
  __device__ __forceinline__ float sum(Word at) const {
    const Word pair = threadIdx.x % 4 * 2;
    return memory.sums[k / 32][pair + at < TILE ? pair + at : 0];
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
  rows_of_lane(of_lane, w, first_column);
  WEIGHT ahead[WEIGHT::AHEAD];
  UNROLL for (Word slot = 0; slot < WEIGHT::AHEAD; ++slot)
    if (slot * WARPS + warp < UNITS) ahead[slot].read(of_lane, slot * WARPS + warp, part);
  let_next_begin();
  wait_for_earlier();
  // A captured grid is that of the most rows.
  if (first_row >= all_rows) return;
  x += (unsigned long long)first_row * K;
  // Columns behind the last row repeat it: what comes of them is dropped.
  Activations own = {memory, group < rows ? group : rows - 1, 0};
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
      UNROLL for (Word half = 0; half < 2; ++half) {
        if (unit >= UNITS || !is_there(unit, half)) break;
        own.k = round % ROUNDS_OF_CHUNK * ROUND + warp * UNIT + half * 32;
        multiply(sums, ahead[slot].decoded(unit, half), own);
      }
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
