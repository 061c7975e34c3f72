"""Writes the golden files of the stored number formats: python3 tools/oracle/quant_golden.py

Needs the PyPI packages gguf and numpy, whose decoders and encoders are the oracle. For each format F:
crates/yirage-ir/tests/golden/F.blocks holds blocks and F.values what they decode to; where the oracle encodes,
F.encoded holds what encode.values becomes.
"""

import pathlib

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, quants

OUT = pathlib.Path(__file__).resolve().parents[2] / "crates/yirage-ir/tests/golden"
DECODE = "F32 F16 BF16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_NL MXFP4".split()
ENCODE = "F16 BF16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 MXFP4".split()
# Where a block's f16 scales lie: random bytes there would often be infinite or not a number.
SCALES = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82], "Q3_K": [108],
          "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0]}
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


main()
