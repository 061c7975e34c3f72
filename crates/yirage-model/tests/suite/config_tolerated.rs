//! Values of `config.json` and `generation_config.json` that hold nothing a model is computed with: they load, as the
//! reference library of that format (transformers 5.24) loads them, and what is left out is said.

use serde_json::{Value, json};
use yirage_model::{GenerationConfig, LayerType, RawConfig, RopeScaling};

/// A llama of one layer with `changed` in place of its own values; null removes a key.
fn config(changed: Value) -> RawConfig {
    let mut values = json!({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 16, "intermediate_size": 64,
        "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 260, "max_position_embeddings": 2048,
        "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "hidden_act": "silu", "bos_token_id": 1, "eos_token_id": 2
    });
    for (key, value) in changed.as_object().unwrap() {
        values[key] = value.clone();
    }
    let config = RawConfig::from_json(values.to_string().as_bytes(), "config.json").unwrap();
    config.check_supported().unwrap();
    config
}

fn generation(own: Value, changed: Value) -> GenerationConfig {
    GenerationConfig::from_json(own.to_string().as_bytes(), "generation_config.json", &config(changed)).unwrap()
}

/// Kind of case 21: ids that nothing is computed with do not keep a model from loading.
#[test]
fn ids_that_are_none_load_and_are_reported() {
    for (pad, reported) in [
        (json!(-1), true),
        (json!([0, 1]), true),
        (json!("<pad>"), true),
        (json!(-1.0), true),
        (json!(true), true),
        (json!(99_999_999_999_u64), true),
        (json!(999_999), false),
        (json!(0.0), false),
        (json!(null), false),
    ] {
        let in_config = generation(json!({}), json!({ "pad_token_id": pad }));
        let own = generation(json!({ "pad_token_id": pad }), json!({}));
        for found in [in_config, own] {
            assert_eq!((found.eos, found.bos, found.ignored.len()), (vec![2], Some(1), usize::from(reported)), "{pad}");
        }
    }
    let said = generation(json!({}), json!({"pad_token_id": -1})).ignored;
    assert_eq!(said, ["config.json: pad_token_id is the number -1, which is no token; it is left out"]);
}

#[test]
fn ids_that_end_a_text_are_checked() {
    for (eos, wanted, reported) in [
        (json!([3, 2, 3, 2]), vec![2, 3], 0),
        (json!([2, -1]), vec![2], 1),
        (json!([2, null]), vec![2], 0),
        (json!(-1), vec![], 1),
        (json!([]), vec![], 0),
        (json!(2.0), vec![2], 0),
        (json!(null), vec![], 0),
        (json!(259), vec![259], 0),
    ] {
        let found = generation(json!({}), json!({ "eos_token_id": eos }));
        assert_eq!((found.eos, found.ignored.len()), (wanted, reported), "{eos}");
    }
    let found = generation(json!({"eos_token_id": []}), json!({"eos_token_id": 7}));
    assert_eq!(found.eos, [7]);
    for eos in [json!("</s>"), json!([2, "x"]), json!({}), json!(2.5)] {
        let body = json!({ "eos_token_id": eos }).to_string();
        assert!(GenerationConfig::from_json(body.as_bytes(), "g.json", &config(json!({}))).is_err(), "{eos}");
    }
    let found = generation(json!({}), json!({"bos_token_id": -1}));
    assert_eq!((found.bos, found.ignored.len()), (None, 1));
    assert_eq!(generation(json!({}), json!({"bos_token_id": [5, 6]})).bos, Some(5));
}

#[test]
fn what_says_nothing_new_loads() {
    for changed in [
        json!({"torch_dtype": "float16"}),
        json!({"torch_dtype": "torch.bfloat16"}),
        json!({"dtype": "auto", "torch_dtype": "float32"}),
        json!({"dtype": null, "torch_dtype": null}),
        json!({"rope_scaling": null}),
        json!({"rope_scaling": {}}),
        json!({"rope_scaling": {"rope_type": "default"}}),
        json!({"num_key_value_heads": null, "head_dim": null}),
        json!({"head_dim": 8.0, "hidden_size": 16.0, "vocab_size": 260.0}),
        json!({"rope_theta": 10000}),
        json!({"rope_theta": null}),
        json!({"max_position_embeddings": null}),
        json!({"sliding_window": null, "use_cache": null, "tie_word_embeddings": null, "attention_bias": null}),
        json!({"transformers_version": null, "_name_or_path": "", "some_future_key": {"a": [1]}}),
        json!({"use_cache": "yes", "initializer_range": "small", "pretraining_tp": -3}),
    ] {
        let config = config(changed.clone());
        let rope = config.rope(LayerType::Full).unwrap();
        assert_eq!((rope.theta, rope.scaling), (10_000.0, RopeScaling::Default), "{changed}");
        assert_eq!((config.u32("head_dim").unwrap(), config.u32("num_key_value_heads").unwrap()), (8, 2), "{changed}");
    }
}
