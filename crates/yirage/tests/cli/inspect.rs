//! Commands that look at things: `inspect`, `devices`, `list`, `rm`, `completions`.

use crate::support::{bedtime, yirage};

#[test]
fn inspect_shows_header_tensors_and_findings() {
    let model = bedtime();
    let value = yirage(&["inspect", "--model", &model, "--json"]).json();
    assert_eq!((&value["architecture"], &value["container"]), (&"llama".into(), &"gguf".into()));
    assert_eq!((&value["parameters"], &value["tokenizer"]["tokens"]), (&248512.into(), &512.into()));
    assert_eq!(value["metadata"]["llama.block_count"], 5);
    let tensors = value["tensors"].as_array().unwrap();
    let elements =
        |t: &serde_json::Value| -> u64 { t["shape"].as_array().unwrap().iter().map(|d| d.as_u64().unwrap()).product() };
    assert_eq!(tensors.iter().map(elements).sum::<u64>(), 248512);
    assert!(value["lint"].as_array().unwrap().iter().any(|f| f["place"] == "tokenizer.chat_template"));
    let plain = yirage(&["inspect", "--model", &model]).ran();
    assert!(plain.code == 0 && plain.out.contains("blk.4.ffn_down.weight  f32 [64,160]"), "{}", plain.out);
}

#[test]
fn inspect_shows_what_is_decoded_and_what_that_takes() {
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../yirage-model/tests/golden/quantized");
    let model = format!("{golden}/gptq-symmetric");
    let value = yirage(&["inspect", "--model", &model, "--json"]).json();
    let of = |name: &str| value["tensors"].as_array().unwrap().iter().find(|t| t["name"] == name).unwrap().clone();
    let weight = of("m.weight");
    assert_eq!((&weight["shape"], &weight["computed"]), (&serde_json::json!([16, 128]), &"q4_0".into()));
    // Codes, zero points and scales of two groups; blocks of 32 in memory.
    assert_eq!((&weight["bytes"], &weight["computed_bytes"]), (&(1024 + 16 + 64).into(), &(64 * 18).into()));
    assert!(of("norm.weight").get("computed").is_none());
    let findings = value["lint"].as_array().unwrap();
    let decoded = findings.iter().find(|f| f["place"] == "weights").unwrap();
    assert!(decoded["what"].as_str().unwrap().contains("1104 bytes in the file, are q4_0, 1152 bytes in memory"));
    let plain = yirage(&["inspect", "--model", &model]).ran();
    assert!(plain.out.contains("m.weight  GPTQ 4-bit") && plain.out.contains("computed as q4_0"), "{}", plain.out);
}

#[test]
fn devices_are_listed_with_reasons_for_the_rest() {
    let value = yirage(&["devices", "--json"]).json();
    let backends: Vec<_> = value["devices"].as_array().unwrap().iter().map(|d| d["backend"].clone()).collect();
    assert!(backends[0] == "cpu" && backends[1..].iter().all(|backend| backend == "vulkan"), "{value}");
    assert!(value["unavailable"].as_array().unwrap().iter().all(|u| !u["why"].as_str().unwrap().is_empty()));
    assert!(yirage(&["devices"]).ran().out.contains("cpu 0: "));
}

#[test]
fn the_cache_is_listed_and_what_is_not_there_cannot_be_removed() {
    let cache = tempfile::tempdir().unwrap();
    let cache = cache.path().to_str().unwrap();
    let value = yirage(&["list", "--json"]).env("HF_HUB_CACHE", cache).json();
    assert_eq!(value["cached"].as_array().unwrap().len(), 0);
    assert!(value["catalogue"].as_array().unwrap().iter().any(|e| e["model"] == "smollm2-135m-instruct"));
    let ran = yirage(&["rm", "hf:a/b"]).env("HF_HUB_CACHE", cache).ran();
    assert!(ran.code == 1 && ran.err.contains("a/b"), "{}", ran.err);
}

#[test]
fn completions_know_commands_and_options() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = yirage(&["completions", shell]).ran();
        assert!(ran.code == 0 && ran.out.contains("perplexity") && ran.out.contains("max-tokens"), "{shell}");
    }
    assert_eq!(yirage(&["completions", "tcsh"]).ran().code, 2);
}
