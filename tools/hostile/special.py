"""Files that are no files: pipes, devices, folders, circles of links, and files cut while they are mapped."""
import os

import base
from case import ANYTHING, REFUSED, UNCHANGED, Case, Closed, Family, Fifo, Folder, Link, Socket

RUN = ["run", "--prompt", "the cat", "-n", "2", "--json"]
PLAIN = ["run", "--prompt-ids", "1,104,105", "--temperature", "0", "--ignore-eos", "--json"]
KINDS = {"pipe": Fifo(), "zeros": Link("/dev/zero"), "random": Link("/dev/urandom"), "terminal": Link("/dev/tty"),
         "null": Link("/dev/null"),
         "full": Link("/dev/full"), "folder": Folder(), "socket": Socket(), "circle": Link("circle"),
         "nowhere": Link("no-such-file"),
         "closed": Closed(b"{}"), "memory": Link("/proc/self/mem"), "endless": Link("/proc/kmsg"), "empty": b"",
         "input": Link("/dev/stdin")}
# Kinds that are an error wherever a file has to be read.
NEVER = {"pipe", "zeros", "random", "folder", "socket", "circle", "memory", "full"}
PARTS = ["config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors", "generation_config.json",
         "chat_template.jinja",
         "model.safetensors.index.json", "special_tokens_map.json"]


def some(rng):
    name = rng.choice(list(KINDS))
    what = KINDS[name]
    return name, what


def part(rng, folder):
    """A part of a model's folder."""
    name, what = some(rng)
    victim = rng.choice(PARTS)
    files = {p: Link(str(folder / "llama" / p)) for p in PARTS[:4]}
    files[victim] = Link(victim) if name == "circle" else what
    needed = victim in PARTS[:4] and name in NEVER
    return Case(f"{name} as {victim}", [*RUN, "--model", "."], files, REFUSED if needed else ANYTHING,
                says=victim if needed else "")


def model(rng, _folder):
    name, what = some(rng)
    command = rng.choice([RUN, ["inspect"], ["tokenize", "--text", "a"]])
    files = {"m.gguf": Link("m.gguf") if name == "circle" else what}
    return Case(f"{name} as model", [*command, "--model", "m.gguf"], files, REFUSED)


def argument(rng, folder):
    """A file that an option names."""
    name, what = some(rng)
    model = ["--model", str(folder / "f32.gguf")]
    args = rng.choice([[*RUN, *model, "--config", "f"], ["config", "explain", "--config", "f"],
                       ["perplexity", *model, "--file", "f"],
                       ["run", *model, "--prompt-file", "f", "-n", "2"],
                       ["bench", *model, "-p", "4", "-n", "0", "-r", "1", "--compare", "f"],
                       [*RUN, *model, "--draft-model", "f", "--speculate", "draft"]])
    if name == "pipe" and args[0] in ("perplexity", "run") and "--config" not in args:
        # A text may come through a pipe: one that ends.
        what = Link("/dev/fd/0")
    return Case(f"{name} for {args[-2]} of {args[0]}", args, {"f": Link("f") if name == "circle" else what})


def conversation(rng, folder):
    name, what = some(rng)
    verb = rng.choice(["/load f", "/save f", "/save f\n/load f"])
    what = Link("f") if name == "circle" else what
    return Case(f"{verb.split()[0]} of a {name}", ["chat", "--model", str(folder / "f32.gguf"), "-n", "1"], {"f": what},
                stdin=f"{verb}\nthe cat\n".encode())


def default_configuration(rng, folder):
    name, what = some(rng)
    where = ".home/yirage/config.toml"
    return Case(f"{name} as configuration", [*RUN, "--model", str(folder / "f32.gguf")],
                {where: Link(where) if name == "circle" else what})


def kept_entry(rng, folder, work):
    """A special file instead of an entry of kept weights, or instead of their folder."""
    name, what = some(rng)
    entry = next(work.glob("*.packed")).name
    files = {f"kept/{entry}": Link(entry) if name == "circle" else what}
    if rng.random() < 0.4:
        files = {"kept": Link("kept") if name == "circle" else what}
    plain = [*PLAIN, "-n", "4", "--model", str(folder / "f32.gguf")]
    env = {"YIRAGE_WEIGHT_CACHE": None}
    if rng.random() < 0.3:
        verb = rng.choice(["verify", "clear", "list"])
        return Case(f"cache {verb} with a {name}", ["cache", verb, "--weight-cache-dir", "kept"], files, env=env)
    return Case(f"{name} among kept weights", [*plain, "--weight-cache", "--weight-cache-dir", "kept"], files,
                UNCHANGED, plain, env=env)


def foreign_entries(_rng, _folder):
    """`clear` and `verify` leave alone what is not theirs."""
    files = {"kept/notes.packed": b"not an entry", "kept/mine.txt": b"mine", "kept/0000.packed": b"",
             "kept/store.lock": b"",
             "kept/link.packed": Link("mine.txt")}
    shell = '"$@" >/dev/null 2>&1; [ "$(cat kept/notes.packed kept/mine.txt)" = "not an entrymine" ] && [ -L kept/link.packed ]'
    shell += ' || { echo "a file that is not ours is gone" >&2; exit 99; }'
    verb = _rng.choice(["clear", "verify"])
    return Case(f"cache {verb} beside files of others", ["cache", verb, "--weight-cache-dir", "kept"], files,
                shell=shell)


def truncate(path, length):
    """Cuts a file as soon as the program has begun to answer."""
    def cut(folder, running):
        running.wait_for_output()
        os.truncate(folder / path, length)
    return cut


def cut_model(rng, _folder):
    data = base.gguf(quantised=rng.random() < 0.5).encode()
    length = rng.choice([0, 4096, len(data) // 2])
    return Case(f"model cut to {length} bytes while it answers",
                ["run", "--model", "m.gguf", "--prompt", "the cat", "-n", "200", "--ignore-eos"],
                {"m.gguf": data}, during=truncate("m.gguf", length))


def cut_folder(rng, folder):
    files = {p: Link(str(folder / "llama" / p)) for p in PARTS[:3]}
    files["model.safetensors"] = base.safetensors(base.tensors_of("llama"))
    return Case("safetensors cut while they answer",
                ["run", "--model", ".", "--prompt", "the cat", "-n", "200", "--ignore-eos"], files,
                during=truncate("model.safetensors", rng.choice([0, 4096])))


def cut_entry(rng, folder, work):
    entry = next(work.glob("*.packed"))
    return Case("entry cut while it answers",
                ["run", "--prompt", "the cat", "-n", "200", "--ignore-eos", "--model", str(folder / "f32.gguf"),
                 "--weight-cache",
                                               "--weight-cache-dir", "kept"],
                {"kept": Folder(), f"kept/{entry.name}": entry.read_bytes()}, env={"YIRAGE_WEIGHT_CACHE": None},
                during=truncate(f"kept/{entry.name}", rng.choice([0, 4096, 8192])))


def hub_cache(rng, _folder):
    """Links and names in the folder of fetched models that lead out of it: `rm` removes nothing there."""
    repo = "hub/models--o--r"
    files = {"outside/precious.gguf": b"GGUF precious", "outside/deep/precious.gguf": b"GGUF precious", "hub": Folder()}
    match rng.randrange(5):
        case 0:
            files |= {f"{repo}/snapshots": Link("../../outside"), f"{repo}/refs/main": b"deep"}
        case 1:
            files |= {f"{repo}/snapshots/abc": Link("../../../outside"), f"{repo}/refs/main": b"abc"}
        case 2:
            files |= {repo: Link("../outside")}
        case 3:
            files |= {f"{repo}/snapshots/abc/precious.gguf": Link("../../../../outside/precious.gguf"),
                      f"{repo}/blobs": Link("../../outside")}
        case _:
            files |= {f"{repo}/snapshots/abc/sub": Link("../../../../outside"),
                      f"{repo}/refs/main": b"../../../outside"}
    args = rng.choice([["rm", "hf:o/r"], ["rm", "hf:o/r:precious"], ["list", "--json"], ["rm", "hf:o/r:precious.gguf"],
                       ["rm", "hf:../outside"]])
    shell = '"$@"; code=$?; cat outside/precious.gguf outside/deep/precious.gguf >/dev/null || { echo "a file outside the cache is gone" >&2; exit 99; }; '
    return Case(f"{args[0]} with links out of the cache", args, files, ANYTHING, shell=shell + "exit $code",
                env={"HF_HUB_CACHE": "hub"})


def hub_special(rng, _folder):
    name, what = some(rng)
    where = rng.choice(["refs/main", "blobs/e1", "snapshots", "snapshots/abc", "snapshots/abc/m-Q8_0.gguf", "blobs",
                        ".no_exist"])
    files = {f"hub/models--o--r/{where}": Link(where.split("/")[-1]) if name == "circle" else what}
    if where != "snapshots" and not where.startswith("snapshots/"):
        files["hub/models--o--r/snapshots/abc/m-Q8_0.gguf"] = base.gguf().encode()
    args = rng.choice([["list"], ["run", "--model", "hf:o/r", "-n", "1", "--prompt", "x", "--json"], ["rm", "hf:o/r"],
                       ["rm", "hf:o/r:q8_0"]])
    return Case(f"{name} as {where} of the cache, {args[0]}", args, files, env={"HF_HUB_CACHE": "hub"})


def names(rng, _folder):
    """Names with control characters, in listings and messages."""
    name = rng.choice(["\x1b[31mred.gguf", "a\rb.gguf", "\x07.gguf", "\u009b31m.gguf", "new\nline.gguf"])
    folder = f"hub/models--o--r/snapshots/abc/{name}"
    if rng.random() < 0.5:
        return Case("control characters in a cached name",
                    rng.choice([["list"], ["run", "--model", "hf:o/r", "--prompt", "x", "-n", "1", "--json"]]),
                    {folder: base.gguf().encode()}, env={"HF_HUB_CACHE": "hub"})
    data = rng.choice([b"GGUF", b"", base.gguf().encode()])
    return Case("control characters in a model's name",
                rng.choice([["inspect", "--model", name], [*RUN, "--model", name]]), {name: data})


MAKERS = [part, part, part, model, argument, argument, conversation, default_configuration, kept_entry,
          foreign_entries, cut_model,
          cut_folder, cut_entry, hub_cache, hub_cache, hub_special, names]
WITH_ENTRY = {kept_entry, cut_entry}


def prepare(folder, work, run_case):
    """An entry of kept weights for those who replace or cut it."""
    run_case(Case("keep weights",
                  [*PLAIN, "-n", "4", "--model", str(folder / "f32.gguf"), "--weight-cache", "--weight-cache-dir",
                   str(work)],
                  env={"YIRAGE_WEIGHT_CACHE": None}))


def make(rng, folder, work):
    maker = rng.choice(MAKERS)
    return maker(rng, folder, work) if maker in WITH_ENTRY else maker(rng, folder)


FAMILY = Family("special", 50, make, prepare)
