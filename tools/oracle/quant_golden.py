"""Writes the golden files of the stored number formats: python3 tools/oracle/quant_golden.py

Needs the PyPI packages gguf and numpy, whose decoders and encoders are the oracle. For each format F:
crates/yirage-ir/tests/golden/F.blocks holds blocks and F.values what they decode to; where the oracle encodes,
F.encoded holds what encode.values becomes. The formats that are decoded when a model is loaded are in
crates/yirage-model/tests/golden/decoded in the same way.
"""

import pathlib

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, quants

LOADED_OUT = pathlib.Path(__file__).resolve().parents[2] / "crates/yirage-model/tests/golden/decoded"
OUT = pathlib.Path(__file__).resolve().parents[2] / "crates/yirage-ir/tests/golden"
DECODE = "F32 F16 BF16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_NL MXFP4".split()
LOADED = "IQ2_XXS IQ2_XS IQ2_S IQ3_XXS IQ3_S IQ1_S IQ1_M IQ4_XS TQ1_0 TQ2_0 NVFP4 Q1_0".split()
ENCODE = "F16 BF16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 MXFP4".split()
# Where a block's f16 scales lie: random bytes there would often be infinite or not a number.
SCALES = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82], "Q3_K": [108],
          "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0],
          "IQ2_XXS": [0], "IQ2_XS": [0], "IQ2_S": [0], "IQ3_XXS": [0], "IQ3_S": [0], "IQ1_S": [0], "IQ4_XS": [0],
          "TQ1_0": [52], "TQ2_0": [64], "Q1_0": [0]}
EDGES = np.array([0.0, -0.0, 1.0, -2.5, 65504.0, 5.9604645e-08, 6.1e-05, -0.0078125], np.float16)


def blocks(name, rng):
    weights, size = GGML_QUANT_SIZES[GGMLQuantizationType[name]]
    if weights == 1:
        floats = np.concatenate([rng.standard_normal(120), EDGES.astype(np.float64)]).astype(np.float32)
        return quants.quantize(floats.reshape(1, -1), GGMLQuantizationType[name]).view(np.uint8).reshape(1, -1)
    out = rng.integers(0, 256, (24, size), dtype=np.uint8)
    out[0], out[1] = 0, 255
    if name == "MXFP4":
        out[:, 0] = rng.integers(100, 140, 24)
        out[2:6, 0] = [0, 1, 2, 254]
    for at in SCALES.get(name, []):
        scales = rng.standard_normal(24).astype(np.float16)
        scales[: len(EDGES)] = EDGES
        out[:, at : at + 2] = scales.view(np.uint8).reshape(24, 2)
    return out


def loaded_blocks(name, rng):
    made = blocks(name, rng)
    if name == "IQ1_M":
        # The scale's highest four bits are in the last byte: a number from 1/128 on, of either sign.
        made[:, 55] = made[:, 55] & 15 | np.where(made[:, 55] & 128, 0xA0, 0x20).astype(np.uint8)
        made[2, 49:56:2] &= 15
        made[2, 49] |= 16
    return made


def decode(name, made):
    if name == "Q1_0":
        # The package knows this format's size alone: a set bit is d, another one -d.
        d = made[:, :2].copy().view(np.float16).astype(np.float32)
        return np.where(np.unpackbits(made[:, 2:], axis=1, bitorder="little") == 1, d, -d)
    return quants.dequantize(made, GGMLQuantizationType[name])


def inputs(rng):
    rows = [np.zeros(32), np.ones(32), -np.ones(32), np.arange(32) - 15.5, np.arange(32.0), np.arange(32) / 31 * 7]
    rows += [rng.standard_normal(32) * s for s in (1e-6, 1e-3, 1, 30, 1000)]
    rows += [rng.standard_t(2, 32) for _ in range(20)]
    rows += [np.round(rng.standard_normal(32) * 4) / 2 for _ in range(8)]
    outlier = rng.standard_normal(32)
    outlier[7] = -60
    return np.array(rows + [outlier, np.abs(outlier), -np.abs(outlier)], np.float32)


def main():
    rng = np.random.default_rng(20261121)
    OUT.mkdir(parents=True, exist_ok=True)
    values = inputs(rng)
    (OUT / "encode.values").write_bytes(values.tobytes())
    for name in DECODE:
        made, kind = blocks(name, rng), GGMLQuantizationType[name]
        decoded = np.frombuffer(made.tobytes(), np.float32) if name == "F32" else quants.dequantize(made, kind)
        (OUT / f"{name.lower()}.blocks").write_bytes(made.tobytes())
        (OUT / f"{name.lower()}.values").write_bytes(decoded.astype(np.float32).tobytes())
        if name in ENCODE:
            (OUT / f"{name.lower()}.encoded").write_bytes(quants.quantize(values, kind).tobytes())
    rng = np.random.default_rng(20261129)
    LOADED_OUT.mkdir(parents=True, exist_ok=True)
    for name in LOADED:
        made = loaded_blocks(name, rng)
        (LOADED_OUT / f"{name.lower()}.blocks").write_bytes(made.tobytes())
        (LOADED_OUT / f"{name.lower()}.values").write_bytes(decode(name, made).astype(np.float32).tobytes())


main()
