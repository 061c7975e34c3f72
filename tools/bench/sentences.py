"""Vectors of sentences by yirage beside others, on the same model and texts: sentences a second.

usage: sentences.py --yirage BIN [--threads 2] [--sentences 400] [--rounds 5] [--llama-embedding BIN --gguf FILE] MODEL_FOLDER

The sides run in turn. yirage and llama.cpp are whole processes, whose time for one sentence is taken off: what is left is
what the sentences cost. sentence-transformers stays loaded and encodes in batches of 32. Lengths are those of ordinary
sentences, 8 to 40 words. llama.cpp gets batches of 256 tokens, with which it is faster than with 512 and 2048. Also says how far
the vectors are apart.
"""
import argparse
import json
import os
import random
import statistics
import subprocess
import tempfile
import time

os.environ["HF_HUB_OFFLINE"] = "1"
WORDS = "the of and river stone a light morning house to garden in was letter long quiet road with she he open old".split()


def sentences(count):
    draw = random.Random(7)
    return [" ".join(draw.choice(WORDS) for _ in range(draw.randint(8, 40))) for _ in range(count)]


def timed(run):
    began = time.perf_counter()
    result = run()
    return time.perf_counter() - began, result


def yirage(options, texts):
    words = [word for text in texts for word in ("--text", text)]
    command = [options.yirage, "embed", "-m", options.model, "--json", "--quiet", "-t", str(options.threads), *words]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["embeddings"]


def llama(options, texts):
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(texts))
        file.flush()
        command = [options.llama_embedding, "-m", options.gguf, "-f", file.name, "-t", str(options.threads), "-c", "256",
                   "-b", "256", "-ub", "256", "--pooling", "mean", "--embd-output-format", "json", "--embd-normalize", "2"]
        out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [entry["embedding"] for entry in json.loads(out)["data"]]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--yirage", required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sentences", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--llama-embedding")
    parser.add_argument("--gguf")
    parser.add_argument("model")
    options = parser.parse_args()

    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(options.threads)
    encoder = SentenceTransformer(options.model, device="cpu")
    texts = sentences(options.sentences)
    sides = {"yirage": lambda few: yirage(options, few)}
    if options.llama_embedding:
        sides["llama.cpp"] = lambda few: llama(options, few)
    rates = {}
    vectors = {}
    for _ in range(options.rounds):
        for name, side in sides.items():
            one, _ = timed(lambda: side(texts[:1]))
            all_of_them, vectors[name] = timed(lambda: side(texts))
            rates.setdefault(name, []).append((len(texts) - 1) / (all_of_them - one))
        took, vectors["sentence-transformers"] = timed(lambda: encoder.encode(texts, batch_size=32, normalize_embeddings=True))
        rates.setdefault("sentence-transformers", []).append(len(texts) / took)
    print("| | sentences/s | lowest | highest | yirage over it | vectors apart |")
    print("|---|---|---|---|---|---|")
    for name, of in rates.items():
        ratio = statistics.median(ours / theirs for ours, theirs in zip(rates["yirage"], of))
        apart = max(abs(a - b) for ours, theirs in zip(vectors["yirage"], vectors[name]) for a, b in zip(ours, theirs))
        print(f"| {name} | {statistics.median(of):.0f} | {min(of):.0f} | {max(of):.0f} | {ratio:.2f} | {apart:.1e} |")


main()
