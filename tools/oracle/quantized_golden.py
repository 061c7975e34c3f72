"""Writes the golden models of packed safetensors weights: python3 tools/oracle/quantized_golden.py

Needs the PyPI packages ml_dtypes and numpy. Each folder of crates/yirage-model/tests/golden/quantized has one module `m`,
packed as its quantisation's public definition says, with the configuration that names it; values.f32 holds the weights,
row by row, computed from the numbers that were packed. Two of the files are seeds of a fuzz target as well.
"""

import json
import pathlib

import ml_dtypes
import numpy as np

OUT = pathlib.Path(__file__).resolve().parents[2] / "crates/yirage-model/tests/golden/quantized"
SEEDS = pathlib.Path(__file__).resolve().parents[2] / "fuzz/corpus/safetensors"
F32, BF16, E4M3, E5M2 = np.float32, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], F32)
NF4 = [-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
       -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
       0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0]
NAMES = {"float32": "F32", "float16": "F16", "bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2",
         "float8_e8m0fnu": "F8_E8M0", "uint8": "U8", "int8": "I8", "int32": "I32", "int64": "I64"}


def write(name, config, tensors, values):
    folder = OUT / name
    folder.mkdir(parents=True, exist_ok=True)
    tensors = dict(tensors)
    tensors["norm.weight"] = np.ones(4, F32)
    header, data = {}, b""
    for key, array in tensors.items():
        array = np.ascontiguousarray(array)
        end = len(data) + array.nbytes
        header[key] = {"dtype": NAMES[array.dtype.name], "shape": list(np.shape(tensors[key])), "data_offsets": [len(data), end]}
        data += array.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    (folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)
    model = {"model_type": "llama"} | ({"quantization_config": config} if config else {})
    (folder / "config.json").write_text(json.dumps(model, indent=1) + "\n")
    assert values.dtype == F32
    (folder / "values.f32").write_bytes(values.tobytes())


def pack(codes, bits, axis):
    """Codes into words of 32 bits along an axis, the first in the lowest bits; the last word may not be full."""
    codes = np.moveaxis(np.asarray(codes, np.uint64), axis, -1)
    per_word = 32 // bits
    codes = np.pad(codes, [(0, 0)] * (codes.ndim - 1) + [(0, -codes.shape[-1] % per_word)])
    codes = codes.reshape(*codes.shape[:-1], -1, per_word) << (np.arange(per_word, dtype=np.uint64) * np.uint64(bits))
    return np.moveaxis(codes.sum(-1).astype(np.uint32), -1, axis).view(np.int32)


def scales(rng, shape, dtype):
    return ((rng.random(shape) + 0.5) * 0.01 * np.where(rng.random(shape) < 0.1, -1, 1)).astype(dtype)


def gptq(name, rng, bits, group, zeros, dtype=np.float16, version=1, ordered=False, rows=16, width=128):
    most = 1 << bits
    size = width if group == -1 else group
    groups = -(-width // size)
    q = rng.integers(0, most, (width, rows))
    z = np.full((groups, rows), most // 2) if zeros is None else rng.integers(*zeros, (groups, rows))
    s = scales(rng, (groups, rows), dtype)
    of = np.arange(width) // size
    if ordered:
        of = rng.permutation(of)
    stored = (z - 1) % most if version == 1 else z
    tensors = {"m.qweight": pack(q, bits, 0), "m.qzeros": pack(stored, bits, 1), "m.scales": s,
               "m.g_idx": of.astype(np.int32), "m.bias": np.zeros(rows, np.float16)}
    config = {"quant_method": "gptq", "bits": bits, "group_size": group, "desc_act": ordered, "sym": zeros is None}
    if version == 2:
        config["checkpoint_format"] = "gptq_v2"
    values = s[of].astype(F32) * (q - z[of]).astype(F32)
    write(name, config, tensors, np.ascontiguousarray(values.T))


def awq(name, rng, group, rows=16, width=128):
    order = [0, 2, 4, 6, 1, 3, 5, 7]
    q, z = rng.integers(0, 16, (width, rows)), rng.integers(0, 16, (width // group, rows))
    s = scales(rng, (width // group, rows), np.float16)
    reorder = lambda a: a.reshape(len(a), -1, 8)[:, :, order].reshape(a.shape)
    tensors = {"m.qweight": pack(reorder(q), 4, 1), "m.qzeros": pack(reorder(z), 4, 1), "m.scales": s}
    config = {"quant_method": "awq", "bits": 4, "group_size": group, "zero_point": True, "version": "gemm"}
    values = s.repeat(group, 0).astype(F32) * (q - z.repeat(group, 0)).astype(F32)
    write(name, config, tensors, np.ascontiguousarray(values.T))


def compressed(format, weights):
    group = {"targets": ["Linear"], "weights": weights}
    return {"quant_method": "compressed-tensors", "format": format, "config_groups": {"group_0": group}}


def packed_int(name, rng, bits, group, zeros, dtype, rows=16, width=128):
    half, groups = 1 << (bits - 1), 1 if group is None else width // group
    q, s = rng.integers(-half, half, (rows, width)), scales(rng, (rows, groups), dtype)
    tensors = {"m.weight_packed": pack(q + half, bits, 1), "m.weight_scale": s,
               "m.weight_shape": np.array([rows, width], np.int64)}
    z = np.zeros((rows, groups), np.int64)
    if zeros:
        z = rng.integers(-half, half, (rows, groups))
        tensors["m.weight_zero_point"] = pack(z + half, bits, 0)
    config = compressed("pack-quantized", {"num_bits": bits, "type": "int", "group_size": group, "symmetric": not zeros})
    wide = width // groups
    write(name, config, tensors, s.repeat(wide, 1).astype(F32) * (q - z.repeat(wide, 1)).astype(F32))


def int8(name, rng, shape, dtype, rows=16, width=128):
    q, s = rng.integers(-128, 128, (rows, width)).astype(np.int8), scales(rng, shape, dtype)
    config = compressed("int-quantized", {"num_bits": 8, "type": "int", "strategy": "channel"})
    write(name, config, {"m.weight": q, "m.weight_scale": s}, s.astype(F32) * q.astype(F32))


def floats(rng, shape, dtype):
    codes = rng.integers(0, 256, shape).astype(np.uint8)
    codes[np.isnan(codes.view(dtype).astype(F32)) | np.isinf(codes.view(dtype).astype(F32))] = 9
    return codes.view(dtype)


def fp8(name, rng, end, s, block, config, rows=24, width=80, dtype=E4M3, extra=()):
    w = floats(rng, (rows, width), dtype)
    tensors = {"m.weight": w} | dict(extra)
    values = w.astype(F32)
    if end:
        tensors[end] = s
        whole = np.broadcast_to(s.astype(F32).reshape(s.shape if s.ndim == 2 else (-1, 1)), s.shape if s.ndim == 2 else (s.size, 1))
        values = values * whole.repeat(block[0], 0)[:rows].repeat(block[1], 1)[:, :width]
    write(name, config, tensors, values.astype(F32))


def all_fp8(rng):
    block = {"quant_method": "fp8", "weight_block_size": [16, 32], "activation_scheme": "dynamic"}
    s = scales(rng, (2, 3), F32)
    fp8("fp8-blocks", rng, "m.weight_scale_inv", s, (16, 32), block)
    fp8("fp8-blocks-bf16", rng, "m.weight_scale_inv", s.astype(BF16), (16, 32), block)
    powers = (2.0 ** rng.integers(-12, 2, (2, 3))).astype(F32)
    fp8("fp8-blocks-powers", rng, "m.weight_scale_inv", powers, (16, 32), block)
    fp8("fp8-blocks-e8m0", rng, "m.weight_scale_inv", powers.astype(ml_dtypes.float8_e8m0fnu), (16, 32), block)
    rows = compressed("float-quantized", {"num_bits": 8, "type": "float", "strategy": "channel"})
    fp8("fp8-rows", rng, "m.weight_scale", scales(rng, (24, 1), BF16), (1, 80), rows)
    static = {"m.input_scale": np.array([0.5], F32)}
    fp8("fp8-whole", rng, "m.weight_scale", scales(rng, (1,), F32), (24, 80), {"quant_method": "fp8"}, extra=static)
    structure = compressed("float-quantized", {"num_bits": 8, "strategy": "block", "block_structure": [8, 40]})
    fp8("fp8-structure", rng, "m.weight_scale", scales(rng, (3, 2), F32), (8, 40), structure)
    fp8("fp8-plain", rng, None, None, None, None)
    fp8("fp8-e5m2", rng, None, None, None, None, dtype=E5M2)


def nibbles(codes, first_low=True):
    low, high = codes.reshape(-1, 2).T
    return (low | high << 4 if first_low else high | low << 4).astype(np.uint8)


def nvfp4(name, rng, divides, g, rows=16, width=64):
    codes = rng.integers(0, 16, (rows, width)).astype(np.uint8)
    s = np.abs(floats(rng, (rows, width // 16), E4M3).astype(F32)).astype(E4M3)
    g = F32(g)
    whole = s.astype(F32) / g if divides else s.astype(F32) * g
    packed, values = nibbles(codes).reshape(rows, -1), whole.repeat(16, 1) * E2M1[codes]
    if divides:
        tensors = {"m.weight_packed": packed, "m.weight_scale": s, "m.weight_global_scale": np.array([g], F32)}
        config = compressed("nvfp4-pack-quantized", {"num_bits": 4, "type": "float", "group_size": 16})
    else:
        tensors = {"m.weight": packed, "m.weight_scale": s, "m.weight_scale_2": np.array(g), "m.input_scale": np.array(F32(1))}
        config = {"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 16}
    write(name, config, tensors, values.astype(F32))


def mxfp4(name, rng, rows=16, width=64):
    codes = rng.integers(0, 16, (rows, width)).astype(np.uint8)
    e = rng.integers(100, 140, (rows, width // 32)).astype(np.uint8)
    # The format that is computed with has whole numbers for the codes, and so no zero below zero.
    values = np.ldexp(E2M1[codes] + F32(0), e.astype(int).repeat(32, 1) - 127).astype(F32)
    config = compressed("mxfp4-pack-quantized", {"num_bits": 4, "type": "float", "group_size": 32})
    write(name, config, {"m.weight_packed": nibbles(codes).reshape(rows, -1), "m.weight_scale": e}, values)


def bnb4(name, rng, kind, table, nested, rows=24, width=128, block=64):
    codes, n = rng.integers(0, 16, rows * width).astype(np.uint8), -(-rows * width // block)
    state = {"quant_type": kind, "blocksize": block, "dtype": "bfloat16", "shape": [rows, width]}
    table = np.array(table, F32)
    tensors = {"m.weight": nibbles(codes, False).reshape(-1, 1), "m.weight.quant_map": table}
    if nested:
        of, own = rng.integers(0, 256, n).astype(np.uint8), np.sort(rng.standard_normal(256)).astype(F32)
        outer, offset = scales(rng, -(-n // 16), F32), 0.0408
        state |= {"nested_blocksize": 16, "nested_dtype": "float32", "nested_offset": offset}
        tensors |= {"m.weight.absmax": of, "m.weight.nested_absmax": outer, "m.weight.nested_quant_map": own}
        absmax = own[of] * outer.repeat(16)[:n] + F32(offset)
    else:
        absmax = tensors["m.weight.absmax"] = scales(rng, n, F32)
    tensors[f"m.weight.quant_state.bitsandbytes__{kind}"] = np.frombuffer(json.dumps(state).encode(), np.uint8)
    config = {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": kind}
    write(name, config, tensors, table[codes] * absmax.repeat(block)[: rows * width])


def bnb8(name, rng, rows=16, width=48):
    q, s = rng.integers(-127, 128, (rows, width)).astype(np.int8), (rng.random(rows) * 0.3).astype(F32)
    values = q.astype(F32) * s[:, None] * F32(7.874015718698502e-3)
    tensors = {"m.weight": q, "m.SCB": s, "m.weight_format": np.array(0, np.uint8)}
    write(name, {"quant_method": "bitsandbytes", "load_in_8bit": True}, tensors, values)


def hqq(name, rng, bits, axis, group, rows=24, width=80):
    shape = (rows * width // group, group) if axis == 1 else (group, rows * width // group)
    q = rng.integers(0, 1 << bits, shape)
    of = (shape[0], 1) if axis == 1 else (1, shape[1])
    s, z = scales(rng, of, np.float16), (rng.random(of) * (1 << bits)).astype(np.float16)
    values = (q.astype(F32) - z.astype(F32)) * s.astype(F32)
    per = 10 if bits == 3 else 8 // bits
    planes = np.pad(q, [(0, -shape[0] % per), (0, 0)]).reshape(per, -1, shape[1])
    top = 27 if bits == 3 else 8 - bits
    packed = sum(plane << (top - bits * i) for i, plane in enumerate(planes)).astype(np.int32 if bits == 3 else np.uint8)
    tensors = {"m.W_q": packed, "m.scale": s, "m.zero": z, "m.shape": np.array([rows, width], np.int64)}
    numbers = {"nbits": bits, "group_size": group, "axis": axis}
    tensors |= {f"m.{key}": np.array(n, np.int32) for key, n in numbers.items()}
    packing = b"3bit_32" if bits == 3 else b"%dbit_u8" % bits
    tensors |= {"m.packing": np.frombuffer(packing, np.uint8), "m.view_as_float": np.array(0, np.uint8)}
    config = {"quant_method": "hqq", "quant_config": {"weight_quant_params": numbers}}
    write(name, config, tensors, values)


def main():
    rng = np.random.default_rng(20261129)
    gptq("gptq-symmetric", rng, 4, 64, None)
    gptq("gptq-zeros", rng, 4, 32, (0, 16))
    gptq("gptq-rows", rng, 4, -1, (1, 16), BF16)
    gptq("gptq-ordered", rng, 4, 32, None, ordered=True)
    gptq("gptq-groups-of-48", rng, 4, 48, (0, 16))
    gptq("gptq-f32-scales", rng, 4, 64, None, F32)
    gptq("gptq-8-bits", rng, 8, 64, None, version=2)
    gptq("gptq-8-bits-zeros", rng, 8, 64, (100, 200), version=2)
    gptq("gptq-2-bits", rng, 2, 64, (0, 4), version=2)
    awq("awq", rng, 64)
    packed_int("int4", rng, 4, 32, False, BF16)
    packed_int("int4-zeros", rng, 4, 64, True, np.float16)
    packed_int("int4-part-of-a-word", rng, 4, 20, True, F32, width=60)
    packed_int("int8-packed", rng, 8, None, False, BF16)
    int8("int8-rows", rng, (16, 1), BF16)
    int8("int8-f32-scales", rng, (16, 1), F32)
    int8("int8-whole", rng, (1,), BF16)
    all_fp8(rng)
    nvfp4("nvfp4", rng, False, 0.00037)
    nvfp4("nvfp4-divided", rng, True, 2700.0)
    nvfp4("nvfp4-power", rng, False, 2.0**-9)
    mxfp4("mxfp4", rng)
    bnb4("bnb-nf4", rng, "nf4", NF4, False)
    bnb4("bnb-nf4-nested", rng, "nf4", NF4, True)
    fp4 = [0.0, 0.0052083333, 0.66666667, 1.0, 0.33333333, 0.5, 0.16666667, 0.25]
    bnb4("bnb-fp4", rng, "fp4", fp4 + [-x for x in fp4], False, rows=5, width=100)
    bnb8("bnb-int8", rng)
    hqq("hqq-4-bits", rng, 4, 1, 40)
    hqq("hqq-3-bits", rng, 3, 1, 64)
    hqq("hqq-2-bits-down", rng, 2, 0, 16)
    hqq("hqq-8-bits", rng, 8, 1, 80)
    for model in ["gptq-ordered", "bnb-nf4-nested"]:
        (SEEDS / f"{model}.safetensors").write_bytes((OUT / model / "model.safetensors").read_bytes())


main()
