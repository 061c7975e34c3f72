"""Strange command lines, surroundings and limits."""
import os

from case import ANYTHING, REFUSED, UNCHANGED, UNCHANGED_OR_REFUSED, Case, Family

BAD = os.fsdecode(b"\xff\xfe\x80")
NUMBERS = ["-1", "0", "4294967295", "4294967296", "9223372036854775807", "18446744073709551615",
           "18446744073709551616", "1e3", "nan",
           "inf", "-inf", "1e309", "0x10", "", " 1", "1 ", "\u0661", "1,2", "x", BAD, "\x1b[31m", "1" * 5000]
RUN = ["run", "--prompt", "the cat", "-n", "2"]
PLAIN = ["run", "--prompt-ids", "1,104,105", "-n", "4", "--temperature", "0", "--json"]
# Options that take a number, with a command that knows them.
NUMERIC = {option: RUN
           for option in ("--threads", "-c", "--context", "--chunk", "--max-tokens", "--temperature", "--top-k",
                          "--top-p", "--min-p",
                                      "--repetition-penalty", "--presence-penalty", "--frequency-penalty", "--seed",
                                      "--draft-max",
                                      "--device", "--weight-cache-limit")}
NUMERIC |= {option: ["bench", "-r", "1", "-p", "4", "-n", "2"]
            for option in ("-p", "-n", "-d", "-b", "-r", "-t", "-pg", "--sequences")}
NUMERIC |= {"--top": ["logits", "--ids", "1,2"], "--ids": ["logits"], "--positions": ["logits", "--ids", "1,2"]}
LIMITS = ["ulimit -v %d" % (kib << 10) for kib in (20, 40, 60, 80, 100, 150, 200, 400, 800)]
LIMITS += ["ulimit -f %d" % blocks for blocks in (0, 1, 8, 64)] + ["ulimit -n %d" % n for n in (3, 4, 8, 16)]
LIMITS += ["ulimit -s %d" % kib for kib in (64, 256, 1024)] + ["ulimit -t 1", "ulimit -c 0"]


def number(rng, model):
    option = rng.choice(list(NUMERIC))
    value = rng.choice(NUMBERS)
    return Case(f"{option} {value!r:.40}", [*NUMERIC[option], "--model", model, option, value])


def heavy(rng, model):
    args = rng.choice([["run", "--prompt", "x", "-n", "2", "--threads", "100000"],
                       ["run", "--prompt", "x", "-n", "2", "--threads", "5000"],
                       ["run", "--prompt", "x", "-n", "2", "-c", "67108864"],
                       ["run", "--prompt", "x", "-n", "2", "-c", "4294967295"],
                       ["bench", "--sequences", "4096", "-d", "4000", "-p", "0", "-n", "1", "-r", "1"],
                       ["bench", "--sequences", "1000000", "-p", "0", "-n", "1", "-r", "1"],
                       ["bench", "-p", "100000", "-n", "0", "-r", "1"],
                       ["bench", "-p", "4294967295", "-n", "0", "-r", "1"],
                       ["bench", "-p", "0", "-n", "1", "-d", "1000000", "-r", "1"],
                       ["bench", "-p", "4", "-n", "0", "-b", "1000000000", "-r", "1"],
                       ["run", "--prompt", "x", "-n", "2", "--chunk", "1000000000"],
                       ["run", "--prompt", "x", "-n", "2", "--draft-max", "4000000000"],
                       ["logits", "--ids", "1," * 60_000 + "1"],
                       ["logits", "--ids", "1," * 300 + "1", "--all", "--positions", "all"],
                       ["tokenize", "--text", "a" * 100_000, "--json"], ["run", "--prompt", "x " * 30_000, "-n", "2"],
                       ["run", "--prompt", "x", "-n", "1", *["--stop", "y"] * 5000],
                       ["run", "--prompt", "x", "-n", "1", "--stop", ""],
                       ["bench", "-t", "1,2,100000", "-p", "4", "-n", "0", "-r", "1"],
                       ["bench", "-p", "4", "-n", "0", "-r", "1000000000"],
                       ["run", "--prompt", "x", "-n", "2", "-c", "1000000", "--threads", "1024"]])
    # So many runs take long because they are asked for; that the option is taken is what is seen here.
    shell = 'timeout -s INT 3 "$@"; code=$?; [ $code = 124 ] && exit 0; [ $code = 130 ] && exit 0; exit $code'
    endless = "1000000000" in args and "-r" in args
    return Case(" ".join(args)[:70], [*args, "--model", model], shell=shell if endless else None)


def letters(rng, model):
    place = rng.randrange(6)
    args = [[*RUN, "--model", BAD], ["run", "--model", model, "--prompt", BAD, "-n", "1"], [BAD],
            [*RUN, "--model", model, "--" + BAD],
            ["tokenize", "--model", model, "--text", BAD], ["rm", BAD]][place]
    return Case(f"bytes that are no UTF-8, {place}", args)


def variable(rng, model):
    name = rng.choice(["YIRAGE_MAX_TOKENS", "YIRAGE_THREADS", "YIRAGE_SEED", "YIRAGE_MODEL", "YIRAGE_CPU_ISA",
                       "YIRAGE_TEMPERATURE", "OMP_NUM_THREADS",
                       "YIRAGE_NO_SUCH", "HF_ENDPOINT", "HF_HUB_CACHE", "HF_TOKEN", "HF_HUB_OFFLINE",
                       "YIRAGE_WEIGHT_CACHE_DIR", "XDG_CACHE_HOME",
                       "RUST_LOG", "LANG", "YIRAGE_MODELS", "YIRAGE_CONFIG", "YIRAGE_CONTEXT", "YIRAGE_KV_TYPE"])
    value = rng.choice([BAD, "x", "-1", "999999999999999999999", "\x1b[31m", "", "a" * 50_000, "1,2", "nan"])
    return Case(f"{name}={value!r:.30}", [*RUN, "--model", model], env={name: value})


def homeless(rng, model):
    gone = {name: None for name in ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "HF_HOME")}
    if rng.random() < 0.3:
        gone["HOME"] = rng.choice(["", "relative", "/dev/null", "/proc/self", BAD])
    args, allow = rng.choice([([*RUN, "--model", model], ANYTHING), (["list"], ANYTHING),
                              (["pull", "hf:o/r"], REFUSED), (["run", "-n", "1"], ANYTHING),
                              (["rm", "hf:o/r"], REFUSED), (["cache", "list"], ANYTHING), (["doctor"], ANYTHING),
                              (["chat", "--model", model], ANYTHING),
                              ([*RUN, "--model", model, "--weight-cache"], ANYTHING)])
    return Case(f"without a home: {args[0]}", args, allow=allow, env=gone | {"YIRAGE_WEIGHT_CACHE": None})


def output(rng, model):
    shell, allow = rng.choice([('exec "$@" >&-', REFUSED), ('exec "$@" >/dev/full', REFUSED),
                               ('exec "$@" 2>&-', ANYTHING), ('exec "$@" <&-', ANYTHING),
                               ('exec "$@" 2>/dev/full', ANYTHING), ('exec "$@" <&- >&- 2>/dev/null; exit 0', ANYTHING),
                               # 141 is how the manual says that it ends then.
                               ('set -o pipefail; "$@" | true; code=$?; [ $code = 141 ] && exit 0; exit $code', ANYTHING)])
    args = rng.choice([[*RUN, "--model", model], ["inspect", "--model", model], ["list"], ["devices"],
                       ["completions", "bash"], ["--help"], ["--version"],
                       ["tokenize", "--model", model, "--text", "the cat"],
                       ["logits", "--model", model, "--ids", "1,2"], ["config", "explain"],
                       ["bench", "--model", model, "-p", "4", "-n", "2", "-r", "1"],
                       ["perplexity", "--model", model, "--ids", "1,2,3"], ["cache", "list"]])
    if args == RUN + ["--model", model] and ">&-" in shell and "2>&-" not in shell:
        args = [*args, "--quiet"]
    return Case(f"{shell} {args[0]}", args, allow=allow, shell=shell, mute="2>" in shell)


def limited(rng, model):
    limit = rng.choice(LIMITS)
    kept = ["--weight-cache", "--weight-cache-dir", "kept"] if "-f" in limit or rng.random() < 0.3 else []
    # A shell whose own limit is too low for the program cannot start it: that is no finding about the program.
    shell = f'{limit} || exit 2; "$@"; code=$?; [ $code = 126 ] || [ $code = 127 ] && {{ echo "not started" >&2; exit 2; }}; exit $code'
    plain = [*PLAIN, "--model", model]
    # Weights that cannot be kept are no reason to fail.
    allow = UNCHANGED if "-f" in limit and "-f 0" not in limit else UNCHANGED_OR_REFUSED
    return Case(f"{limit}{' and kept weights' if kept else ''}", [*plain, *kept], allow=allow, like=plain, shell=shell,
                mute="-f 0" in limit)


def usage(rng, model):
    args = rng.choice([["--no-such"], [], ["nonsense"], ["run", "--model"],
                       ["run", "--model", model, "--prompt", "a", "--prompt-ids", "1"],
                       ["run", "--model", model, "--prompt", "a", "--prompt-file", "b"],
                       ["tokenize", "--model", model], ["logits", "--model", model],
                       ["tokenize", "--model", model, "--text", "a", "--ids", "1"], ["perplexity", "--model", model],
                       ["run", "--quiet", "--quiet", "--quiet=7"],
                       ["logits", "--model", model, "--ids", "99999999"],
                       ["run", "--model", model, "--isa", "nonsense"],
                       ["run", "--model", model, "--backend", "\x1b[31m"],
                       ["run", "--model", "no-such-\x1b[2J\x07.gguf"], ["cache", "nonsense"],
                       ["config"], ["rm"], ["rm", "../../etc"], ["rm", "hf:../.."], ["rm", "hf:a/.."], ["rm", "/etc"],
                       ["pull", "hf:"], ["pull", "hf:a"],
                       ["pull", "hf:a/b/c"], ["pull", "hf:\x1b/b"], ["completions", "cmd"],
                       ["bench", "--model", model, "-o", "xml"],
                       ["run", "--model", model, "--chat-template", "\x1b[31m", "--prompt", "x"],
                       ["run", "--model", "https://x.invalid/m.gguf"],
                       ["run", "--model", ""], ["run", "--model", "."], ["run", "--model", "/"],
                       ["inspect", "--model", "/dev/null"]])
    return Case("usage: " + " ".join(args)[:60], args, allow=ANYTHING if args == [] else REFUSED)


MAKERS = [number, number, number, heavy, heavy, letters, variable, variable, homeless, output, output, limited,
          limited, usage, usage]


def make(rng, folder, _work):
    return rng.choice(MAKERS)(rng, str(folder / rng.choice(["f32.gguf", "q8.gguf"])))


FAMILY = Family("commandline", 150, make)
