//! Exit codes and messages.

use crate::support::{Ran, bedtime, yirage};
use serde_json::Value;

fn check(ran: &Ran, code: i32, parts: &[&str]) {
    assert_eq!(ran.code, code, "{}", ran.err);
    assert_eq!(ran.out, "", "standard output is for results");
    for part in parts {
        assert!(ran.err.contains(part), "{part:?} is not in {:?}", ran.err);
    }
}

#[test]
fn wrong_usage_is_2() {
    for arguments in [&["run", "--bogus"][..], &["nope"], &[], &["run", "--precision", "half"], &["config"]] {
        assert_eq!(yirage(arguments).ran().code, 2, "{arguments:?}");
    }
    let values = [
        ("--temperature", "hot"),
        ("--temperature", "nan"),
        ("--top-p", "0"),
        ("--threads", "0"),
        ("--max-tokens", "-1"),
        ("--prompt-ids", "1,x"),
        ("--prompt-ids", ""),
        ("--seed", "maybe"),
        ("--backend", "warp"),
        ("--chunk", "0"),
        ("--context", "99999999999"),
        ("--top-p", "2"),
        ("--min-p", "1.5"),
        ("--top-k", "-3"),
        ("--device", "9"),
        ("--prompt-ids", "1,,2"),
        ("--prompt-ids", "-1"),
        ("--prompt-file", ""),
        ("--config", ""),
        ("--stop", ""),
    ];
    let model = bedtime();
    for (option, value) in values {
        let ran = yirage(&["run", "--model", &model, option, value]).ran();
        let name = if option == "--backend" { value } else { option };
        check(&ran, 2, &[name]);
    }
    for command in ["run", "chat"] {
        // Told before a model is looked for.
        check(&yirage(&[command, "-m", "missing.gguf", "--temperature", "nan"]).ran(), 2, &["--temperature"]);
    }
    check(&yirage(&["run", "-m", ""]).ran(), 2, &["--model", "leave it out"]);
    check(&yirage(&["run", "-m", &model]).env("YIRAGE_CPU_ISA", "foo").ran(), 2, &["YIRAGE_CPU_ISA", "foo", "scalar"]);
    let stray = |command: &[&str]| yirage(&[command, &["stray"]].concat()).ran().err;
    assert!(stray(&["run", "a", "why"]).contains("then the prompt, in quotes"));
    assert!(stray(&["inspect", "a"]).contains("only the model") && !stray(&["rm", "a"]).contains("the model"));
    check(&yirage(&["tokenize", "-m", &model, "--text", "a", "--ids", "1"]).ran(), 2, &["--text and --ids exclude"]);
    check(&yirage(&["run", "-m", &model, "--isa", "sse9"]).ran(), 2, &["sse9", "avx2"]);
    check(&yirage(&["run", "-m", &model, "--prompt", "a", "--prompt-ids", "1"]).ran(), 2, &["exclude each other"]);
    check(&yirage(&["logits", "-m", &model]).ran(), 2, &["--ids"]);
    check(&yirage(&["tokenize", "-m", &model, "--decode"]).ran(), 2, &["--ids"]);
    check(&yirage(&["perplexity", "-m", &model]).ran(), 2, &["--file"]);
    for malformed in ["hf:", "hf:a", "hf:a/b/c", "hf:a/b:", "hf:../b"] {
        check(&yirage(&["run", "-m", malformed]).ran(), 2, &[malformed, "hf:ORG/REPO"]);
        check(&yirage(&["pull", malformed]).ran(), 2, &[malformed]);
    }
    check(&yirage(&["run", "-m", &model]).env("YIRAGE_TOP_K", "many").ran(), 2, &["YIRAGE_TOP_K", "many"]);
}

#[test]
fn help_and_version_are_results() {
    for arguments in [&["--help"][..], &["--version"], &["run", "--help"], &["config", "explain", "--help"]] {
        let ran = yirage(arguments).ran();
        assert!(ran.code == 0 && ran.err.is_empty() && !ran.out.is_empty(), "{arguments:?}");
    }
}

#[test]
fn a_missing_or_broken_model_is_1() {
    check(&yirage(&["run", "--model", "no/such.gguf"]).ran(), 1, &["no/such.gguf"]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("broken.gguf");
    let name = path.to_str().unwrap();
    for content in
        [&b""[..], b"GGUF", b"not a model", b"GGUF\x03\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"]
    {
        std::fs::write(&path, content).unwrap();
        check(&yirage(&["run", "--model", name]).ran(), 1, &["broken.gguf"]);
        check(&yirage(&["inspect", "--model", name]).ran(), 1, &["broken.gguf"]);
    }
    let model = bedtime();
    let prompt = folder.path().join("absent.txt");
    check(&yirage(&["run", "-m", &model, "--prompt-file", prompt.to_str().unwrap()]).ran(), 1, &["absent.txt"]);
    check(&yirage(&["logits", "-m", &model, "--ids", "1,9999"]).ran(), 1, &["9999", "512"]);
    let empty = tempfile::tempdir().unwrap();
    let empty = empty.path().to_str().unwrap();
    check(&yirage(&["run", "-m", empty]).ran(), 1, &[empty, "0 GGUF"]);
    let ran = yirage(&["run", "-m", "absent-model", "--models", "no/such/folder"]).ran();
    check(&ran, 1, &["--models: no/such/folder", "absent-model"]);
    let truncated = std::fs::read(&model).unwrap();
    std::fs::write(&path, &truncated[..100_000]).unwrap();
    check(&yirage(&["run", "--model", name]).ran(), 1, &["broken.gguf", "100000", "incomplete"]);
    check(&yirage(&["run", "-m", &model, "--max-tokens", "100000"]).ran(), 1, &["100000", "context of 512"]);
}

#[test]
fn no_model_and_no_way_to_one_lists_the_ways() {
    check(&yirage(&["pull"]).ran(), 1, &["1. ", "2. ", "mend it"]);
}

#[test]
fn unsupported_is_3() {
    let folder = yirage_testkit::bedtime::safetensors();
    let copy = tempfile::tempdir().unwrap();
    std::fs::copy(folder.join("model.safetensors"), copy.path().join("model.safetensors")).unwrap();
    let config = std::fs::read_to_string(folder.join("config.json")).unwrap();
    let mut config: Value = serde_json::from_str(&config).unwrap();
    config["model_type"] = "perceptron9000".into();
    std::fs::write(copy.path().join("config.json"), config.to_string()).unwrap();
    let model = copy.path().to_str().unwrap();
    check(&yirage(&["run", "-m", model, "--prompt-ids", "1"]).ran(), 3, &["perceptron9000"]);
    let stories = bedtime();
    check(&yirage(&["run", "-m", &stories, "--backend", "kunlun"]).ran(), 3, &["kunlun"]);
}

#[test]
fn what_would_not_fit_is_4_with_the_numbers() {
    let model = bedtime();
    let ran = yirage(&["run", "-m", &model, "--context", "67108864", "--kv-type", "f32"]).ran();
    check(&ran, 4, &["would not fit", "bytes", "available"]);
}

#[test]
fn errors_are_json_where_results_would_be() {
    for (arguments, code, kind) in [
        (&["run", "--model", "no/such.gguf", "--json"][..], 1, "failure"),
        (&["run", "--bogus", "--json"], 2, "usage"),
        (&["logits", "--json"], 2, "usage"),
    ] {
        let ran = yirage(arguments).ran();
        check(&ran, code, &[]);
        let error: Value = serde_json::from_str(&ran.err).unwrap_or_else(|e| panic!("{e}: {}", ran.err));
        assert_eq!(
            (error["error"]["code"].as_i64(), error["error"]["kind"].as_str()),
            (Some(i64::from(code)), Some(kind))
        );
        assert!(!error["error"]["message"].as_str().unwrap().is_empty());
    }
}

#[cfg(target_os = "linux")]
#[test]
fn results_that_cannot_be_written_are_an_error() {
    let model = bedtime();
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let ran = yirage(&["run", "-m", &model, "-n", "2"]).output(full).ran();
    check(&ran, 1, &["standard output", "No space left"]);
}

#[test]
fn a_wrong_endpoint_is_named() {
    for endpoint in ["mirror.test", "ftp://mirror.test", "https://"] {
        let ran = yirage(&["pull", "hf:a/b"]).env("HF_HUB_OFFLINE", "").env("HF_ENDPOINT", endpoint).ran();
        check(&ran, 1, &["HF_ENDPOINT", "no web address"]);
    }
}

#[test]
fn a_context_beyond_the_training_is_pointed_out() {
    let model = bedtime();
    let note = |context| yirage(&["run", "-m", &model, "-n", "1", "--context", context]).ran().err;
    assert!(note("1024").contains("made for") && !note("512").contains("made for"));
}

#[test]
fn a_token_that_cannot_be_sent_is_pointed_out() {
    let note = |token| yirage(&["pull", "hf:a/b"]).env("HF_TOKEN", token).ran().err;
    assert!(note("hf_\u{e9}").contains("HF_TOKEN: the token holds characters"), "{}", note("hf_\u{e9}"));
    assert!(!note("hf_x").contains("HF_TOKEN"));
}
