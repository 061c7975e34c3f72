"""Cases of 8-bit floats from PyTorch, whose float8_e4m3fn and float8_e8m0fnu are not ours.

    python tools/oracle/float8_cases.py crates/yirage-persistent/tests/fixtures/float8.json

Needs numpy and torch. Weights and inputs are drawn from seeds, as the tests draw them again; the file keeps what PyTorch makes of them.
"""

import json
import sys

import torch

from counter_rng import at

ROWS, N, K = 3, 130, 260


def numbers(seed, count):
    return torch.tensor([int(n) / 2**24 - 0.5 for n in at(seed, range(count)) >> 40], dtype=torch.float64)


def codes(seed, count):
    """Bytes of E4M3 that are numbers."""
    return [int(n) & 0xF7 for n in at(seed, range(count)) >> 56]


def main():
    every = torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn).double()
    scale_bytes = torch.arange(255, dtype=torch.uint8).view(torch.float8_e8m0fnu).double()
    weight = torch.tensor(codes(1, N * K), dtype=torch.uint8).view(torch.float8_e4m3fn).double().reshape(N, K)
    x = numbers(2, ROWS * K).float().double().reshape(ROWS, K)

    blocks = (numbers(3, 2 * 3) + 1).float().double().reshape(2, 3)
    by_block = blocks.repeat_interleave(128, 0)[:N].repeat_interleave(128, 1)[:, :K]

    exponents = torch.tensor([120 + int(n) for n in at(4, range(N * 4)) >> 61], dtype=torch.uint8)
    of_row = exponents.view(torch.float8_e8m0fnu).double().reshape(N, 4)
    by_row = of_row.repeat_interleave(128, 1)[:, :K]

    def product(scales):
        # A widened weight is rounded to f32, as a checkpoint that was widened has it.
        return (x @ (weight * scales).float().double().T).flatten().tolist()

    case = {
        "torch": torch.__version__,
        "e4m3": [None if v != v else v for v in every.tolist()],
        "e8m0_log2": [int(n) for n in scale_bytes.log2().tolist()],
        "by_block": product(by_block),
        "by_row": product(by_row),
    }
    with open(sys.argv[1], "w") as file:
        json.dump(case, file)
        file.write("\n")


if __name__ == "__main__":
    main()
