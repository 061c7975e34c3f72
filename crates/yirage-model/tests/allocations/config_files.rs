//! Configurations of every dialect, from `config.json` and GGUF, true and hostile.

#[path = "../../../../fuzz/bodies/config_json.rs"]
mod body;

use crate::alloc::peak_of;
use crate::corpus::{corpus, corpus_files};
use yirage_model::config::{ConfigSource, Quantization};
use yirage_model::{Checkpoint, FrequencyDivisors, GenerationConfig, LayerType, ModelError, RawConfig, RopeScaling};
use yirage_testkit::{absent, tiny};

fn seed(name: &str) -> RawConfig {
    let file = format!("{name}.json");
    RawConfig::from_json(&std::fs::read(corpus("config_json").join(&file)).unwrap(), &file).unwrap()
}

fn gguf_seed(name: &str) -> RawConfig {
    RawConfig::load(&Checkpoint::open(corpus("gguf").join(name)).unwrap()).unwrap()
}

/// One letter a layer.
fn pattern(c: &RawConfig) -> String {
    let letter = |w: Option<u32>| if w.is_some() { 's' } else { 'f' };
    c.windows().unwrap().into_iter().map(letter).collect()
}

#[test]
fn current_configs_answer_the_common_keys() {
    for (name, layers, model_type) in [
        ("llama", 3, "llama"),
        ("llama3-rope", 3, "llama"),
        ("mistral-swa", 3, "mistral"),
        ("qwen2", 3, "qwen2"),
        ("qwen3", 3, "qwen3"),
        ("qwen3moe", 3, "qwen3_moe"),
        ("mixtral", 3, "mixtral"),
        ("gemma2", 3, "gemma2"),
        ("gemma3", 7, "gemma3_text"),
        ("phi3", 3, "phi3"),
        ("olmo2", 3, "olmo2"),
        ("gpt2", 3, "gpt2"),
        ("gptneox", 3, "gpt_neox"),
        ("smollm3", 3, "smollm3"),
        ("gptoss", 3, "gpt_oss"),
        ("deepseek-v3", 3, "deepseek_v3"),
        ("glm4", 3, "glm4"),
    ] {
        let c = seed(name);
        c.check_supported().unwrap();
        assert_eq!(
            (c.model_type().unwrap(), c.layers().unwrap(), c.source()),
            (model_type, layers, ConfigSource::Json)
        );
        for (key, value) in
            [("hidden_size", 64), ("num_attention_heads", 4), ("vocab_size", 512), ("max_position_embeddings", 512)]
        {
            assert_eq!(c.u32(key).unwrap(), value, "{name} {key}");
        }
        assert!([8, 16, 32].contains(&c.u32("head_dim").unwrap()), "{name}");
        assert!(c.opt_f64("rms_norm_eps").unwrap().or(c.opt_f64("layer_norm_eps").unwrap()).is_some(), "{name}");
        assert_eq!(c.opt_str("dtype").unwrap(), Some("float32"));
        assert!(c.has("tie_word_embeddings") && c.has("num_key_value_heads") && c.has("hidden_act"), "{name}");
        assert_eq!(c.architectures().len(), 1);
    }
}

#[test]
fn layers_know_their_windows() {
    for (name, expected) in [
        ("llama", "fff"),
        ("mistral-swa", "sss"),
        ("mixtral", "fff"),
        ("gemma2", "sfs"),
        ("gemma3", "sssssfs"),
        ("gptoss", "sfs"),
        ("qwen2", "fff"),
        ("qwen3moe", "fff"),
        ("smollm3", "fff"),
        ("phi3", "fff"),
        ("gpt2", "fff"),
        ("old-mistral", "sss"),
        ("old-qwen2-window", "fffs"),
        ("old-gpt-oss-mxfp4", "sf"),
        ("old-gemma2", "sfsfsfsfsfsfsfsfsfsfsfsfsf"),
        ("old-gemma3-multimodal", "sssssfsssssfsssssfsssssfsssssfssss"),
    ] {
        assert_eq!(pattern(&seed(name)), expected, "{name}");
    }
    assert_eq!(seed("gemma3").windows().unwrap()[0], Some(16));
}

#[test]
fn rotations_of_both_dialects() {
    let rope = |name: &str, layer| seed(name).rope(layer).unwrap();
    let full = |name| rope(name, LayerType::Full);
    assert_eq!((full("llama").theta, full("llama").scaling), (10000.0, RopeScaling::Default));
    let llama3 =
        |factor, original| RopeScaling::Llama3 { factor, low_freq_factor: 1.0, high_freq_factor: 4.0, original };
    assert_eq!((full("llama3-rope").theta, full("llama3-rope").scaling), (500000.0, llama3(8.0, 64)));
    assert_eq!((full("old-llama3").theta, full("old-llama3").scaling), (500000.0, llama3(32.0, 8192)));
    assert_eq!(full("old-linear").scaling, RopeScaling::Linear { factor: 4.0 });
    assert_eq!(full("old-dynamic").scaling, RopeScaling::Dynamic { factor: 2.0, original: 2048 });
    for name in ["gptoss", "old-gpt-oss-mxfp4"] {
        let yarn = RopeScaling::Yarn {
            factor: 32.0,
            original: 4096,
            beta_fast: 32.0,
            beta_slow: 1.0,
            attention_factor: None,
            mscale: None,
            mscale_all_dim: None,
            truncate: false,
        };
        assert_eq!((full(name).theta, full(name).scaling), (150000.0, yarn));
    }
    let RopeScaling::LongRope { short, long, original, attention_factor } = full("old-phi3-longrope").scaling else {
        panic!("by its older name")
    };
    let stated = |key: &str, values: [f64; 2]| FrequencyDivisors::Stated { key: key.into(), values: values.into() };
    assert_eq!(short, stated("rope_scaling.short_factor", [1.0, 1.0]));
    assert_eq!(long, stated("rope_scaling.long_factor", [1.0, 2.0]));
    assert_eq!((original, attention_factor), (4096, (1.0 + 32f64.ln() / 4096f64.ln()).sqrt()));
    let deepseek = full("old-deepseek-v3-fp8").scaling;
    assert!(matches!(deepseek, RopeScaling::Yarn { mscale: Some(1.0), mscale_all_dim: Some(1.0), truncate: true, .. }));
    for (name, scaling) in
        [("gemma3", RopeScaling::Default), ("old-gemma3-multimodal", RopeScaling::Linear { factor: 8.0 })]
    {
        assert_eq!((full(name).theta, full(name).scaling), (1e6, scaling));
        let local = rope(name, LayerType::Sliding);
        assert_eq!((local.theta, local.scaling), (10000.0, RopeScaling::Default));
    }
    for name in ["gptneox", "old-neox"] {
        assert_eq!((full(name).partial_rotary_factor, full(name).rotary_dim(64)), (0.25, 16));
    }
    assert_eq!(full("smollm3").theta, 2e6);
    // Of each head the first half rotates, where the file does not say otherwise.
    for name in ["glm4", "old-glm"] {
        assert_eq!((full(name).partial_rotary_factor, full(name).rotary_dim(128)), (0.5, 64), "{name}");
    }
}

#[test]
fn rotated_widths_survive_the_quotient() {
    let mut rope = seed("llama").rope(LayerType::Full).unwrap();
    for head in 1..=512u32 {
        for rotated in (2..=head).step_by(2) {
            rope.partial_rotary_factor = f64::from(rotated) / f64::from(head);
            assert_eq!(rope.rotary_dim(head), rotated);
        }
    }
}

#[test]
fn old_and_nested_names_become_current() {
    let multimodal = seed("old-gemma3-multimodal");
    assert_eq!(multimodal.model_type().unwrap(), "gemma3_text");
    assert_eq!(multimodal.architectures(), ["Gemma3ForConditionalGeneration"]);
    assert_eq!(GenerationConfig::from_json(b"{}", "g", &multimodal).unwrap().eos, [1, 106]);
    assert_eq!((multimodal.u32("hidden_size").unwrap(), multimodal.u32("head_dim").unwrap()), (2560, 256));
    assert!(multimodal.bool("tie_word_embeddings").unwrap());
    let gpt2 = seed("old-gpt2");
    assert_eq!((gpt2.u32("hidden_size").unwrap(), gpt2.u32("intermediate_size").unwrap()), (768, 3072));
    assert_eq!((gpt2.f64("layer_norm_eps").unwrap(), gpt2.str("hidden_act").unwrap()), (1e-5, "gelu_new"));
    let llama = seed("old-llama");
    assert_eq!((llama.u32("num_key_value_heads").unwrap(), llama.str("dtype").unwrap()), (32, "bfloat16"));
    assert_eq!(seed("gptoss").u32("num_experts").unwrap(), 4);
    assert_eq!(seed("deepseek-v3").u32("num_experts").unwrap(), 8);
    assert_eq!(seed("smollm3").u32_per_layer("no_rope_layers", 3).unwrap(), [1, 1, 0]);
    assert_eq!(seed("llama").u32_per_layer("num_attention_heads", 3).unwrap(), [4, 4, 4]);
}

#[test]
fn what_is_recognised_but_not_computed_is_named() {
    let linear = br#"{"model_type":"phi3","rope_scaling":{"type":"linear","factor":2.0}}"#;
    let error = RawConfig::from_json(linear, "phi.json").unwrap().rope(LayerType::Full).unwrap_err();
    assert!(matches!(&error, ModelError::Unsupported { what, .. } if what.contains("linear")), "{error}");
    assert!(
        error.to_string().contains("phi.json: rope_scaling.rope_type names it; default and longrope are"),
        "{error}"
    );
    for name in ["old-deepseek-v3-fp8", "awq", "gptq"] {
        assert_eq!(seed(name).quantization().unwrap(), Quantization::Decoded, "{name}");
    }
    assert_eq!(seed("old-gpt-oss-mxfp4").quantization().unwrap(), Quantization::Mxfp4);
    assert_eq!(seed("llama").quantization().unwrap(), Quantization::None);
    let chunked = br#"{"model_type":"llama4_text","num_hidden_layers":1,"layer_types":["chunked_attention"]}"#;
    let error = RawConfig::from_json(chunked, "c").unwrap().layer_types().unwrap_err();
    assert!(matches!(error, ModelError::Unsupported { .. }));
}

#[test]
fn errors_name_file_key_and_both_values() {
    let c =
        RawConfig::from_json(br#"{"a":"64","n":-1,"big":4294967296,"f":1.5,"l":[1,2],"ok":4096.0}"#, "x.json").unwrap();
    for (error, said) in [
        (c.u32("a").unwrap_err(), "x.json: a: expected an integer from 0 to 4294967295, found the string \"64\""),
        (c.u32("n").unwrap_err(), "found the number -1"),
        (c.u32("big").unwrap_err(), "found the number 4294967296"),
        (c.u32("f").unwrap_err(), "found the number 1.5"),
        (c.f64("absent").unwrap_err(), "x.json: absent: expected a number, found nothing"),
        (c.bool("a").unwrap_err(), "expected true or false"),
        (c.str("n").unwrap_err(), "expected a string"),
        (c.u32_per_layer("l", 3).unwrap_err(), "a list of 3, found a list of 2"),
        (c.model_type().unwrap_err(), "model_type"),
    ] {
        assert!(error.to_string().contains(said), "{error}");
    }
    assert_eq!(c.u32("ok").unwrap(), 4096);
    let error = RawConfig::from_json(b"{\n \"a\": }", "y.json").unwrap_err().to_string();
    assert!(error.contains("y.json: line 2, column"), "{error}");
    let error = RawConfig::from_json(&vec![b' '; 5 << 20], "z.json").unwrap_err().to_string();
    assert!(error.contains("z.json") && error.contains("4194304"), "{error}");
}

#[test]
fn gguf_metadata_reads_like_a_config() {
    let llama = gguf_seed("llama.gguf");
    assert_eq!((llama.model_type().unwrap(), llama.source()), ("llama", ConfigSource::Gguf));
    for (key, value) in [
        ("hidden_size", 8),
        ("intermediate_size", 16),
        ("num_hidden_layers", 2),
        ("num_attention_heads", 2),
        ("num_key_value_heads", 1),
        ("head_dim", 4),
        ("vocab_size", 4),
        ("max_position_embeddings", 64),
        ("eos_token_id", 2),
        ("bos_token_id", 3),
    ] {
        assert_eq!(llama.u32(key).unwrap(), value, "{key}");
    }
    assert_eq!(llama.f64("rms_norm_eps").unwrap(), 1e-6);
    assert!(llama.bool("tie_word_embeddings").unwrap() && !llama.bool("attention_bias").unwrap());
    assert_eq!(llama.rope(LayerType::Full).unwrap().theta, 10000.0);

    let gemma = gguf_seed("gemma3.gguf");
    assert_eq!((gemma.model_type().unwrap(), pattern(&gemma)), ("gemma3_text", "ss".into()));
    assert_eq!(gemma.rope(LayerType::Full).unwrap().scaling, RopeScaling::Linear { factor: 8.0 });
    assert_eq!(gemma.rope(LayerType::Sliding).unwrap().scaling, RopeScaling::Default);
    assert_eq!(gemma.u32("query_pre_attn_scalar").unwrap(), 4);

    let oss = gguf_seed("gpt-oss.gguf");
    assert_eq!(
        (oss.model_type().unwrap(), pattern(&oss), oss.u32("num_experts").unwrap()),
        ("gpt_oss", "sf".into(), 4)
    );
    let yarn = oss.rope(LayerType::Sliding).unwrap().scaling;
    assert!(matches!(yarn, RopeScaling::Yarn { factor: 32.0, original: 4096, truncate: false, .. }), "{yarn:?}");
}

#[test]
fn endings_are_found_in_both_containers() {
    let g = Checkpoint::open(corpus("gguf").join("llama.gguf")).unwrap();
    let generation = GenerationConfig::load(&g, &RawConfig::load(&g).unwrap()).unwrap();
    assert_eq!((generation.eos, generation.bos), (vec![2, 3], Some(3)));
    let config = seed("old-llama3");
    let own =
        GenerationConfig::from_json(br#"{"eos_token_id":7,"temperature":0.6,"top_p":0.9,"top_k":20}"#, "g", &config);
    let own = own.unwrap();
    assert_eq!((own.eos, own.temperature, own.top_p, own.top_k), (vec![7], Some(0.6), Some(0.9), Some(20)));
    let inherited = |config| GenerationConfig::from_json(b"{}", "g", config).unwrap().eos;
    assert_eq!(inherited(&config), [128001, 128008, 128009]);
    assert_eq!(inherited(&seed("old-glm")), [151329, 151336, 151338]);
    let error = GenerationConfig::from_json(br#"{"temperature":"hot"}"#, "g.json", &config).unwrap_err().to_string();
    assert!(error.contains("g.json: temperature"), "{error}");
}

#[test]
fn hostile_configs_are_survived() {
    for (name, original) in corpus_files("config_json") {
        (0..=original.len()).for_each(|cut| body::run(&original[..cut]));
        let mut bytes = original.clone();
        for i in 0..bytes.len() {
            for value in [0, b'"', b'[', b'}', b'-', b'9', b'e', 0xff] {
                bytes[i] = value;
                let ((), peak) = peak_of(|| body::run(&bytes));
                assert!(peak < 2 << 20, "{name} byte {i} = {value}: {peak} bytes allocated");
            }
            bytes[i] = original[i];
        }
    }
}

#[test]
fn nested_junk_costs_little() {
    for junk in ["[".repeat(1 << 20), format!("{{\"a\":{}", "[[],".repeat(1 << 18)), "{\"a\":".repeat(1 << 18)] {
        let (result, peak) = peak_of(|| RawConfig::from_json(junk.as_bytes(), "junk"));
        assert!(result.is_err());
        assert!(peak < 64 * junk.len(), "{peak} bytes allocated for {}", junk.len());
    }
}

#[test]
fn tiny_models_load_with_generation_settings() {
    for name in tiny::NAMES {
        let c = Checkpoint::open(tiny::model(name)).unwrap();
        let config = RawConfig::load(&c).unwrap();
        config.check_supported().unwrap();
        // Which layers of these attend, their own code says.
        let model_type = config.model_type().unwrap();
        let hybrids = ["granitemoehybrid", "qwen3_next", "qwen3_5_text", "qwen3_5_moe_text", "nemotron_h"];
        let hybrid = model_type.starts_with("lfm2") || hybrids.contains(&model_type);
        let own = hybrid || model_type == "llama4_text";
        assert!(own || config.windows().unwrap().len() == config.layers().unwrap() as usize, "{name}");
        let generation = GenerationConfig::load(&c, &config).unwrap();
        assert_eq!((generation.eos, generation.bos), (vec![2], Some(1)));
    }
}

#[test]
#[ignore = "needs four models in YIRAGE_MODELS"]
fn real_models_translate() {
    for (name, model_type, eos, windows) in [
        ("gemma-3-270m-q4_k_m.gguf", "gemma3_text", vec![1, 106], "sssssfsssssfsssssf"),
        ("qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", "qwen2", vec![151643, 151645], "ffffffffffffffffffffffff"),
        ("qwen2.5-coder-1.5b-instruct-q4_k_m.gguf", "qwen2", vec![151643, 151645], "ffffffffffffffffffffffffffff"),
        ("smollm2-135m-instruct-q4_1.gguf", "llama", vec![0, 2], "ffffffffffffffffffffffffffffff"),
    ] {
        let c = Checkpoint::open(absent::model(name)).unwrap();
        let config = RawConfig::load(&c).unwrap();
        config.check_supported().unwrap();
        assert_eq!((config.model_type().unwrap(), pattern(&config)), (model_type, windows.to_owned()));
        assert_eq!(GenerationConfig::load(&c, &config).unwrap().eos, eos, "{name}");
        let rows = c.tensor("token_embd.weight").unwrap().shape[0];
        assert_eq!(config.u32("vocab_size").unwrap() as usize, rows);
        let q = &c.tensor("blk.0.attn_q.weight").unwrap().shape;
        let heads = config.u32("num_attention_heads").unwrap() * config.u32("head_dim").unwrap();
        assert_eq!(q[..], [heads as usize, config.u32("hidden_size").unwrap() as usize]);
        assert_eq!(config.bool("attention_bias").unwrap(), model_type == "qwen2");
        assert_eq!(config.rope(LayerType::Full).unwrap().scaling, RopeScaling::Default);
    }
}
