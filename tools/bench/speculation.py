"""Measures what guessing tokens gains where texts repeat, and loses where they do not.

usage: speculation.py --yirage BIN [--rounds 5] [--threads 2] [--generate 160] [--draft MODEL] [--out FILE] MODEL...

Each round runs every text of every model once with `--speculate off` and once with each way of guessing, in turn, greedy.
The tokens of all ways must be equal. Figures are medians of decode tokens/s; the gain is the median of the rounds'
ratios, so that a machine that becomes faster or slower between rounds does not count. Prints the table of
docs/benchmarks/speculation.md. Needs Python alone; the models should have a chat template.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

CODE = '''class Account:
    """A bank account with an owner and a balance."""

    def __init__(self, owner, balance=0):
        self.owner = owner
        self.balance = balance
        self.history = []

    def deposit(self, amount):
        if amount <= 0:
            raise ValueError("amount must be positive")
        self.balance += amount
        self.history.append(("deposit", amount))

    def withdraw(self, amount):
        if amount <= 0:
            raise ValueError("amount must be positive")
        if amount > self.balance:
            raise ValueError("insufficient funds")
        self.balance -= amount
        self.history.append(("withdraw", amount))

    def transfer(self, other, amount):
        self.withdraw(amount)
        other.deposit(amount)
        self.history.append(("transfer", amount))
'''

TEXTS = {
    "repeat a passage": f"Repeat the following code exactly, without changes and without explanation:\n\n{CODE}",
    "edit code": f"Rename the attribute `balance` to `funds` everywhere in this code. Print the whole new code and nothing else:\n\n{CODE}",
    "tell a story": "Write a story about a lighthouse keeper who finds a whale on the beach. Use vivid, unusual words.",
    "random words": "Invent forty strange words that do not exist, none like another, each with a short meaning.",
}


def run(args, model, text, options):
    command = [args.yirage, "run", "-m", model, "-p", text, "-n", str(args.generate), "--temperature", "0", "--ignore-eos",
               "-t", str(args.threads), "--json", "--quiet", *options]
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode != 0:
        sys.exit(f"{' '.join(command)[:200]} failed:\n{ran.stderr[-2000:]}")
    return json.loads(ran.stdout)


def ways(args):
    yield "lookup", ["--speculate", "lookup"]
    if args.draft:
        yield "draft", ["--speculate", "draft", "--draft-model", args.draft]
        yield "auto", ["--speculate", "auto", "--draft-model", args.draft]


def measure(args, model, text):
    rounds = []
    for turn in range(args.rounds):
        plain = run(args, model, text, ["--speculate", "off"])
        speed = plain["timings"]["decode_tokens_per_second"]
        result = {"off": {"speed": speed, "gain": 1.0}}
        for name, options in ways(args):
            guessed = run(args, model, text, options)
            if guessed["tokens"] != plain["tokens"]:
                sys.exit(f"{model}: {name} gives other tokens")
            timings = guessed["timings"]
            result[name] = {"speed": timings["decode_tokens_per_second"], **timings}
            result[name]["gain"] = timings["decode_tokens_per_second"] / speed
        rounds.append(result)
        said = ", ".join(f"{name} {r['speed']:.1f}" for name, r in result.items())
        print(f"{os.path.basename(model)}: round {turn + 1} of {args.rounds}: {said}", file=sys.stderr)
    return rounds


def main():
    parser = argparse.ArgumentParser(usage=__doc__, add_help=False)
    parser.add_argument("--yirage", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--generate", type=int, default=160)
    parser.add_argument("--draft")
    parser.add_argument("--out")
    parser.add_argument("models", nargs="+")
    args = parser.parse_args()
    print("| model | text | way | tokens/s | gain | lowest | guessed | right | verifying steps | own estimate |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    everything = {}
    for model in args.models:
        for title, text in TEXTS.items():
            rounds = measure(args, model, text)
            everything[f"{os.path.basename(model)}: {title}"] = rounds
            for name in rounds[0]:
                of = [r[name] for r in rounds]
                middle = lambda key: statistics.median(x.get(key) or 0 for x in of)
                row = [os.path.basename(model), title, name, f"{middle('speed'):.1f}", f"{middle('gain'):.2f}",
                       f"{min(x['gain'] for x in of):.2f}"]
                row += [f"{middle(key):.0f}" for key in ("drafted", "accepted", "verified_steps")]
                row += [f"{middle('speculation_gain'):.2f}" if name != "off" else ""]
                print("| " + " | ".join(row) + " |", flush=True)
    if args.out:
        with open(args.out, "w") as file:
            json.dump(everything, file, indent=1)


if __name__ == "__main__":
    main()
