"""The graphs of Mirage's benchmarks: yirage beside torch eager and torch.compile, in turns.

usage: graphs.py --yirage BIN [--rounds 7] [--threads 2] [--batch 1,16] [--dtype f32,bf16,f16] [--json FILE] [WORKLOAD...]

Every round times each of them once, each in a process of its own that stays loaded and waits for its turn: a machine that
becomes faster or slower counts for all, and which goes first changes with each round. yirage is `bench-graph --paced`; a
round of torch is as long as one of yirage and gives the median of its steps too. A figure is the median of the rounds, a
ratio the median of the rounds' ratios, torch's time divided by yirage's: above 1, yirage is faster.

Weights and inputs have the same shapes and kinds of numbers. What torch may do best it does: no gradients, and torch.compile
with frozen weights, which it repacks, and max-autotune. `any type` compares with the fastest of torch's types of no more bytes
an element than yirage's, and of eager and compile.

Prints the table of docs/benchmarks/compiler.md. Needs Python, torch of PyPI, and a C++ compiler for torch.compile. Run it
when nothing else runs.
"""
import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time

# As yirage's rounds: bench_graph/timed.rs.
ROUND, WARM_UP = 0.06, 0.2
# Between turns: threads of the one before still spin.
REST = 0.02
BYTES = {"f32": 4, "bf16": 2, "f16": 2}


class Stopped(Exception):
    """A process that gave no figure, with what it said."""


class Process:
    """A process that times one round for each line, and answers with a line of JSON."""

    def __init__(self, command):
        self.command, self.said = command, tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.said, text=True
        )

    def round(self):
        time.sleep(REST)
        try:
            self.process.stdin.write("\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        line = self.process.stdout.readline()
        while line and not line.startswith("{"):
            line = self.process.stdout.readline()
        if not line:
            self.said.seek(0)
            raise Stopped(f"{' '.join(self.command)}: {self.said.read()[-2000:]}")
        return json.loads(line)

    def end(self):
        if self.process.poll() is None:
            self.process.stdin.close()
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.wait()


def workloads(torch, batch):
    """For each workload its function, the shapes it takes, and how many of the last ones are weights: those of
    yirage-graph/src/workloads."""
    norm = lambda x: torch.nn.functional.rms_norm(x, (x.shape[-1],), eps=0.0)

    def attention(q, k, v):
        e = torch.exp(q @ k)
        return (e / e.sum(2, keepdim=True)) @ v

    def qknorm(q, k, v):
        return attention(norm(q), k, norm(v))

    def lora(x, w, a, b):
        return x @ w + (x @ a) @ b

    def gated_mlp(x, w1, w2):
        return torch.nn.functional.silu(x @ w1) * (x @ w2)

    def norm_transformer(h, x, alpha):
        return norm(x + alpha * (norm(h) + x))

    heads = lambda n, queries: [(n, queries, 64), (n, 64, 4096), (n, 4096, 64)]
    square, rows = (4096, 4096), 8 * batch
    return {
        "group_query_attention": (attention, heads(2 * batch, 256), 0),
        "qknorm_gqa": (qknorm, heads(2 * batch, 256), 0),
        "rmsnorm": (lambda x, w: norm(x) @ w, [(2 * batch, 4096), (4096, 6144)], 1),
        "lora": (lora, [(16 * batch, 256), (256, 4096), (256, 16), (16, 4096)], 3),
        "gated_mlp": (gated_mlp, [(rows, 4096), square, square], 2),
        "norm_transformer": (norm_transformer, [(rows, 4096)] * 3, 0),
        "moe": (lambda x, a, b: torch.exp(x @ a) @ b, [(8, rows, 4096), (8, *square), (8, *square)], 2),
        "multi_head_attention": (attention, heads(32 * batch, 16), 0),
        "multi_query_attention": (attention, heads(batch, 1024), 0),
    }


def serve(name, batch, dtype, threads, how):
    """Torch's process: one round for each line of standard input."""
    import torch

    torch.set_num_threads(threads)
    torch.manual_seed(1)
    kind = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}[dtype]
    function, shapes, weights = workloads(torch, batch)[name]

    def numbers(shape):
        scale = 2.0 ** (-7 - int(math.log2(shape[-2])) // 2)
        return ((2 * torch.randint(0, 128, shape, dtype=torch.int16) - 127).to(torch.float32) * scale).to(kind)

    class Frozen(torch.nn.Module):
        """The function with its weights, which torch.compile may repack."""

        def __init__(self, weights):
            super().__init__()
            self.weights = torch.nn.ParameterList(torch.nn.Parameter(w, requires_grad=False) for w in weights)

        def forward(self, *inputs):
            return function(*inputs, *self.weights)

    with torch.no_grad():
        numbered = [numbers(shape) for shape in shapes]
        split = len(shapes) - weights
        inputs, call = numbered[:split], Frozen(numbered[split:]).eval()
        if how == "compile":
            import torch._inductor.config as inductor

            inductor.freezing = True
            call = torch.compile(call, mode="max-autotune", fullgraph=True, dynamic=False)

        def steps(seconds):
            call(*inputs)
            times, began = [], time.perf_counter()
            while True:
                before = time.perf_counter()
                call(*inputs)
                after = time.perf_counter()
                times.append(after - before)
                if after - began >= seconds:
                    return sorted(times)[len(times) // 2]

        steps(WARM_UP)
        for _ in sys.stdin:
            print(json.dumps({"seconds": steps(ROUND)}), flush=True)


def processes(arguments, name, batch, dtype):
    here = [sys.executable, os.path.abspath(__file__), "--serve"]
    torch = lambda how: [*here, how, "--threads", str(arguments.threads), "--batch", str(batch), "--dtype", dtype, name]
    ours = [arguments.yirage, "bench-graph", name, "--batch", str(batch), "--dtype", dtype, "--threads"]
    ours += [str(arguments.threads), "--paced", "--json", "--quiet"]
    return {"yirage": Process(ours), "eager": Process(torch("eager")), "compile": Process(torch("compile"))}


def measured(arguments, name, batch, dtype):
    """The rounds of one workload: for each round what each process said. A process that fails is left out, and says why."""
    of = processes(arguments, name, batch, dtype)
    try:
        for who in list(of):
            try:
                of[who].round()
            except Stopped as why:
                print(f"{name} batch {batch} {dtype}: {who} is left out: {why}", file=sys.stderr)
                of.pop(who).end()
        rounds = []
        for number in range(arguments.rounds):
            order = list(of) if number % 2 == 0 else list(of)[::-1]
            rounds.append({who: of[who].round() for who in order})
        return rounds
    finally:
        for process in of.values():
            process.end()


def middle(figures):
    return statistics.median(figures)


def summary(name, batch, dtype, rounds):
    """One row: times, ratios by round, and the share of the limit."""
    times = {who: [r[who]["seconds"] for r in rounds] for who in rounds[0]}
    row = {"workload": name, "batch": batch, "dtype": dtype, "seconds": {who: middle(t) for who, t in times.items()}}
    if "yirage" not in times:
        return row
    ours = [r["yirage"] for r in rounds]
    row["ratios"] = {w: middle([a / b for a, b in zip(times[w], times["yirage"])]) for w in times if w != "yirage"}
    row["kernels"], row["unfused_kernels"] = len(ours[0]["kernels"]), ours[0]["unfused_kernels"]
    row["fused"] = middle([o["unfused_seconds"] / o["seconds"] for o in ours])
    row["bound"] = ours[0]["bound"]
    for key in ("limit_seconds", "share"):
        row[key] = middle([o[key] for o in ours]) if ours[0][key] is not None else None
    return row


def any_type(rows):
    """Torch's fastest of any way and type of no more bytes, divided by yirage's time."""
    for row in rows:
        alike = lambda o: (o["workload"], o["batch"]) == (row["workload"], row["batch"])
        small = [o for o in rows if alike(o) and BYTES[o["dtype"]] <= BYTES[row["dtype"]]]
        best = [(s, f"{who} {o['dtype']}") for o in small for who, s in o["seconds"].items() if who != "yirage"]
        if best and "ratios" in row:
            seconds, what = min(best)
            row["any_type"], row["best"] = seconds / row["seconds"]["yirage"], what


def table(rows):
    micros = lambda s: f"{s * 1e6:,.0f}" if s is not None else "-"
    ratio = lambda r: f"{r:.2f}" if r is not None else "-"
    head = ["workload", "batch", "type", "yirage µs", "eager µs", "compile µs", "eager", "compile", "any type", "limit µs",
            "share of limit", "kernels, unfused", "unfused time"]
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for row in rows:
        seconds, ratios = row["seconds"], row.get("ratios", {})
        best = f"{ratio(row.get('any_type'))} ({row['best']})" if "best" in row else "-"
        limit = f"{micros(row.get('limit_seconds'))} ({row.get('bound')})" if row.get("limit_seconds") else "-"
        cells = [row["workload"], row["batch"], row["dtype"], *(micros(seconds.get(w)) for w in ("yirage", "eager", "compile")),
                 ratio(ratios.get("eager")), ratio(ratios.get("compile")), best, limit, ratio(row.get("share")),
                 f"{row.get('kernels', '-')}, {row.get('unfused_kernels', '-')}", ratio(row.get("fused"))]
        print("| " + " | ".join(map(str, cells)) + " |")
    print()
    for dtype in dict.fromkeys(row["dtype"] for row in rows):
        of = [row for row in rows if row["dtype"] == dtype and "ratios" in row]
        for what, figures in {
            "eager": [row["ratios"]["eager"] for row in of if "eager" in row["ratios"]],
            "compile": [row["ratios"]["compile"] for row in of if "compile" in row["ratios"]],
            "the best of any type of no more bytes": [row["any_type"] for row in of if "any_type" in row],
        }.items():
            if figures:
                print(f"- {dtype}: {statistics.geometric_mean(figures):.2f} x {what} (geometric mean of {len(figures)}), "
                      f"at least {min(figures):.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--yirage")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", default="1")
    parser.add_argument("--dtype", default="f32,bf16,f16")
    parser.add_argument("--json", help="file for the rows and rounds")
    parser.add_argument("--serve", choices=["eager", "compile"], help=argparse.SUPPRESS)
    parser.add_argument("workloads", nargs="*")
    arguments = parser.parse_args()
    if arguments.serve:
        return serve(arguments.workloads[0], int(arguments.batch), arguments.dtype, arguments.threads, arguments.serve)
    if not arguments.yirage:
        parser.error("--yirage BIN is needed")
    listed = subprocess.run([arguments.yirage, "bench-graph", "--list", "--json"], capture_output=True, text=True, check=True)
    names = arguments.workloads or [json.loads(line)["workload"] for line in listed.stdout.splitlines()]
    rows, everything = [], []
    for name in names:
        for batch in map(int, arguments.batch.split(",")):
            for dtype in arguments.dtype.split(","):
                rounds = measured(arguments, name, batch, dtype)
                row = summary(name, batch, dtype, rounds)
                print(json.dumps(row), file=sys.stderr, flush=True)
                rows.append(row)
                everything.append({**row, "rounds": rounds})
                if arguments.json:
                    with open(arguments.json, "w") as file:
                        json.dump(everything, file)
    any_type(rows)
    table(rows)


if __name__ == "__main__":
    main()
