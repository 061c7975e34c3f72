"""A second opinion on the tiny GGUF models: logits by llama.cpp.

usage: llama_logits.py LLAMA_CPP_DIR TINY_GGUF_DIR

LLAMA_CPP_DIR holds llama.cpp's sources and its shared libraries in build/bin (release b11434 made the committed
files). For each folder of TINY_GGUF_DIR (`model.gguf`, `golden.json` of make_tiny.py) writes `llamacpp.json`: for each
case of the golden file all logits of the last position, and the argmax of every position. llama.cpp multiplies F16
weights with activations rounded to F16, MXFP4 weights with int8 blocks; cache and everything else are f32.
"""
import json
import os
import subprocess
import sys
import tempfile

BUILD = "b11434"


def compile_tool(llama, folder, libraries=None):
    tool = os.path.join(folder, "llama_logits")
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "llama_logits.cpp")
    libraries = libraries or os.path.join(llama, "build", "bin")
    found = {n.split(".")[0]: n for n in os.listdir(libraries) if n.endswith(".so")}
    linked = [os.path.join(libraries, found[name]) for name in ("libllama", "libggml", "libggml-base")]
    subprocess.run(["g++", "-O1", "-std=c++17", source, f"-I{llama}/include", f"-I{llama}/ggml/include",
                    *linked, f"-Wl,-rpath,{libraries}", f'-DLIBRARIES="{libraries}"', "-o", tool],
                   check=True)
    return tool


def logits(tool, model, vocabulary, ids):
    run = subprocess.run([tool, model, str(vocabulary), *map(str, ids)], check=True, capture_output=True, text=True)
    rows = [[float(x) for x in line.split()] for line in run.stdout.splitlines()]
    assert len(rows) == len(ids) and all(len(r) == vocabulary for r in rows), (model, len(rows))
    return rows


def main(llama, tiny):
    with tempfile.TemporaryDirectory() as folder:
        tool = compile_tool(os.path.abspath(llama), folder)
        for name in sorted(os.listdir(tiny)):
            path = os.path.join(tiny, name)
            with open(os.path.join(path, "golden.json")) as f:
                golden = json.load(f)
            cases = []
            for case in golden["cases"]:
                rows = logits(tool, os.path.join(path, "model.gguf"), len(case["last_logits"]), case["ids"])
                argmax = [max(range(len(r)), key=lambda i: (r[i], -i)) for r in rows]
                cases.append({"last_logits": rows[-1], "argmax_each_pos": argmax})
                worst = max(abs(a - b) for a, b in zip(rows[-1], case["last_logits"]))
                print(name, len(case["ids"]), "ids: worst", worst, "of std", case["std"])
            with open(os.path.join(path, "llamacpp.json"), "w") as f:
                json.dump({"llamacpp": BUILD, "cases": cases}, f)
                f.write("\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
