"""Damaged entries of kept weights: the answer is the unharmed one, whatever lies on disk."""
from case import UNCHANGED, Case, Family, Folder

ASK = ["--prompt-ids", "1,104,105,260,270,280", "--temperature", "0", "--ignore-eos", "--json"]


def run(folder, model, tokens):
    return ["run", "--model", str(folder / model), *ASK, "-n", str(tokens)]


def prepare(folder, work, run_case):
    """Has the program keep weights of both models, each in a folder of its own."""
    for model in ("f32.gguf", "q8.gguf"):
        place = work / model
        place.mkdir()
        made = Case("keep weights", [*run(folder, model, 8), "--weight-cache", "--weight-cache-dir", str(place)],
                    env={"YIRAGE_WEIGHT_CACHE": None})
        ran = run_case(made)
        if ran.code != 0 or not list(place.glob("*.packed")):
            raise SystemExit(f"no weights were kept: {ran.err.decode()}")


def bits(rng, data):
    for _ in range(rng.choice([1, 1, 2, 16, 1000])):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def head(rng, data):
    for _ in range(rng.choice([1, 2, 8])):
        data[rng.randrange(min(len(data), 4096))] ^= 1 << rng.randrange(8)


def zeros(rng, data):
    span(rng, data, lambda n: bytes(n))


def ones(rng, data):
    span(rng, data, lambda n: b"\xff" * n)


def not_numbers(rng, data):
    span(rng, data, lambda n: (b"\x00\x00\xc0\x7f" * (n // 4 + 1))[:n], 4)


def small_not_numbers(rng, data):
    span(rng, data, lambda n: (b"\x00\x7e" * (n // 2 + 1))[:n], 2)


def random_bytes(rng, data):
    span(rng, data, rng.randbytes)


def span(rng, data, fill, align=1):
    length = min(rng.choice([1, 4, 64, 4096, 65_536]), len(data) - 1)
    at = rng.randrange(len(data) - length) // align * align
    data[at:at + length] = fill(length)


def swapped(rng, data):
    length = min(rng.choice([4, 64, 1024]), len(data) // 2)
    first, second = (rng.randrange(len(data) - length) for _ in range(2))
    data[first:first + length], data[second:second + length] = data[second:second + length], data[first:first + length]


def truncated(rng, data):
    del data[rng.choice([0, 1, 100, len(data) - 1, rng.randrange(len(data))]):]


def longer(rng, data):
    data += bytes(rng.choice([1, 4096, 10**6]))


def of_another(rng, data):
    data[:] = b""


MUTATIONS = [bits, bits, bits, head, head, zeros, zeros, ones, not_numbers, not_numbers, small_not_numbers,
             random_bytes, swapped,
             truncated, longer, of_another]


def make(rng, folder, work):
    model = rng.choice(["f32.gguf", "q8.gguf"])
    entry = next((work / model).glob("*.packed"))
    mutate = rng.choice(MUTATIONS)
    if mutate is of_another:
        # The other model's entry under this one's name.
        other = "f32.gguf" if model == "q8.gguf" else "q8.gguf"
        data = bytearray(next((work / other).glob("*.packed")).read_bytes())
    else:
        data = bytearray(entry.read_bytes())
        mutate(rng, data)
    files = {"kept": Folder(), f"kept/{entry.name}": bytes(data)}
    kept = ["--weight-cache", "--weight-cache-dir", "kept"]
    env = {"YIRAGE_WEIGHT_CACHE": None}
    if rng.random() < 0.1:
        verb = rng.choice(["verify", "list", "clear"])
        return Case(f"cache {verb}: {mutate.__name__}", ["cache", verb, *kept[1:], "--json"], files, env=env)
    plain = run(folder, model, rng.choice([1, 2, 4, 8, 48]))
    return Case(f"{mutate.__name__} ({model})", [*plain, *kept], files, UNCHANGED, plain, env=env)


FAMILY = Family("weights", 300, make, prepare)
