"""Our server beside llama.cpp's on the same file: many clients at once, and long prompts among short ones.

usage: servers.py --yirage BIN --llama-server BIN --model GGUF [--clients 8,16] [--rounds 5] [--threads 2]
                  [--max-step-ms N]

`yirage bench-serve` is the client of both. Both servers run all the time and are asked in turn; the prompts of a round are
the same for both, and others in each round. Medians over rounds; a ratio is that of the two sides of a round. The second
table has texts of some 60 tokens, every eighth of some 1,500; its inter-token times are those of all answers.
"""

import argparse
import json
import os
import random
import signal
import socket
import statistics
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

WORDS = ("the of and a to in he was that it his with for as had you not be her on at by which have or from this him but all "
         "she they were my are me one their so an said them we who would been will no when there if more out up into do any "
         "your what has man could other than our some very time upon about may its only now like little then can made should "
         "river stone house light garden morning window kettle ladder market engine forest signal winter candle bridge").split()
# (what a result is called, whether more is better)
SHOWN = [("output_throughput", True), ("total_token_throughput", True), ("p95_ttft_ms", False), ("p95_itl_ms", False),
         ("median_tpot_ms", False)]  # fmt: skip


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Server:
    """A server that is ready until the end of the block."""

    def __init__(self, words, log):
        self.url, self.words, self.log = f"http://127.0.0.1:{words[-1]}", words, log

    def __enter__(self):
        self.process = subprocess.Popen(self.words, stdout=self.log, stderr=self.log)
        until = time.monotonic() + 180
        while True:
            try:
                urllib.request.urlopen(f"{self.url}/health", timeout=5).read()
                return self
            except (urllib.error.URLError, OSError):
                if self.process.poll() is not None or time.monotonic() > until:
                    raise RuntimeError(f"{self.words[0]} does not answer; its log says why") from None
                time.sleep(0.2)

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)


def mixed(path, count, seed):
    """Texts of two lengths, in an order of their own."""
    rng = random.Random(seed)
    with open(path, "w") as file:
        for at in range(count):
            words = 1300 if at % 8 == 3 else 50
            text = " ".join(rng.choice(WORDS) for _ in range(words))
            print(json.dumps({"prompt": text, "output_tokens": 64}), file=file)


def measured(options, url, clients, seed, more):
    words = [options.yirage, "bench-serve", "--base-url", url, "--json", "--quiet", "--seed", seed, "--max-concurrency", clients,
             "--num-prompts", options.requests * clients, "--metric-percentiles", "50,95", "--num-warmups", 1,
             "--extra-body", '{"ignore_eos": true, "temperature": 0}', *more]
    done = subprocess.run(list(map(str, words)), stdout=subprocess.PIPE, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["failed"] == 0, found
    return found


def compare(options, sides, title, clients, prompts):
    rows = {name: [] for name in sides}
    for round_ in range(options.rounds):
        more = prompts(round_)
        for name, url in sides.items():
            rows[name].append(measured(options, url, clients, 1000 * clients + round_, more))
    print(f"\n{title}, {clients} clients\n\n| | yirage | llama.cpp | better by |\n|---|---|---|---|")
    ours, theirs = rows.values()
    for key, more_is_better in SHOWN:
        ratios = [(a[key] / b[key]) if more_is_better else (b[key] / a[key]) for a, b in zip(ours, theirs, strict=True)]
        middle = [statistics.median(run[key] for run in side) for side in (ours, theirs)]
        spread = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        print(f"| {key} | {middle[0]:.1f} | {middle[1]:.1f} | {spread} |", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--yirage", required=True)
    parser.add_argument("--llama-server", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--clients", default="8,16")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=2, help="requests of each client in a round")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--max-step-ms", type=int, help="of our server")
    options = parser.parse_args()
    clients = [int(text) for text in options.clients.split(",")]
    most, work = max(clients), Path(tempfile.mkdtemp(prefix="yirage-servers-"))
    ours = [options.yirage, "serve", options.model, "--threads", options.threads, "--context", 2048, "--max-seqs", most,
            "--kv-memory", 4, "--port", free_port()]
    if options.max_step_ms:
        ours[-2:-2] = ["--max-step-ms", options.max_step_ms]
    theirs = [options.llama_server, "--model", options.model, "--threads", options.threads, "--parallel", most, "--ctx-size",
              2048 * most, "--no-webui", "--port", free_port()]
    with open(work / "ours.log", "w") as log, open(work / "theirs.log", "w") as other:
        with Server(list(map(str, ours)), log) as a, Server(list(map(str, theirs)), other) as b:
            sides = {"yirage": a.url, "llama.cpp": b.url}
            lengths = ["--random-input-len", "128", "--random-output-len", "64"]
            for count in clients:
                compare(options, sides, "Prompts of 128 tokens, answers of 64", count, lambda _: lengths)
            for count in clients:
                file = work / "mixed.jsonl"

                def texts(round_, file=file, count=count):
                    mixed(file, options.requests * count, 1000 * count + round_)
                    return ["--dataset-name", "custom", "--dataset-path", str(file)]

                compare(options, sides, "Every eighth prompt long", count, texts)
    print(f"\nlogs: {os.fspath(work)}")


if __name__ == "__main__":
    main()
