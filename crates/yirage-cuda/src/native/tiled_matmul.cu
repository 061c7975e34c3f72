// Products of a weight with many rows of activations, with the bytes that `decode_matmul.cu` gives for each of them: for the weight
// of `weights.cu` and `ROWS` rows of activations, `TILE` (16 or 32) of them a block, which makes 16 columns for each of `PANELS`.
//
// The order of additions is that of K alone: unit u is added by warp u % WARPS after all its units before it, and the warps' sums
// meet in order. So a warp meets units that no other warp of its block has: it reads and decodes each weight once for all rows of
// the tile, straight from memory to registers, the next unit while it multiplies the second half of one. Activations come as they are by copies that run
// ahead, `RING` times 8 rows of a half of a unit, and are cut into terms in registers: each lane copies what it reads itself, so
// nothing but its own copies is waited for.

const Word ROW_TILES = TILE / 8, RING = 4;
// Floats from the sums of one column to the next, in other banks.
const Word SUM_PITCH = TILE + 4;

struct MatmulMemory {
  // The ring is over when sums meet.
  union {
    Floats4 ring[WARPS][RING][2][32];
    float partial[WARPS][16][SUM_PITCH];
  };
};

// Activations of 8 rows by a half of a unit, in registers: those of the lane's row.
struct Activations {
  Words4 terms[TERMS];
  float sums[2];

  __device__ __forceinline__ Words4 term(Word number) const { return terms[number]; }
  __device__ __forceinline__ float sum(Word at) const { return sums[at]; }
};

DEVICE Activations cut_to_terms(const Floats4& first, const Floats4& second) {
  Activations v;
  // Of 32 elements, in the order in which few rows are added up: neighbours first.
  if (WEIGHT::Half::HAS_MINIMUM) {
    float sum = ((first.x + first.y) + (first.z + first.w)) + ((second.x + second.y) + (second.z + second.w));
    UNROLL for (int mask = 1; mask < 4; mask *= 2) sum += exchange_xor(sum, mask);
    UNROLL for (Word at = 0; at < 2; ++at) v.sums[at] = exchange_from(sum, (threadIdx.x % 4 * 2 + at) * 4);
  }
  float in_order[8] = {first.x, first.y, first.z, first.w, second.x, second.y, second.z, second.w};
  float shuffled[8] = {first.x, first.z, first.y, first.w, second.x, second.z, second.y, second.w};
  UNROLL for (Word term = 0; term < TERMS; ++term) v.terms[term] = next_term(WEIGHT::SHUFFLED ? shuffled : in_order);
  return v;
}

// What a lane copies and reads of the activations: `items` times 8 rows by a half of a unit, of its warp's units in turn.
struct ActivationRing {
  Floats4 (&ring)[RING][2][32];
  const float* x;
  Word rows, warp, items;

  // Begins the copy of an item, where there is one. Rows behind the last repeat it: what comes of them is dropped.
  __device__ __forceinline__ void request(Word item) const {
    const Word half = item / ROW_TILES, lane = threadIdx.x % 32, part = lane % 4;
    if (item < items) {
      const Word row = item % ROW_TILES * 8 + lane / 4, k = (half / 2 * WARPS + warp) * UNIT + half % 2 * 32;
      const float* from = x + (unsigned long long)(row < rows ? row : rows - 1) * K + k;
      copy_async(&ring[item % RING][0][lane], from + (WEIGHT::SPLIT ? part * 4 : part * 8));
      copy_async(&ring[item % RING][1][lane], from + (WEIGHT::SPLIT ? part * 4 + 16 : part * 8 + 4));
    }
    commit_copies();
  }
  __device__ __forceinline__ Activations wait(Word item) const {
    wait_for_copies<RING - 1>();
    const Word lane = threadIdx.x % 32;
    return cut_to_terms(ring[item % RING][0][lane], ring[item % RING][1][lane]);
  }
};

// Halves of units that a warp has.
DEVICE Word halves_of(Word warp) {
  const Word units = warp < UNITS ? (UNITS - 1 - warp) / WARPS + 1 : 0;
  return units * 2 - (K % UNIT && (UNITS - 1) % WARPS == warp ? 1 : 0);
}

DEVICE void tiled_matmul(MatmulMemory& memory, Word all_rows, const float* x, const unsigned char* w, float* y) {
  const Word lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = lane / 4, part = lane % 4;
  const Word first_row = blockIdx.x * TILE, first_column = blockIdx.y * 16 * PANELS;
  const Word rows = all_rows - first_row < TILE ? all_rows - first_row : TILE;
  const unsigned char* of_lane[PANELS][2];
  WEIGHT ahead[PANELS];
  UNROLL for (Word panel = 0; panel < PANELS; ++panel) {
    rows_of_lane(of_lane[panel], w, first_column + panel * 16);
    if (warp < UNITS) ahead[panel].read(of_lane[panel], warp, part);
  }
  let_next_begin();
  wait_for_earlier();
  // A captured grid is that of the most rows.
  if (first_row >= all_rows) return;
  const ActivationRing activations = {memory.ring[warp], x + (unsigned long long)first_row * K, rows, warp, halves_of(warp) * ROW_TILES};
  UNROLL for (Word item = 0; item < RING; ++item) activations.request(item);
  Sums sums[PANELS][ROW_TILES] = {};
  Word item = 0;
  for (Word unit = warp; unit < UNITS; unit += WARPS) {
    UNROLL for (Word half = 0; half < 2; ++half) {
      if (!is_there(unit, half)) break;
      WEIGHT::Half decoded[PANELS];
      UNROLL for (Word panel = 0; panel < PANELS; ++panel) {
        decoded[panel] = ahead[panel].decoded(unit, half);
        if (half == 1 && unit + WARPS < UNITS) ahead[panel].read(of_lane[panel], unit + WARPS, part);
      }
      UNROLL for (Word tile = 0; tile < ROW_TILES; ++tile) {
        const Activations own = activations.wait(item);
        UNROLL for (Word panel = 0; panel < PANELS; ++panel) multiply(sums[panel][tile], decoded[panel], own);
        activations.request(item + RING);
        ++item;
      }
    }
  }
  UNROLL for (Word panel = 0; panel < PANELS; ++panel) {
    // The ring is no longer read, or the sums before have been.
    __syncthreads();
    UNROLL for (Word tile = 0; tile < ROW_TILES; ++tile)
      UNROLL for (Word at = 0; at < 4; ++at)
        memory.partial[warp][at / 2 * 8 + group][tile * 8 + part * 2 + at % 2] = sums[panel][tile][at];
    __syncthreads();
    for (Word at = threadIdx.x; at < 16 * TILE; at += THREADS) {
      const Word row = at / 16, column = first_column + panel * 16 + at % 16;
      float sum = 0;
      UNROLL for (Word of = 0; of < WARPS; ++of) sum += memory.partial[of][at % 16][row];
      if (row < rows && column < COLUMNS) y[(unsigned long long)(first_row + row) * COLUMNS + column] = sum;
    }
  }
}
