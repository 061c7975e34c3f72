//! Every option does something: a test for each, by its name. An option without one fails here.

use crate::bench_serve;
use crate::cache::Kept;
use crate::support::{self, Ran, path, yirage};
use crate::template::{named_templates, templated};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use yirage_testkit::json::floats;
use yirage_testkit::mtp::{MtpModel, MtpSight};
use yirage_testkit::{bedtime, tiny, vision};

/// An option's name, and a check of its effect on the small model.
type Effect = (&'static str, fn(&str));

/// Every option.
const EFFECTS: &[Effect] = &[
    ("config", config),
    ("json", |m| assert!(run(m, &["--json"]).out.starts_with("{\"model\""))),
    ("quiet", |m| assert!(run(m, &["--quiet"]).err.is_empty() && !run(m, &[]).err.is_empty())),
    ("verbose", |m| {
        let said = |more: &[&str]| yirage(&[&["devices"], more].concat()).ran().out;
        assert!(said(&["-v"]).contains("unavailable: ") && !run(m, &[]).err.contains("repacked"));
        assert!(!said(&[]).contains("unavailable: "));
    }),
    ("log-level", |m| assert!(debug(m, &[]).contains("DEBUG") && !run(m, &[]).err.contains("DEBUG"))),
    ("model", |m| assert_ne!(run(m, &[]).code, run("no/such.gguf", &[]).code)),
    ("models", models),
    ("python", |_| {
        assert!(yirage(&["pull", "--python", "no-such-python"]).ran().err.contains("no-such-python -m pip"))
    }),
    ("backend", |m| assert_eq!(run(m, &["--backend", "kunlun"]).code, 3)),
    ("device", |m| assert_eq!(run(m, &["--device", "7"]).code, 2)),
    ("threads", |m| {
        assert!(target(m, &["--threads", "1"]).ends_with("workers=1"));
        assert!(target(m, &["--threads", "3"]).ends_with("workers=3"));
    }),
    ("pp", |m| assert!(run(m, &["--pp", "2"]).err.contains("every one a process with some layers of the model"))),
    ("tp", |m| assert!(run(m, &["--tp", "2"]).err.contains("2 ranks of "))),
    ("ep", |_| {
        let mixture = tiny::model("mixtral").display().to_string();
        let ran =
            |more: &[&str]| yirage(&[&["run", "-m", &mixture, "--prompt-ids", "1,2", "-n", "2"], more].concat()).ran();
        let (one, two) = (ran(&[]), ran(&["--ep", "2"]));
        assert!(two.err.contains("2 ranks of ") && !one.err.contains("ranks of "), "{}", two.err);
        assert_eq!((one.code, &one.out), (0, &two.out), "{}", two.err);
    }),
    ("launch", |m| assert!(run(m, &["--launch", "mpi"]).err.contains("mpirun has not started this process"))),
    ("rank-time", |m| assert_eq!((run(m, &["--rank-time", "-1"]).code, run(m, &["--rank-time", "9"]).code), (2, 0))),
    ("keep-stalled", |m| {
        let two = |more: &[&str]| debug(m, &[&["--threads", "2"], more].concat());
        assert!(two(&["--keep-stalled"]).contains("kept: it was asked for") && !two(&[]).contains("asked for"));
    }),
    ("isa", |m| assert!(target(m, &["--isa", "scalar"]).contains("/scalar ") && !target(m, &[]).contains("/scalar "))),
    ("variant", |m| {
        let said =
            |choices: &str| yirage(&["doctor", "--tune", "--model", m, "--variant", choices, "--json", "-q"]).json();
        let variant = &said("piece=32K")["model"]["variant"];
        assert!(variant["choices"].as_str().unwrap().contains("piece=32K"), "{variant}");
        assert_eq!(variant["why"], "it was asked for");
        assert_eq!(greedy(m, &["--variant", "share=static"]), greedy(m, &["--variant", "share=drained"]));
        let explained =
            |more: &[&str]| yirage(&[&["explain", m, "--json", "-q"], more].concat()).json()["variant"].clone();
        let told = explained(&["--variant", "piece=32K"]);
        assert!(told.as_str().unwrap().contains("piece=32K") && told.as_str().unwrap().ends_with("(it was asked for)"));
        assert_eq!(explained(&["--variant", "piece=32K", "--measure"]), told);
        let small = yirage(&["explain", m, "--variant", "group=1"]).ran();
        assert!(small.code == 2 && small.err.contains("group=1: 4K to"), "{}", small.err);
        let refused = run(m, &["--variant", "shore=static"]);
        assert!(refused.code != 0 && refused.err.contains("`shore` is none of"), "{}", refused.err);
    }),
    ("tune", |m| {
        let said = yirage(&["doctor", "--tune", "--model", m, "--json", "-q"]).json();
        // Caches hold all of the small model's weights, which tell nothing of memory.
        assert_eq!(said["model"]["variant"]["why"], "the device's own for this processor", "{said}");
        let refused = yirage(&["doctor", "--tune"]).ran();
        assert!(refused.code == 2 && refused.err.contains("--tune: which model's products"), "{}", refused.err);
    }),
    ("full", |m| {
        let err = |more: &[&str]| yirage(&[&["doctor", "--model", m][..], more].concat()).ran().err;
        assert!(err(&["--tune", "--full"]).contains("measured by every variant, which takes minutes"));
        assert!(
            !err(&["--tune"]).contains("minutes") && err(&["--full"]).contains("--full does nothing without --tune")
        );
    }),
    ("precision", precision),
    ("kv-type", kv_type),
    ("executor", |m| {
        let chosen = |more: &[&str]| answer(m, more)["executors"][0].clone();
        let forced = chosen(&["--executor", "persistent"]);
        assert_eq!((&forced["executor"], &forced["why"]), (&"persistent".into(), &"forced".into()));
        assert_eq!(greedy(m, &["--executor", "persistent"]), greedy(m, &["--executor", "steps"]));
        let refused = run(m, &["--executor", "replay"]);
        assert!(refused.code != 0 && refused.err.contains("the executor `replay` is not supported"), "{}", refused.err);
    }),
    ("context", context),
    ("chunk", |m| {
        let most = |chunk| answer(m, &["-n", "1", "--chunk", chunk])["executors"][2]["tokens"].as_u64();
        assert_eq!([most("16"), most("256")], [Some(16), Some(256)]);
    }),
    ("prefix-cache", prefix_cache),
    ("weight-cache", |m| {
        let kept = Kept::new();
        assert_eq!(kept.run(m, &["--no-weight-cache"]).ran().code, 0);
        assert_eq!(kept.entries().len(), 0);
    }),
    ("weight-cache-dir", |m| {
        let kept = Kept::new();
        assert_eq!(kept.run(m, &[]).ran().code, 0);
        assert_eq!(kept.entries().len(), 1);
    }),
    ("weight-cache-limit", |m| {
        let kept = Kept::new();
        let ran = kept.run(m, &["--weight-cache-limit", "0.0001"]).ran();
        assert!(ran.code == 0 && ran.err.contains("exceed the limit of 107374"), "{}", ran.err);
    }),
    ("prompt", |m| assert_ne!(prompt(m, &["--prompt", "a"]), prompt(m, &["--prompt", "b"]))),
    ("prompt-file", prompt_file),
    ("image", image),
    ("prompt-cache", |_| crate::prompt_cache::kept()),
    ("prompt-cache-ro", |_| crate::prompt_cache::read_only()),
    ("prompt-ids", |m| assert_eq!(prompt(m, &["--prompt-ids", "1,400,7"]), serde_json::json!([1, 400, 7]))),
    ("system", system),
    ("raw", raw),
    ("chat-template", chat_template),
    ("max-tokens", |m| assert_eq!(tokens(m, &["--max-tokens", "3"]).len(), 3)),
    ("temperature", |m| assert_ne!(tokens(m, &["--temperature", "5", "--top-k", "0", "--min-p", "0"]), greedy(m, &[]))),
    ("top-k", |m| assert_eq!(hot(m, &["--top-k", "1"]), greedy(m, &[]))),
    ("top-p", |m| assert_eq!(hot(m, &["--top-p", "0.000001"]), greedy(m, &[]))),
    ("min-p", |m| assert_eq!(hot(m, &["--min-p", "1"]), greedy(m, &[]))),
    ("repetition-penalty", |m| assert_ne!(greedy(m, &["--repetition-penalty", "3"]), greedy(m, &[]))),
    ("presence-penalty", |m| assert_ne!(greedy(m, &["--presence-penalty", "2"]), greedy(m, &[]))),
    ("frequency-penalty", |m| assert_ne!(greedy(m, &["--frequency-penalty", "2"]), greedy(m, &[]))),
    ("samplers", |_| crate::samplers::order()),
    ("dry-multiplier", |_| crate::samplers::dry()),
    ("dry-base", |_| crate::samplers::dry_parts()),
    ("dry-allowed-length", |_| crate::samplers::dry_parts()),
    ("dry-penalty-last-n", |_| crate::samplers::dry_parts()),
    ("dry-sequence-breaker", |_| crate::samplers::dry_parts()),
    ("xtc-probability", |_| crate::samplers::xtc()),
    ("xtc-threshold", |_| crate::samplers::xtc()),
    ("typical", |_| crate::samplers::limits()),
    ("top-nsigma", |_| crate::samplers::limits()),
    ("dynatemp-range", |_| crate::samplers::dynamic_temperature()),
    ("dynatemp-exp", |_| crate::samplers::dynamic_temperature()),
    ("mirostat", |_| crate::samplers::mirostat()),
    ("mirostat-lr", |_| crate::samplers::mirostat()),
    ("mirostat-ent", |_| crate::samplers::mirostat()),
    ("seed", |m| {
        seed(m);
        bench_serve::seed();
    }),
    ("stop", stop),
    ("speculate", speculate),
    ("draft-model", draft_model),
    ("draft-max", draft_max),
    ("lora", |_| crate::lora::beside()),
    ("lora-scaled", |_| crate::lora::scaled()),
    ("lora-merge", |_| crate::lora::merged()),
    ("lora-modules", |_| crate::lora::modules()),
    ("lora-path", |_| crate::lora::loaded()),
    ("ignore-eos", |m| {
        ignore_eos(m);
        bench_serve::ignore_eos();
    }),
    ("ids", |m| assert_ne!(logits(m, &["--ids", "1,2"]), logits(m, &["--ids", "1,3"]))),
    ("top", |m| assert_eq!(logits(m, &["--top", "4"])[0]["top"].as_array().unwrap().len(), 4)),
    ("all", |m| assert_eq!(logits(m, &["--all"])[0]["top"].as_array().unwrap().len(), 512)),
    ("positions", |m| assert_eq!(logits(m, &["--positions", "all"]).as_array().unwrap().len(), 4)),
    ("file", file),
    ("text", |m| assert_ne!(tokenized(m, &["--text", "a"]), tokenized(m, &["--text", "b"]))),
    ("query", |_| crate::encoders::query()),
    ("instruction", |_| crate::encoders::instruction()),
    ("prompt-name", |_| crate::encoders::prompt_name()),
    ("pooling", |_| crate::encoders::pooling()),
    ("normalize", |_| crate::encoders::normalize()),
    ("truncate", |_| crate::encoders::truncate()),
    ("decode", |m| assert_eq!(tokenize(m, &["--decode", "--ids", "1,377,321,341"])["text"], "In the")),
    ("special", |m| {
        assert_eq!(tokenized(m, &["--text", "a"]).len(), 1 + tokenized(m, &["--text", "a", "--no-special"]).len())
    }),
    ("parse-special", |m| {
        let ids = |flag| tokenized(m, &["--text", "a<s>", flag]);
        assert!(ids("--parse-special").ends_with(&[1]) && ids("--no-parse-special").len() > 3);
    }),
    ("n-prompt", |m| assert_eq!(tests(m, &["-p", "8,16", "-n", "0"]), [(8, 0, 0, 1), (16, 0, 0, 1)])),
    ("n-gen", |m| assert_eq!(tests(m, &["-p", "0", "-n", "3", "-n", "2"]), [(0, 3, 0, 1), (0, 2, 0, 1)])),
    ("pg", |m| {
        assert_eq!(tests(m, &["-p", "0", "-n", "0", "-pg", "8,2", "--pg", "4,3"]), [(8, 2, 0, 1), (4, 3, 0, 1)])
    }),
    ("devices", |m| {
        let scale = |n: &str| yirage(&["scale", "-m", m, "--devices", n, "-n", "2", "-r", "1", "--json"]).ran();
        let (one, two) = (scale("1"), scale("2"));
        assert!(one.out.contains("\"ranks\":1,") && two.out.contains("\"ranks\":2,"), "{} {}", one.err, two.err);
    }),
    ("fleet", |m| {
        let file = path(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/benchmarks/fleets/h200-nodes.json"));
        let ran = yirage(&["scale", "-m", m, "--fleet", &file]).ran();
        assert!(ran.code == 0 && ran.out.contains("nodes of 8 H200") && ran.out.contains("| 1024 |"), "{}", ran.err);
    }),
    ("n-depth", |m| assert_eq!(tests(m, &["-p", "0", "-n", "2", "-d", "0,40"]), [(0, 2, 0, 1), (0, 2, 40, 1)])),
    ("sequences", |m| {
        assert_eq!(tests(m, &["-p", "0", "-n", "2", "--sequences", "1,3"]), [(0, 2, 0, 1), (0, 2, 0, 3)])
    }),
    ("batch-size", |m| {
        let rows = bench(m, &["-p", "40", "-n", "0", "-b", "16,64"]);
        let steps = rows.iter().map(|r| r["step_ops"].as_f64().unwrap());
        let [few, many] = steps.collect::<Vec<_>>()[..] else { panic!("{rows:?}") };
        assert!(many > 2.5 * few && rows[0]["n_batch"] == 16, "three steps and one: {few}, {many}");
    }),
    ("repetitions", |m| {
        assert_eq!(bench(m, &["-p", "8", "-n", "0", "-r", "4"])[0]["samples_ns"].as_array().unwrap().len(), 4)
    }),
    ("output", |m| {
        let first = |o: &str| yirage(&["bench", "-m", m, "-p", "8", "-n", "0", "-r", "1", "-o", o]).ran().out;
        assert!(first("md").starts_with("| model |") && first("csv").starts_with("\"build_commit\","));
        assert!(first("json").starts_with("[\n") && first("jsonl").starts_with("{\"build_commit\""));
    }),
    ("compare", crate::bench::compare),
    ("roofline", |_| {
        let said = |more: &[&str]| yirage(&[&["doctor", "--json", "-q"], more].concat()).json();
        assert!(said(&[])["roofline"].is_null() && said(&["--roofline"])["roofline"].is_array());
    }),
    ("measure", |_| crate::backend::measure()),
    ("tokens", |_| crate::explain::tokens()),
    ("seqs", |_| crate::explain::seqs()),
    ("host", |_| crate::serve::host()),
    ("port", |_| crate::serve::port()),
    ("served-model-name", |_| crate::serve::served_model_name()),
    ("api-key-file", |_| crate::serve::api_key_file()),
    ("tls-cert", |_| crate::serve::tls()),
    ("tls-key", |_| crate::serve::tls()),
    ("insecure", |_| crate::serve::insecure()),
    ("allowed-host", |_| crate::serve::allowed_host()),
    ("allowed-origin", |_| crate::serve::allowed_origin()),
    ("max-seqs", |_| crate::serve::max_seqs()),
    ("max-queued", |_| crate::serve::max_queued()),
    ("max-queued-tokens", |_| crate::serve::max_queued_tokens()),
    ("max-step-ms", |_| crate::serve::max_step_ms()),
    ("kv-memory", |_| crate::serve::kv_memory()),
    ("models-memory", |_| crate::serve::models_memory()),
    ("slot-save-path", |_| crate::serve::slot_save_path()),
    ("prefill-server", |_| crate::serve::prefill_server()),
    ("prefill-least", |_| crate::serve::prefill_least()),
    ("prefill-key-file", |_| crate::serve::prefill_key_file()),
    ("idle-unload", |_| crate::serve::idle_unload()),
    ("request-time", |_| {
        crate::serve::request_time();
        bench_serve::request_time();
    }),
    ("drain-time", |_| crate::serve::drain_time()),
    ("health-time", |_| crate::route::health_time()),
    ("affinity-slack", |_| crate::route::affinity_slack()),
    ("stuck-after", |_| crate::serve::stuck_after()),
    ("endpoint-type", |_| bench_serve::interface()),
    ("base-url", |_| bench_serve::base_url()),
    ("endpoint", |_| bench_serve::endpoint()),
    ("request-model", |_| bench_serve::model()),
    ("header", |_| bench_serve::header()),
    ("key-file", |_| bench_serve::key_file()),
    ("extra-body", |_| bench_serve::extra_body()),
    ("dataset-name", |_| bench_serve::dataset()),
    ("dataset-path", |_| bench_serve::dataset()),
    ("custom-output-len", |_| bench_serve::dataset()),
    ("num-prompts", |_| bench_serve::counts()),
    ("num-warmups", |_| bench_serve::counts()),
    ("random-input-len", |_| bench_serve::lengths()),
    ("random-output-len", |_| bench_serve::lengths()),
    ("random-prefix-len", |_| bench_serve::lengths()),
    ("random-range-ratio", |_| bench_serve::lengths()),
    ("request-rate", |_| bench_serve::request_rate()),
    ("burstiness", |_| bench_serve::burstiness()),
    ("max-concurrency", |_| bench_serve::max_concurrency()),
    ("ready-check-timeout-sec", |_| bench_serve::ready_check()),
    ("percentile-metrics", |_| bench_serve::shown()),
    ("metric-percentiles", |_| bench_serve::shown()),
    ("goodput", |_| bench_serve::goodput()),
    ("save-result", |_| bench_serve::saved()),
    ("save-detailed", |_| bench_serve::saved()),
    ("append-result", |_| bench_serve::saved()),
    ("result-dir", |_| bench_serve::saved()),
    ("result-filename", |_| bench_serve::saved()),
    ("label", |_| bench_serve::saved()),
    ("metadata", |_| bench_serve::saved()),
    ("plot", |_| bench_serve::plotted()),
    ("batch", |_| crate::bench_graph::batch()),
    ("dtype", |_| crate::bench_graph::dtype()),
    ("list", |_| assert!(yirage(&["bench-graph", "--list"]).ran().out.lines().count() == 9)),
    ("paced", |_| {
        assert!(yirage(&["bench-graph", "norm_transformer", "--paced", "-q"]).input("").ran().out.is_empty())
    }),
    ("superoptimize", |_| crate::bench_graph::superoptimize()),
    ("plan", |_| crate::plan::plan()),
    ("fuse", |_| crate::plan::fuse()),
    ("input", |_| crate::graph::input()),
    ("output-array", |_| crate::graph::output()),
    ("dot", |_| crate::graph::dot()),
    ("svg", |_| crate::graph::svg()),
    ("svg-file", |_| crate::explain::svg()),
    ("decisions", crate::explain::decisions),
    ("profile", |_| crate::explain::profile()),
    ("apply", |_| {
        let written = |more: &[&str]| {
            let folder = tempfile::tempdir().unwrap();
            let run = yirage(&[&["backend", "optimize", "--json"], more].concat());
            run.env("XDG_CONFIG_HOME", folder.path().to_str().unwrap()).json()["written"].clone()
        };
        assert!(written(&[]).is_null() && written(&["--apply"]).is_string());
    }),
    ("duration", |_| crate::backend::duration()),
    ("quick", |_| crate::backend::quick()),
    ("ops", |_| crate::verify::ops()),
    ("verify-model", |_| crate::verify::model()),
    ("against", |_| crate::verify::against()),
    ("verify-output", |_| crate::verify::output()),
    ("verify", |_| crate::hub::verify()),
    ("mix", |_| crate::quantize::mix()),
    ("quantized", |_| crate::quantize::output()),
    ("outtype", |_| crate::convert::outtype()),
    ("outfile", |_| crate::convert::outfile()),
    ("model-name", |_| crate::convert::model_name()),
    ("force", |_| {
        crate::quantize::forced();
        crate::convert::forced();
        crate::imatrix::forced();
    }),
    ("dry-run", |_| {
        crate::quantize::dry_run();
        crate::convert::dry_run();
    }),
    ("imatrix", |_| crate::quantize::imatrix()),
    ("imatrix-context", |_| crate::imatrix::context()),
    ("chunks", |_| crate::imatrix::chunks()),
    ("process-output", |_| crate::imatrix::process_output()),
    ("imatrix-output", |_| crate::imatrix::output()),
    ("allow-requantize", |_| crate::quantize::allow_requantize()),
    ("pure", |_| crate::quantize::pure()),
    ("leave-output-tensor", |_| crate::quantize::leave_output_tensor()),
    ("output-tensor-type", |_| crate::quantize::output_tensor_type()),
    ("token-embedding-type", |_| crate::quantize::token_embedding_type()),
    ("quantize-threads", |_| crate::quantize::threads()),
];

#[test]
fn every_option_has_an_effect_test_and_every_test_an_option() {
    let explained = yirage(&["config", "explain", "--json"]).json();
    let options = explained["options"].as_array().unwrap();
    let options: BTreeSet<&str> = options.iter().map(|o| o["name"].as_str().unwrap()).collect();
    let tested: BTreeSet<&str> = EFFECTS.iter().map(|(name, _)| *name).collect();
    assert_eq!(options, tested);
}

#[test]
fn every_option_has_an_effect() {
    let model = support::bedtime();
    for (name, effect) in EFFECTS {
        println!("--{name}");
        effect(&model);
    }
}

/// Rows of a measurement.
fn bench(model: &str, more: &[&str]) -> Vec<Value> {
    let ran = yirage(&[&["bench", "-m", model, "-q", "-o", "jsonl", "-r", "1"], more].concat()).ran();
    assert_eq!(ran.code, 0, "{}", ran.err);
    ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Prompt, new tokens, depth and sequences of each row.
fn tests(model: &str, more: &[&str]) -> Vec<(u64, u64, u64, u64)> {
    let number = |r: &Value, name: &str| r[name].as_u64().unwrap();
    let of = |r: &Value| (number(r, "n_prompt"), number(r, "n_gen"), number(r, "n_depth"), number(r, "n_sequences"));
    bench(model, more).iter().map(of).collect()
}

fn run(model: &str, more: &[&str]) -> Ran {
    yirage(&[&["run", "--model", model, "--max-tokens", "2"], more].concat()).ran()
}

fn debug(model: &str, more: &[&str]) -> String {
    let ran = run(model, &[&["--log-level", "debug"], more].concat());
    assert_eq!(ran.code, 0, "{}", ran.err);
    ran.err
}

/// What the model's plans are compiled for.
fn target(model: &str, more: &[&str]) -> String {
    let explained = yirage(&[&["explain", model, "--json", "-q"], more].concat()).json();
    explained["target"].as_str().unwrap().to_owned()
}

fn answer(model: &str, more: &[&str]) -> Value {
    yirage(&[&["run", "--model", model, "--json"], more].concat()).json()
}

fn list(v: &Value) -> Vec<u64> {
    v.as_array().unwrap().iter().map(|x| x.as_u64().unwrap()).collect()
}

fn tokens(model: &str, more: &[&str]) -> Vec<u64> {
    list(&answer(model, &[&["--max-tokens", "60", "--ignore-eos"], more].concat())["tokens"])
}

fn greedy(model: &str, more: &[&str]) -> Vec<u64> {
    tokens(model, &[&["--temperature", "0"], more].concat())
}

/// Far from greedy, unless the option in question says otherwise.
fn hot(model: &str, more: &[&str]) -> Vec<u64> {
    let open: [(&str, &str); 3] = [("--top-k", "0"), ("--top-p", "1"), ("--min-p", "0")];
    let open = open.iter().filter(|(name, _)| !more.contains(name)).flat_map(|(name, value)| [*name, *value]);
    let open: Vec<&str> = open.collect();
    tokens(model, &[&["--temperature", "5"], more, &open].concat())
}

fn prompt(model: &str, more: &[&str]) -> Value {
    answer(model, &[&["--max-tokens", "1"], more].concat())["prompt_tokens"].clone()
}

fn kv_type(model: &str) {
    assert_ne!(logits(model, &["--kv-type", "f16"]), logits(model, &["--kv-type", "f32"]));
    // Its heads are of 8 elements, which is no block of int8.
    let refused = run(model, &["--kv-type", "q8_0"]);
    assert!(refused.code == 3 && refused.err.contains("use `--kv-type bf16`"), "{} {}", refused.code, refused.err);
    let model = path(&tiny::model("qwen3"));
    let cache = |kv: &str| {
        let args = ["run", "-m", &model, "--prompt-ids", "1,3,5", "--max-tokens", "2"];
        let ran = yirage(&[&args[..], &["--log-level", "debug", "--kv-type", kv]].concat()).ran();
        assert_eq!(ran.code, 0, "{}", ran.err);
        let word = ran.err.split_whitespace().find_map(|word| word.strip_prefix("cache_bytes=")).unwrap();
        word.parse::<u64>().unwrap()
    };
    assert_eq!(cache("q8_0") * 32, cache("bf16") * 17);
}

fn logits(model: &str, more: &[&str]) -> Value {
    let ids: &[&str] = if more.contains(&"--ids") { &[] } else { &["--ids", "1,377,321,341"] };
    yirage(&[&["logits", "--model", model, "--json"], ids, more].concat()).json()["positions"].clone()
}

fn tokenize(model: &str, more: &[&str]) -> Value {
    yirage(&[&["tokenize", "--model", model, "--json"], more].concat()).json()
}

fn tokenized(model: &str, more: &[&str]) -> Vec<u64> {
    list(&tokenize(model, more)["ids"])
}

fn config(model: &str) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("c.toml");
    std::fs::write(&file, "max_tokens = 7\nignore_eos = true\n").unwrap();
    let value = answer(model, &["--config", file.to_str().unwrap()]);
    assert_eq!(value["tokens"].as_array().unwrap().len(), 7);
}

fn models(model: &str) {
    let (folder, file) = model.rsplit_once('/').unwrap();
    assert_eq!(run(file, &["--models", folder]).code, 0);
    assert_eq!(run(file.strip_suffix(".gguf").unwrap(), &["--models", folder]).code, 0);
    assert_eq!(run(file, &[]).code, 1);
}

fn precision(_: &str) {
    let model = path(&bedtime::q8_0());
    let of = |precision| logits(&model, &["--precision", precision, "--kv-type", "f32"]);
    assert_ne!(of("exact"), of("fast"));
}

fn prefix_cache(model: &str) {
    let cached = |more: &[&str]| {
        let arguments = ["chat", "--model", model, "--max-tokens", "60", "--ignore-eos", "--json"];
        let ran = yirage(&[&arguments[..], more].concat()).input("Once upon a time\nThen\n").ran();
        let last: Value = serde_json::from_str(ran.out.lines().last().unwrap()).unwrap();
        last["cached_tokens"].as_u64().unwrap()
    };
    assert_eq!(cached(&["--no-prefix-cache"]), 0);
    assert!(cached(&[]) >= 32);
}

/// An answer to a text that says one thing many times.
fn repeated(model: &str, options: &[&str]) -> Value {
    let text = "Tom saw a big dog. ".repeat(12);
    let base = ["run", "--model", model, "--json", "--prompt", &text, "--temperature", "0", "--max-tokens", "60"];
    yirage(&[&base, options].concat()).json()
}

fn speculate(model: &str) {
    let counts =
        |answer: &Value| ["drafted", "accepted", "verified_steps"].map(|key| answer["timings"][key].as_u64().unwrap());
    let (off, lookup) = (repeated(model, &["--speculate", "off"]), repeated(model, &["--speculate", "lookup"]));
    assert_eq!(counts(&off), [0; 3]);
    assert!(off["timings"]["speculation_gain"].is_null());
    // How much is guessed depends on what steps cost here and now; that it may be is what the gain says.
    assert!(lookup["timings"]["speculation_gain"].as_f64().unwrap() > 0.0);
    assert_eq!(lookup["tokens"], off["tokens"]);
    // A layer of the model's own that foresees it; and what is wrong without one, or beside a draft model.
    let foreseen = path(&MtpModel::foreseen("glm4moe", MtpSight::State).folder());
    let ids = ["--prompt-ids", "3,9,27", "--temperature", "0", "--max-tokens", "90", "--ignore-eos"];
    let run = |how: &[&str]| yirage(&[&["run", "--model", &foreseen, "--json"], &ids[..], how].concat());
    let (off, mtp) = (run(&["--speculate", "off"]).json(), run(&["--speculate", "mtp"]).json());
    assert_eq!((counts(&off), &off["tokens"]), ([0; 3], &mtp["tokens"]));
    assert_eq!(counts(&mtp)[0], counts(&mtp)[1], "the layer foresees the model: {mtp}");
    assert!(mtp["timings"]["speculation_gain"].as_f64().unwrap() > 0.0);
    assert!(run(&[]).ran().err.contains("`--speculate mtp` has it guess"), "a layer that is not used is told of");
    let without = yirage(&["run", "--model", model, "--speculate", "mtp", "-n", "1"]).ran();
    assert!(without.code == 3 && without.err.contains("use `--speculate lookup`"), "{}", without.err);
    let both = run(&["--speculate", "mtp", "--draft-model", model]).ran();
    assert!(both.code == 2 && both.err.contains("--draft-model"), "{}", both.err);
}

fn draft_model(model: &str) {
    let drafting = ["--speculate", "draft", "--draft-model", model];
    let (plain, guessed) = (repeated(model, &["--speculate", "off"]), repeated(model, &drafting));
    let count = |key: &str| guessed["timings"][key].as_u64().unwrap();
    assert_eq!(count("accepted"), count("drafted"), "the model foresees itself: {guessed}");
    assert!(guessed["timings"]["speculation_gain"].as_f64().unwrap() > 0.0);
    assert_eq!(guessed["tokens"], plain["tokens"]);
    let without = yirage(&["run", "--model", model, "--speculate", "draft"]).ran();
    assert!(without.code == 2 && without.err.contains("--draft-model"), "{}", without.err);
    let unused = yirage(&["run", "--model", model, "--speculate", "off", "--draft-model", model, "-n", "1"]).ran();
    assert!(unused.err.contains("--draft-model") && unused.err.contains("not used"), "{}", unused.err);
}

/// Four tokens of prompt leave eight of twelve positions, and nine are refused with both numbers.
fn context(model: &str) {
    let ids = ["--prompt-ids", "1,377,321,341", "--ignore-eos", "--context", "12"];
    let filled = answer(model, &ids);
    assert_eq!((list(&filled["tokens"]).len(), filled["finish_reason"].as_str()), (8, Some("length")));
    let beyond = yirage(&[&["run", "--model", model, "--max-tokens", "9"], &ids[..]].concat()).ran();
    assert!(beyond.code == 1 && beyond.err.contains("13 exceed the context of 12 by 1"), "{}", beyond.err);
}

/// A model that foresees itself may guess as often as it likes, and no further than it is let.
fn draft_max(model: &str) {
    let plain = repeated(model, &["--speculate", "off"]);
    for most in [1, 2] {
        let most_text = most.to_string();
        let drafting = ["--speculate", "draft", "--draft-model", model, "--draft-max", &most_text];
        let guessed = repeated(model, &drafting);
        let [drafted, steps] = ["drafted", "verified_steps"].map(|key| guessed["timings"][key].as_u64().unwrap());
        assert!(drafted <= most * steps, "{drafted} guesses in {steps} steps of at most {most}");
        assert_eq!(guessed["tokens"], plain["tokens"]);
    }
    let refused = run(model, &["--draft-max", "0"]);
    assert!(refused.code == 2 && refused.err.contains("expected a number from 1 to 255"), "{}", refused.err);
}

fn prompt_file(model: &str) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("p.txt");
    std::fs::write(&file, "One day").unwrap();
    let want = prompt(model, &["--prompt", "One day"]);
    assert_eq!(prompt(model, &["--prompt-file", file.to_str().unwrap()]), want);
    let piped = yirage(&["run", "--model", model, "--json", "--max-tokens", "1", "--prompt-file", "-"]);
    assert_eq!(piped.input("One day").json()["prompt_tokens"], want);
}

fn image(model: &str) {
    let folder = tempfile::tempdir().unwrap();
    for name in vision::NAMES {
        let (golden, seeing) = (vision::golden(name), path(&vision::model(name)));
        let [first, second] = support::pictures_of(name, folder.path());
        for case in golden["cases"].as_array().unwrap() {
            let images = case["pictures"].as_array().unwrap().iter();
            let images = images.flat_map(|name| ["--image", if name == "first" { &first } else { &second }]);
            let args = ["--prompt", case["text"].as_str().unwrap(), "--temperature", "0", "--precision", "exact"];
            let args = args.into_iter().chain(["--ignore-eos", "--max-tokens", "12"]).chain(images);
            let said = answer(&seeing, &args.collect::<Vec<_>>());
            assert_eq!(said["tokens"], case["greedy"], "{name}: {case}");
            assert_eq!(said["prompt_tokens"], case["ids"], "{name}: {case}");
        }
    }
    let (golden, seeing) = (vision::golden("llava"), path(&vision::model("llava")));
    let [first, _] = support::picture_files(folder.path());
    let case = &golden["cases"][0];
    let talk = ["chat", "--model", &seeing, "--image", &first, "--temperature", "0", "--precision", "exact", "--json"];
    let talk = yirage(&[&talk[..], &["--ignore-eos", "--max-tokens", "12"]].concat());
    assert_eq!(talk.input(case["text"].as_str().unwrap()).json()["tokens"], case["greedy"], "{case}");
    let blind = run(model, &["--image", &first]);
    assert!(blind.code == 3 && blind.err.contains("reads no pictures"), "{} {}", blind.code, blind.err);
    let refused = run(&seeing, &["--prompt", "<image>", "--image", &first]);
    assert!(refused.code == 1 && refused.err.contains("2 places for 1 pictures"), "{} {}", refused.code, refused.err);
    std::fs::write(folder.path().join("bad"), b"GIF89a").unwrap();
    let refused = run(&seeing, &["--image", &path(&folder.path().join("bad"))]);
    assert!(refused.code == 1 && refused.err.contains("PNG, JPEG or WebP"), "{} {}", refused.code, refused.err);
}

fn system(_: &str) {
    let (_folder, model) = templated();
    assert_ne!(prompt(&model, &["--system", "Be brief."]), prompt(&model, &[]));
}

fn raw(_: &str) {
    let (_folder, model) = templated();
    assert_ne!(prompt(&model, &["--prompt", "a", "--raw"]), prompt(&model, &["--prompt", "a"]));
}

fn chat_template(_: &str) {
    let folder = named_templates();
    let model = folder.path().to_str().unwrap();
    assert_ne!(prompt(model, &["--prompt", "a", "--chat-template", "terse"]), prompt(model, &["--prompt", "a"]));
}

fn seed(model: &str) {
    assert_ne!(hot(model, &["--seed", "1"]), hot(model, &["--seed", "2"]));
    assert_eq!(hot(model, &["--seed", "1"]), hot(model, &["--seed", "1"]));
    assert!(run(model, &["--seed", "random"]).err.contains("seed "));
}

fn stop(model: &str) {
    let common = ["--prompt", "In the deep forest", "--temperature", "0", "--precision", "exact"];
    let of = |more: &[&str]| answer(model, &[&common[..], more].concat());
    let cut = of(&["--stop", "never there", "--stop", " was"]);
    assert_eq!((cut["text"].as_str(), cut["finish_reason"].as_str()), (Some(", and then there"), Some("stop")));
}

/// In a copy of the model, a token of the story ends it.
fn ignore_eos(model: &str) {
    const KEY: &[u8] = b"tokenizer.ggml.eos_token_id";
    const NEW_EOS: u32 = 343;
    let mut gguf = std::fs::read(model).unwrap();
    let value = gguf.windows(KEY.len()).position(|w| w == KEY).unwrap() + KEY.len() + 4;
    gguf[value..value + 4].copy_from_slice(&NEW_EOS.to_le_bytes());
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.gguf");
    std::fs::write(&copy, gguf).unwrap();
    let common = ["--prompt-ids", "1,377,321,341,476,312,323,349,469,407", "--temperature", "0", "--max-tokens", "16"];
    let of = |more: &[&str]| answer(copy.to_str().unwrap(), &[&common[..], more].concat());
    let (short, long) = (of(&[]), of(&["--ignore-eos"]));
    assert_eq!((short["finish_reason"].as_str(), long["finish_reason"].as_str()), (Some("stop"), Some("length")));
    assert_eq!(list(&short["tokens"]).last(), Some(&u64::from(NEW_EOS)));
    assert_eq!(list(&long["tokens"]).len(), 16);
}

fn file(model: &str) {
    let folder = tempfile::tempdir().unwrap();
    let nll = |text: &str| {
        let file = folder.path().join("t.txt");
        std::fs::write(&file, text).unwrap();
        let value = yirage(&["perplexity", "--model", model, "--json", "--file", file.to_str().unwrap()]).json();
        floats(&value["nll"])
    };
    assert_ne!(nll("One day"), nll("Two nights"));
}
