"""Whether a search that ran beside busy processes chose and kept what is slower than its input once nothing else runs.

usage: search_under_load.py [--runs 20] [--busy 2] [--dtype float32] [--budget N] [--time-limit SECONDS] [--scale 1]
                            [--rounds 15] [--json FILE] [WORKLOAD...]

Each run searches each workload in a process and with a folder of kept results of its own, while `--busy` processes compute.
When all runs have ended these are stopped, and each choice is timed in a new process in turns with its input: it is slower
where the median of the pairs' ratios is above 1.03 and its shortest call is longer than the input's. Ends with 1 where a
choice is slower.

The workloads are Mirage's six (yirage-graph/src/workloads) at their full widths; `--scale 8` divides these by eight, for a try.
`--time-limit 10` ends each search after about so many seconds, with what it has by then: 120 of them take half an hour. Ctrl-C,
or `--minutes`, ends the runs, and what they chose is timed all the same. Run it with an interpreter that has the package and
NumPy, where nothing else runs.
"""

import argparse
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

SLOWER = 1.03
# Seconds that one side of a pair is called for at least.
SIDE = 0.02


def attention(g, q, k, v):
    e = g.exp(g.matmul(q, k))
    return g.matmul(g.div(e, g.reduction(e, 2)), v)


def lora(g, x, w, a, b):
    return g.add(g.matmul(x, w), g.matmul(g.matmul(x, a), b))


def norm_transformer(g, h, x, alpha):
    width = [x.dims[-1]]
    return g.rms_norm(g.add(x, g.mul(alpha, g.add(g.rms_norm(h, width), x))), width)


def qknorm(g, q, k, v):
    return attention(g, g.rms_norm(q, [q.dims[-1]]), k, g.rms_norm(v, [v.dims[-1]]))


def workloads(scale):
    """For each workload its operations and the shapes that it takes."""
    n = 4096 // scale
    heads = [(2, 256, 64), (2, 64, n), (2, n, 64)]
    return {
        "group_query_attention": (attention, heads),
        "qknorm_gqa": (qknorm, heads),
        "rmsnorm": (lambda g, x, w: g.matmul(g.rms_norm(x, [n]), w), [(2, n), (n, 6144 // scale)]),
        "lora": (lora, [(16, 256), (256, n), (256, 16), (16, n)]),
        "gated_mlp": (lambda g, x, a, b: g.mul(g.silu(g.matmul(x, a)), g.matmul(x, b)), [(8, n), (n, n), (n, n)]),
        "norm_transformer": (norm_transformer, [(8, n)] * 3),
    }


def search(options, name, into):
    """Searches one workload, writes both graphs, and prints what came of it."""
    import yirage as yr

    op, shapes = workloads(options.scale)[name]
    graph = yr.new_kernel_graph(backend="cpu")
    graph.mark_output(op(graph, *[graph.new_input(list(shape), dtype=options.dtype) for shape in shapes]))
    began = time.perf_counter()
    limits = {"budget": options.budget, "time_limit": options.time_limit}
    found = graph.superoptimize(**{name: value for name, value in limits.items() if value is not None})
    took = time.perf_counter() - began
    into = pathlib.Path(into)
    graph.to_json(into / "input.json")
    found.to_json(into / "found.json")
    told = found.why().split("search:\n")[1].splitlines()
    print(json.dumps({"seconds": took, "taken": any("chosen: " in line for line in told), "told": told}))


def timed(options, name, folder):
    """Times both graphs of a folder in turns, and prints the ratio and both shortest calls."""
    import numpy as np

    import yirage as yr

    rng, shapes = np.random.default_rng(1), workloads(options.scale)[name][1]
    inputs = [(rng.standard_normal(shape) / 16).astype(options.dtype) for shape in shapes]

    def loaded(file):
        graph = yr.new_kernel_graph(backend="cpu")
        graph.from_json(pathlib.Path(folder) / file)
        graph(inputs=inputs)
        return graph

    def side(graph):
        steps, until = [], time.perf_counter() + SIDE
        while not steps or time.perf_counter() < until:
            began = time.perf_counter()
            graph(inputs=inputs)
            steps.append(time.perf_counter() - began)
        return statistics.median(steps), min(steps)

    graphs = [loaded("input.json"), loaded("found.json")]
    sides = [[], []]
    for number in range(options.rounds):
        for which in (0, 1) if number % 2 == 0 else (1, 0):
            sides[which].append(side(graphs[which]))
    ratio = statistics.median(found[0] / given[0] for given, found in zip(*sides))
    print(json.dumps({"ratio": ratio, "shortest": [min(low for _, low in one) for one in sides]}))


def child(options, *arguments, **environment):
    command = [sys.executable, os.path.abspath(__file__), "--dtype", options.dtype, "--scale", str(options.scale)]
    command += ["--rounds", str(options.rounds)]
    for name, value in [("--budget", options.budget), ("--time-limit", options.time_limit)]:
        command += [] if value is None else [name, str(value)]
    done = subprocess.run([*command, *arguments], env=os.environ | environment, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(arguments)}: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


@contextlib.contextmanager
def busy(count):
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def under_load(options, names, folder):
    """What each run of each workload came to: of all runs, or of those before Ctrl-C or the end of the time."""
    found, began = [], time.monotonic()
    turns = [(number, name) for number in range(options.runs) for name in names]
    with busy(options.busy), contextlib.suppress(KeyboardInterrupt):
        for number, name in turns:
            passed = (time.monotonic() - began) / 60
            if options.minutes is not None and passed >= options.minutes:
                print(f"{len(found)} of {len(turns)} searches in {passed:.0f} minutes", file=sys.stderr)
                break
            into = pathlib.Path(folder) / f"{number}-{name}"
            into.mkdir()
            # Results are kept in a folder beside that of models.
            one = child(options, "--search", name, str(into), HF_HUB_CACHE=str(into / "hub"))
            one |= {"run": number, "workload": name, "kept": any(into.glob("**/*.tuned")), "folder": str(into)}
            found.append(one)
            what = "taken" if one["taken"] else "the input stays"
            where = "kept on disk" if one["kept"] else "not kept on disk"
            left = (time.monotonic() - began) / 60 * (len(turns) / len(found) - 1)
            print(f"run {number}, {name}: {one['seconds']:.1f} s, {what}, {where}; {left:.0f} minutes to go", file=sys.stderr)
    return found


def report(names, found):
    print("| workload | runs | taken | kept on disk | taken and kept | ratio of what was taken | slower | slower and kept |")
    print("|---|---|---|---|---|---|---|---|")
    for name in names:
        runs = [one for one in found if one["workload"] == name]
        taken = [one for one in runs if one["taken"]]
        both = [one for one in taken if one["kept"]]
        ratios = [one["quiet"]["ratio"] for one in taken]
        span = f"{min(ratios):.2f} to {max(ratios):.2f}" if ratios else "–"
        slower = [one for one in taken if one["slower"]]
        counts = [len(runs), len(taken), sum(one["kept"] for one in runs), len(both)]
        cells = [name, *map(str, counts), span, str(len(slower)), str(sum(one["kept"] for one in slower))]
        print("| " + " | ".join(cells) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD")
    for name, usual in [("runs", 20), ("busy", 2), ("scale", 1), ("rounds", 15), ("budget", None)]:
        parser.add_argument(f"--{name}", type=int, default=usual)
    for name in ("time-limit", "minutes"):
        parser.add_argument(f"--{name}", type=float)
    parser.add_argument("--dtype", default="float32", choices=["float32", "float16"])
    parser.add_argument("--json")
    parser.add_argument("--search", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--time", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.search:
        return search(options, *options.search)
    if options.time:
        return timed(options, *options.time)
    known = list(workloads(1))
    names = options.workloads or known
    if unknown := [name for name in names if name not in known]:
        parser.error(f"{', '.join(unknown)}: workloads are {', '.join(known)}")
    with tempfile.TemporaryDirectory() as folder:
        found = under_load(options, names, folder)
        for one in found:
            if not one["taken"]:
                continue
            one["quiet"] = quiet = child(options, "--time", one["workload"], one["folder"])
            given, own = quiet["shortest"]
            one["slower"] = quiet["ratio"] > SLOWER and own > given
    report(names, found)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(found, indent=1))
    return 1 if any(one.get("slower") for one in found) else 0


if __name__ == "__main__":
    sys.exit(main())
