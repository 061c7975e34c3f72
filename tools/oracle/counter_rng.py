"""The random numbers and weights of `yirage-testkit`, to the same bits: what its modules `rng` and `weights` say, with numpy.

usage: counter_rng.py      prints the known values that the crate's tests have
"""
import numpy as np

STEP = np.uint64(0x9E3779B97F4A7C15)


def mix(z):
    """The finaliser of SplitMix64."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def at(seed, counters):
    """The numbers of `seed` at each of `counters`."""
    counters = np.atleast_1d(np.asarray(counters, dtype=np.uint64))
    with np.errstate(over="ignore"):
        return mix(np.uint64(seed) + (counters + np.uint64(1)) * STEP)


def fnv1a(name):
    """FNV-1a of 64 bits (G. Fowler, L. C. Noll and K.-P. Vo)."""
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = (value ^ byte) * 0x100000001B3 % (1 << 64)
    return value


def weights(seed, name, shape, base, exponent):
    """A tensor: `base` and an odd number of -255 to 255, evenly, over 2 to the power of `exponent`. Exact in float32."""
    numbers = at(seed ^ fnv1a(name), np.arange(int(np.prod(shape)), dtype=np.uint64)) >> np.uint64(56)
    odd = 2 * numbers.astype(np.int64) - 255
    return (base + odd.astype(np.float32) * np.float32(2.0 ** -exponent)).astype(np.float32).reshape(shape)


if __name__ == "__main__":
    print("rng", [int(x) for x in at(1234567, range(5))])
    print("fnv1a", fnv1a("model.embed_tokens.weight"))
    print("weights", weights(1, "model.embed_tokens.weight", [2, 3], 0.0, 10).tolist())
    print("norm", weights(1, "model.norm.weight", [4], 1.0, 11).tolist())
