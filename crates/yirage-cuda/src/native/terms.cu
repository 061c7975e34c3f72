// Floats as sums of terms of bf16, which tensor cores multiply: three of them are a float's 24 bits.

const Word TERMS = 3;

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
// Eight floats' next term, which they lose.
DEVICE Words4 next_term(float (&eight)[8]) {
  Words4 v;
  Word* pairs = &v.x;
  UNROLL for (Word at = 0; at < 4; ++at) {
    pairs[at] = cut_to_bf16(eight[at * 2], eight[at * 2 + 1]);
    eight[at * 2] = rest_of_low(eight[at * 2], pairs[at]);
    eight[at * 2 + 1] = rest_of_high(eight[at * 2 + 1], pairs[at]);
  }
  return v;
}

// Sums of a lane: those of its row (`lane / 4`) for two neighbouring columns of activations, and of the eighth row behind it.
typedef float Sums[4];
