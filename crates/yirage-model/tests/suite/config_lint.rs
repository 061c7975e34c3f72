//! Findings about models that lack something, and none about those that do not.

use crate::corpus::corpus;
use yirage_model::Checkpoint;
use yirage_model::lint::{LintFinding, Severity, lint};
use yirage_testkit::gguf::{GgufWriter, string};
use yirage_testkit::scratch::ScratchFolder;
use yirage_testkit::{absent, tiny};

fn findings(bytes: &[u8], test: &str) -> Vec<LintFinding> {
    let s = ScratchFolder::new(test);
    lint(&Checkpoint::open(s.write("m.gguf", bytes)).unwrap())
}

fn about<'a>(findings: &'a [LintFinding], place: &str) -> &'a LintFinding {
    findings.iter().find(|f| f.place == place).unwrap_or_else(|| panic!("nothing about {place} in {findings:#?}"))
}

fn tokens(n: u64) -> GgufWriter {
    let names: Vec<u8> = (0..n).flat_map(|i| string(format!("t{i}").as_bytes())).collect();
    GgufWriter::new().str("general.architecture", "llama").array("tokenizer.ggml.tokens", 8, n, &names)
}

#[test]
fn a_complete_file_has_no_findings() {
    let mut w = tokens(4).u32("tokenizer.ggml.eos_token_id", 3).str("tokenizer.chat_template", "{{ messages }}");
    for (key, value) in
        [("context_length", 64), ("embedding_length", 8), ("block_count", 1), ("feed_forward_length", 8)]
    {
        w = w.u32(&format!("llama.{key}"), value);
    }
    w = w.u32("llama.attention.head_count", 1).f32("llama.attention.layer_norm_rms_epsilon", 1e-5);
    let (norms, matrices) = (["attn_norm", "ffn_norm"], ["attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate"]);
    let mut tensors = vec![("token_embd".to_owned(), vec![8, 4]), ("output_norm".to_owned(), vec![8])];
    tensors.extend(norms.map(|name| (format!("blk.0.{name}"), vec![8])));
    tensors.extend(matrices.iter().chain(&["ffn_up", "ffn_down"]).map(|name| (format!("blk.0.{name}"), vec![8, 8])));
    let mut bytes = 0;
    for (name, dims) in tensors {
        w = w.tensor(&format!("{name}.weight"), &dims, 0, bytes);
        bytes += dims.iter().product::<u64>() * 4;
    }
    assert_eq!(findings(&w.data(bytes as usize).bytes(), "lint-complete"), []);
}

#[test]
fn mismatches_and_absences_are_found() {
    let w = tokens(5).u32("tokenizer.ggml.eos_token_id", 9).array("tokenizer.ggml.scores", 6, 2, &[0; 8]);
    let w = w.u32("llama.mystery", 1).tensor("token_embd.weight", &[8, 4], 0, 0);
    let w = w.tensor("a", &[256], 24, 128).tensor("b", &[256], 24, 384).data(640);
    let all = findings(&w.bytes(), "lint-bad");
    assert!(about(&all, "tokenizer.ggml.tokens").what.contains("5 tokens, but the embedding has 4 rows"));
    assert!(about(&all, "eos_token_id").what.contains("token 9"));
    assert_eq!(about(&all, "tokenizer.ggml.scores").severity, Severity::Error);
    assert_eq!(about(&all, "tokenizer.chat_template").severity, Severity::Note);
    assert_eq!(about(&all, "llama.mystery").severity, Severity::Note);
    let formats = about(&all, "tensor \"a\"");
    assert!(formats.what.contains("1 more") && formats.what.contains("I8"), "{formats:?}");
    assert!(all.is_sorted_by_key(|f| std::cmp::Reverse(f.severity)));
    assert!(all.iter().all(|f| !f.remedy.is_empty()));
    let none = findings(&GgufWriter::new().str("general.architecture", "llama").bytes(), "lint-none");
    assert_eq!(about(&none, "tokenizer.ggml.tokens").severity, Severity::Warning);
    assert!(about(&none, "eos_token_id").what.contains("no token ends"));
}

#[test]
fn folders_are_searched_for_their_parts() {
    let all = lint(&Checkpoint::open(tiny::model("llama")).unwrap());
    let places: Vec<_> = all.iter().map(|f| f.place.as_str()).collect();
    assert_eq!(places, ["tokenizer.json", "chat_template.jinja"]);
    let s = ScratchFolder::new("lint-fp8");
    for (name, from) in [
        ("model.safetensors", "safetensors/fp8_bf16.safetensors"),
        ("config.json", "config_json/old-deepseek-v3-fp8.json"),
    ] {
        s.write(name, &std::fs::read(corpus(from)).unwrap());
    }
    s.write("tokenizer.json", b"{}");
    s.write("tokenizer_config.json", br#"{"chat_template": "x"}"#);
    let all = lint(&Checkpoint::open(&s.0).unwrap());
    assert!(all.iter().any(|f| f.severity == Severity::Error && f.what.contains("does not hold together")), "{all:#?}");
    assert!(about(&all, "tensor \"q\"").what.contains("F8_E4M3"));
    assert!(!all.iter().any(|f| f.place == "tokenizer.json" || f.place == "chat_template.jinja"));
}

#[test]
#[ignore = "needs three models in YIRAGE_MODELS"]
fn real_models_have_nothing_grave() {
    for name in
        ["gemma-3-270m-q4_k_m.gguf", "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", "smollm2-135m-instruct-q4_1.gguf"]
    {
        let all = lint(&Checkpoint::open(absent::model(name)).unwrap());
        assert!(all.iter().all(|f| f.severity == Severity::Note), "{name}: {all:#?}");
        assert_eq!(all.iter().any(|f| f.what.contains("chat template")), name.starts_with("gemma"));
    }
}
