"""What llama.cpp's samplers leave of rows of logits, beside their formulas in NumPy.

usage: sampler_cases.py LLAMA_CPP_DIR OUT_FILE      (needs numpy and g++)

LLAMA_CPP_DIR holds llama.cpp's sources and, in its folder objects, those of llama-sampler, llama-impl, llama-grammar,
llama-vocab, unicode, unicode-data and ggml compiled. The repository's file is
crates/yirage-engine/tests/golden/samplers.json. Each case has the stages with their arguments in order, a history of tokens,
rows of logits, and for each row the tokens that llama.cpp leaves with their logits (null is -infinity), and with mirostat
the token that it drew. Where the formulas below and llama.cpp do not agree, nothing is written.
"""
import glob
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

BUILD = "vendored by llama-cpp-python 0.3.36"


def softmax(logits):
    weights = np.exp(logits - logits.max())
    return weights / weights.sum()


def entropy(p):
    p = p[p > 0]
    return float(-(p * np.log(p)).sum())


class Left:
    """Tokens that are left: ids and logits, and the history."""

    def __init__(self, row, history):
        self.ids, self.logits = np.arange(len(row)), np.array(row, dtype=np.float64)
        self.history, self.vocabulary = history, len(row)

    def sort(self):
        order = np.lexsort((self.ids, -self.logits))
        self.take(order)

    def take(self, places):
        self.ids, self.logits = self.ids[places], self.logits[places]


def penalties(left, repetition, frequency, presence):
    for token in set(left.history):
        at = np.where(left.ids == token)[0]
        if len(at) == 0:
            continue
        x = left.logits[at[0]]
        x = x * repetition if x <= 0 else x / repetition
        left.logits[at[0]] = x - left.history.count(token) * frequency - presence


def dry(left, multiplier, base, allowed, last_n, breakers):
    last = left.history[-last_n:] if last_n < len(left.history) else left.history
    if len(last) <= allowed:
        return
    limit = len(last)
    for end in range(len(last) - 1, -1, -1):
        behind = len(last) - 1 - end
        fits = [len(b) - 1 for b in breakers if last[end:end + len(b)] == b]
        if fits:
            limit = behind - max(fits)
            break
    if limit < allowed:
        return
    longest = {}
    for end in range(len(last) - 1):
        length = 0
        while length <= end and last[end - length] == last[len(last) - 1 - length]:
            length += 1
        length = min(length, limit)
        if length >= allowed:
            longest[last[end + 1]] = max(length, longest.get(last[end + 1], 0))
    # As far as an f32 goes.
    most = int(88.7228391 / np.log(base)) if base > 1.000001 else 0
    single = {b[0] for b in breakers if len(b) == 1}
    for token, length in longest.items():
        if token not in single:
            exponent = min(length - allowed, most) if most else length - allowed
            left.logits[left.ids == token] -= multiplier * base ** exponent


def top_n_sigma(left, n):
    finite = left.logits[np.isfinite(left.logits)]
    left.logits[left.logits < finite.max() - n * finite.std()] = -np.inf


def top_k(left, k):
    left.sort()
    left.take(slice(0, k))


def typ_p(left, p):
    left.sort()
    probabilities = softmax(left.logits)
    with np.errstate(divide="ignore"):
        surprise = np.abs(-np.log(probabilities) - entropy(probabilities))
    order = np.argsort(surprise, kind="stable")
    reached = np.cumsum(probabilities[order])
    over = np.where(reached > p)[0]
    left.take(order[: over[0] + 1] if len(over) else order)


def top_p(left, p):
    left.sort()
    reached = np.where(np.cumsum(softmax(left.logits)) >= p)[0]
    left.take(slice(0, reached[0] + 1 if len(reached) else None))


def min_p(left, p):
    left.take(left.logits >= left.logits.max() + np.log(p))


def xtc(left, probability, threshold):
    assert probability in (0, 1)
    if probability == 0 or threshold > 0.5 or len(left.ids) < 2:
        return
    left.sort()
    above = int((softmax(left.logits) >= threshold).sum())
    left.take(slice(max(above - 1, 0), None))


def temperature(left, t, spread, exponent):
    if spread > 0 and len(left.ids) < 2:
        return
    if spread > 0:
        share = entropy(softmax(left.logits)) / np.log(len(left.ids))
        low = max(0.0, t - spread)
        t = low + (t + spread - low) * share ** exponent
    if t <= 0:
        left.logits[np.arange(len(left.ids)) != left.logits.argmax()] = -np.inf
    else:
        left.logits /= t


class Mirostat:
    def __init__(self, version, tau, eta):
        self.version, self.tau, self.eta, self.limit = version, tau, eta, 2 * tau

    def __call__(self, left):
        left.sort()
        p = softmax(left.logits)
        if self.version == 1:
            steps = np.log(np.arange(2, 101) / np.arange(1, 100))[: len(p) - 1]
            falls = np.log(p[:-1] / p[1:])[:99]
            s = float((steps * falls).sum() / (steps * steps).sum())
            e = s - 1
            k = (e * 2 ** self.limit / (1 - left.vocabulary ** -e)) ** (1 / s)
            left.take(slice(0, max(int(k), 1)))
        else:
            left.take(slice(0, max(int((-np.log2(p) <= self.limit).sum()), 1)))

    def drew(self, left, token):
        p = float(softmax(left.logits)[left.ids == token][0])
        self.limit -= self.eta * (-np.log2(p) - self.tau)


FORMULAS = dict(penalties=penalties, dry=dry, top_n_sigma=top_n_sigma, top_k=top_k, typ_p=typ_p, top_p=top_p,
                min_p=min_p, xtc=xtc, temperature=temperature)


def words_of(stage):
    name, *arguments = stage
    if name == "dry":
        *numbers, breakers = arguments
        arguments = numbers + [len(breakers)] + [x for b in breakers for x in [len(b), *b]]
    return " ".join(map(str, [name, *arguments]))


def by_llama(tool, case):
    rows, history = case["rows"], case["history"]
    lines = [f"{len(rows[0])} {len(rows)} {len(history)} {len(case['stages'])}", " ".join(map(str, history))]
    lines += [words_of(stage) for stage in case["stages"]] + [" ".join(map(str, row)) for row in rows]
    run = subprocess.run([tool], input="\n".join(lines), check=True, capture_output=True, text=True)
    expected = []
    for line in run.stdout.splitlines():
        selected, *pairs = line.split()
        left = sorted((int(i), float(x)) for i, x in zip(pairs[::2], pairs[1::2]))
        row = dict(tokens=[i for i, _ in left], logits=[None if x == -np.inf else x for _, x in left])
        expected.append(row | (dict(selected=int(selected)) if int(selected) >= 0 else {}))
    return expected


def agree(case, expected):
    stages = [(name, Mirostat(1 + (name == "mirostat_v2"), *a) if name.startswith("mirostat") else (FORMULAS[name], a))
              for name, *a in case["stages"]]
    for row, wanted in zip(case["rows"], expected):
        left = Left(row, case["history"])
        for _, stage in stages:
            stage(left) if isinstance(stage, Mirostat) else stage[0](left, *stage[1])
        if isinstance(stages[-1][1], Mirostat):
            stages[-1][1].drew(left, wanted["selected"])
        order = np.argsort(left.ids)
        logits = [-np.inf if x is None else x for x in wanted["logits"]]
        assert left.ids[order].tolist() == wanted["tokens"], (case["stages"], left.ids[order], wanted["tokens"])
        same = np.isclose(left.logits[order], logits, rtol=1e-5, atol=1e-5)
        assert same.all(), (case["stages"], left.logits[order], logits)


def cases(rng):
    def rows(count=1, vocabulary=48, spread=3.0):
        return np.round(rng.normal(0, spread, (count, vocabulary)), 3).tolist()

    def case(*stages, history=(), rows_=None):
        return dict(stages=[list(stage) for stage in stages], history=list(history), rows=rows_ or rows())

    said = [3, 9, 4, 7, 7, 3, 9, 4, 1, 3, 9, 4]
    random = rng.integers(0, 4, 60).tolist()
    for k in (1, 7, 48):
        yield case(("top_k", k))
    for p in (0.05, 0.5, 0.9, 0.999):
        yield case(("top_p", p))
        yield case(("typ_p", p))
    for p in (0.01, 0.1, 1.0):
        yield case(("min_p", p))
    for n in (0.5, 1.0, 3.0):
        yield case(("top_n_sigma", n))
        yield case(("top_n_sigma", n), ("top_p", 0.8))
    for threshold in (0.01, 0.1, 0.3, 0.6):
        yield case(("xtc", 1, threshold))
        yield case(("top_k", 20), ("xtc", 1, threshold))
    yield case(("xtc", 0, 0.05))
    for t, spread, exponent in ((0.7, 0, 1), (0, 0, 1), (0.8, 0.5, 1), (1.0, 1.0, 2.5), (0.3, 0.6, 0.5)):
        yield case(("temperature", t, spread, exponent))
        yield case(("top_n_sigma", 1.5), ("temperature", t, spread, exponent))
    for repetition, frequency, presence in ((1.3, 0, 0), (0.7, 0.2, 0.5), (1, -0.4, 1.1)):
        yield case(("penalties", repetition, frequency, presence), history=said)
    for allowed in (0, 1, 2, 3, 5):
        for breakers in ([], [[4]], [[9, 4]], [[7], [3, 9, 4, 5]]):
            yield case(("dry", 0.8, 1.75, allowed, 64, breakers), history=said)
            yield case(("dry", 2.5, 1.1, allowed, 17, breakers), history=random)
    yield case(("dry", 1.0, 1.0, 2, 4096, []), history=said * 20)
    yield case(("dry", 0.5, 3.0, 1, 4096, [[0]]), history=[5, 6] * 120)
    for version in ("mirostat", "mirostat_v2"):
        for tau, eta in ((5.0, 0.1), (2.0, 0.5), (0.5, 1.0)):
            # As frequent as words are, which the first version supposes.
            zipf = [[round(float(x), 3) for x in np.round(-1.1 * np.log(1 + rng.permutation(200)) + rng.normal(0, 0.2, 200), 3)]
                    for _ in range(8)]
            yield case(("temperature", 0.9, 0, 1), (version, tau, eta), rows_=zipf)
    # llama.cpp's typ_p makes NaN of tokens of probability 0, so none are left to it by top_n_sigma here.
    for sigma in (4.0, 4.0, 6.0, 6.0):
        default = [("penalties", 1.2, 0.1, 0.1), ("dry", 0.8, 1.75, 2, 64, [[7]]), ("top_n_sigma", sigma), ("top_k", 30),
                   ("typ_p", 0.95), ("top_p", 0.95), ("min_p", 0.02), ("xtc", 1, 0.12), ("temperature", 0.8, 0.3, 1.2)]
        if sigma > 5:
            rng.shuffle(default)
        yield case(*default, history=said)


def compile_tool(llama, folder):
    tool, here = os.path.join(folder, "llama_samplers"), os.path.dirname(os.path.abspath(__file__))
    linked = glob.glob(os.path.join(llama, "objects", "*.o"))
    # What loads models is not linked, and nothing here calls it.
    subprocess.run(["g++", "-O1", "-std=c++17", os.path.join(here, "llama_samplers.cpp"), f"-I{llama}/include",
                    f"-I{llama}/ggml/include", f"-I{llama}/src", "-static", *linked, "-Wl,--unresolved-symbols=ignore-all", "-lm",
                    "-o", tool], check=True)
    return tool


def main(llama, out):
    with tempfile.TemporaryDirectory() as folder:
        tool = compile_tool(os.path.abspath(llama), folder)
        made = []
        for case in cases(np.random.default_rng(52)):
            expected = by_llama(tool, case)
            agree(case, expected)
            made.append(case | dict(expected=expected))
    with open(out, "w") as f:
        f.write(json.dumps(dict(llamacpp=BUILD, cases=made)).replace('}, {"stages"', '},\n{"stages"') + "\n")
    print(len(made), "cases agree")


if __name__ == "__main__":
    main(*sys.argv[1:])
