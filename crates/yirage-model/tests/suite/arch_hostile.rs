//! Configurations that lie, are unknown, or ask for what is not there: errors with names, never a panic.

use crate::arch_support::tiny;
use serde_json::{Value, json};
use yirage_ir::Format;
use yirage_model::arch::{BuildOptions, KvCacheSpec, Model, build};
use yirage_model::{Checkpoint, ModelError, RawConfig};

const OPTIONS: BuildOptions = BuildOptions::plain(8);

fn build_with(checkpoint: &Checkpoint, config: &Value) -> Result<Model, ModelError> {
    let config = RawConfig::from_json(config.to_string().as_bytes(), "config.json")?;
    build(checkpoint, &config, OPTIONS)
}

/// The checkpoint and configuration of a fixture.
fn fixture(name: &str) -> (Checkpoint, Value) {
    let folder = tiny("safetensors").into_iter().find(|p| p.ends_with(name)).expect("a fixture");
    let config = std::fs::read_to_string(folder.join("config.json")).unwrap();
    (Checkpoint::open(&folder).unwrap(), serde_json::from_str(&config).unwrap())
}

#[test]
fn any_value_of_any_key_is_a_model_or_an_error() {
    let values = [
        json!(null),
        json!(0),
        json!(1),
        json!(3),
        json!(65_537),
        json!(16_777_216),
        json!(4_294_967_295u32),
        json!(-1),
        json!(1e300),
        json!(0.5),
        json!("x"),
        json!(""),
        json!(true),
        json!(false),
        json!([]),
        json!([1]),
        json!({}),
    ];
    for folder in tiny("safetensors") {
        let checkpoint = Checkpoint::open(&folder).unwrap();
        let text = std::fs::read_to_string(folder.join("config.json")).unwrap();
        let config: Value = serde_json::from_str(&text).unwrap();
        let mut errors = 0;
        for key in config.as_object().unwrap().keys() {
            for value in &values {
                let mut changed = config.clone();
                changed[key] = value.clone();
                errors += usize::from(build_with(&checkpoint, &changed).is_err());
            }
        }
        assert!(errors > 50, "{}: only {errors} errors", folder.display());
    }
}

#[test]
fn every_absent_tensor_and_key_is_noticed_by_name_or_has_a_default() {
    let (checkpoint, config) = fixture("llama-yarn");
    let mut more = config.clone();
    more["num_hidden_layers"] = json!(3);
    let err = build_with(&checkpoint, &more).unwrap_err();
    assert!(matches!(&err, ModelError::MissingTensor { tensor, .. } if tensor.contains("layers.2.")), "{err}");
    let mut wider = config.clone();
    wider["intermediate_size"] = json!(51);
    let text = build_with(&checkpoint, &wider).unwrap_err().to_string();
    assert!(text.contains("gate_proj.weight") && text.contains("[51, 36]") && text.contains("[50, 36]"), "{text}");
    let mut bare = config;
    bare.as_object_mut().unwrap().remove("hidden_size");
    assert!(build_with(&checkpoint, &bare).unwrap_err().to_string().contains("hidden_size"));
}

#[test]
fn unknown_things_are_named_with_what_is_known() {
    let (checkpoint, config) = fixture("llama-yarn");
    for (key, value, named) in [
        ("model_type", json!("mamba"), vec!["mamba", "llama", "deepseek_v3", "gpt_oss"]),
        ("rope_scaling", json!({"type": "su"}), vec!["\"su\"", "longrope"]),
        ("hidden_act", json!("xielu"), vec!["xielu", "silu"]),
        ("quantization_config", json!({"quant_method": "vptq"}), vec!["vptq"]),
        ("quantization_config", json!({"quant_method": "mxfp4"}), vec!["MXFP4", "gpt_oss"]),
    ] {
        let mut changed = config.clone();
        changed[key] = value;
        let err = build_with(&checkpoint, &changed).unwrap_err();
        assert!(matches!(err, ModelError::Unsupported { .. }), "{err}");
        let text = err.to_string();
        assert!(named.iter().all(|n| text.contains(n)), "{text}");
    }
    let config = RawConfig::from_json(config.to_string().as_bytes(), "config.json").unwrap();
    let options = BuildOptions { kv: Format::Q8_0, ..OPTIONS };
    assert!(matches!(build(&checkpoint, &config, options), Err(ModelError::Unsupported { .. })));
}

#[test]
fn layers_that_keep_the_same_share_a_group() {
    let groups = |name: &str| {
        let (checkpoint, config) = fixture(name);
        let model = build_with(&checkpoint, &config).unwrap();
        (model.groups, model.kv_cache_group)
    };
    let (kinds, states) = groups("gemma3-pattern");
    let paged = |window| KvCacheSpec::Paged { kv_heads: 1, k_width: 12, v_width: 12, window };
    assert_eq!(kinds, [paged(Some(4)), paged(None)]);
    let of = |i: usize| (format!("kv.{i}"), i % 2);
    assert_eq!(states, (0..4).map(of).collect::<Vec<_>>());
    let (kinds, states) = groups("deepseek-groups");
    assert_eq!(kinds, [KvCacheSpec::Latent { rank: 12, rope: 6 }]);
    assert_eq!(states.len(), 2);
}

#[test]
fn models_that_add_biases_to_cached_keys_say_so() {
    let biased = |name: &str| {
        let (checkpoint, config) = fixture(name);
        build_with(&checkpoint, &config).unwrap().biased_keys
    };
    for name in ["qwen2-window", "llama-biased-linear", "gemma2-biased", "gptoss-mxfp4", "gpt2-scaled", "glm4-yarn"] {
        assert!(biased(name), "{name}");
    }
    // Without biases, or with norms that leave nothing of their size.
    for name in [
        "llama-yarn",
        "qwen3-biased-tied",
        "olmo2-biased",
        "gemma3-pattern",
        "gptneox-sequential",
        "deepseek-groups",
        "glm-unbiased-tied",
    ] {
        assert!(!biased(name), "{name}");
    }
}

#[test]
fn a_context_beyond_any_table_is_refused_with_the_number() {
    let (checkpoint, config) = fixture("llama-yarn");
    let config = RawConfig::from_json(config.to_string().as_bytes(), "config.json").unwrap();
    let err = build(&checkpoint, &config, BuildOptions { context: u32::MAX, ..OPTIONS }).unwrap_err();
    assert!(err.to_string().contains("4294967295"), "{err}");
}

#[test]
fn positions_that_an_index_would_choose_from_are_refused() {
    for name in ["deepseek-v32", "glm-moe-dsa"] {
        let folder = yirage_testkit::tiny::model(name);
        let checkpoint = Checkpoint::open(&folder).unwrap();
        let mut config: Value = serde_json::from_slice(&std::fs::read(folder.join("config.json")).unwrap()).unwrap();
        config["index_topk"] = json!(96);
        let config = RawConfig::from_json(config.to_string().as_bytes(), "config.json").unwrap();
        assert_eq!(
            config.context_limit().unwrap().to_string(),
            "96 positions of the model's 512 are computed: index_topk is 96, and what follows is not computed yet"
        );
        build(&checkpoint, &config, BuildOptions { context: 96, ..OPTIONS }).unwrap();
        let refused = build(&checkpoint, &config, BuildOptions { context: 97, ..OPTIONS }).unwrap_err().to_string();
        assert!(refused.contains("a context of 97 positions") && refused.contains("take at most 96"), "{refused}");
    }
}

/// Kimi K2 is DeepSeek-V3 under another name.
#[test]
fn a_family_of_the_same_layers_gives_the_same_graph() {
    let folder = yirage_testkit::tiny::model("deepseek-v3");
    let checkpoint = Checkpoint::open(&folder).unwrap();
    let mut config: Value = serde_json::from_slice(&std::fs::read(folder.join("config.json")).unwrap()).unwrap();
    let mut built = |name: &str| {
        config["model_type"] = json!(name);
        let config = RawConfig::from_json(config.to_string().as_bytes(), "config.json").unwrap();
        build(&checkpoint, &config, OPTIONS).unwrap()
    };
    let (known, other) = (built("deepseek_v3"), built("kimi_k2"));
    assert_eq!((known.graph.nodes, known.weights), (other.graph.nodes, other.weights));
}

#[test]
fn positions_behind_the_first_chunk_are_refused() {
    let folder = yirage_testkit::tiny::model("llama4");
    let checkpoint = Checkpoint::open(&folder).unwrap();
    let config: Value = serde_json::from_slice(&std::fs::read(folder.join("config.json")).unwrap()).unwrap();
    let with = |change: &[(&str, Value)]| {
        let mut changed = config.clone();
        change.iter().for_each(|(key, value)| changed[*key] = value.clone());
        RawConfig::from_json(changed.to_string().as_bytes(), "config.json")
    };
    assert_eq!(with(&[]).unwrap().context_limit(), None, "512 positions are within a chunk of 8192");

    let chunk = with(&[("attention_chunk_size", json!(64))]).unwrap();
    assert_eq!(chunk.u32("max_position_embeddings").unwrap(), 64);
    assert_eq!(
        chunk.context_limit().unwrap().to_string(),
        "64 positions of the model's 512 are computed: attention_chunk_size is 64, and what follows is not computed yet"
    );
    let build_for = |config, context| build(&checkpoint, config, BuildOptions { context, ..OPTIONS });
    build_for(&chunk, 64).unwrap();
    let refused = build_for(&chunk, 65).unwrap_err().to_string();
    assert!(refused.contains("a context of 65 positions") && refused.contains("take at most 64"), "{refused}");

    let tuned = with(&[("floor_scale", json!(32))]).unwrap();
    assert_eq!(tuned.u32("max_position_embeddings").unwrap(), 31, "the 32nd position has a temperature of its own");
    let plain = with(&[("floor_scale", json!(32)), ("attn_temperature_tuning", json!(false))]).unwrap();
    assert_eq!(plain.context_limit(), None);
    for (key, least) in [("attention_chunk_size", 0), ("floor_scale", 1)] {
        let refused = with(&[(key, json!(least))]).unwrap_err().to_string();
        assert!(refused.contains(key), "{refused}");
    }
    let sliding = with(&[("layer_types", json!(vec!["sliding_attention"; 4]))]).unwrap();
    let refused = build_for(&sliding, 8).unwrap_err().to_string();
    assert!(refused.contains("sliding_attention") && refused.contains("chunked_attention"), "{refused}");
    let two = with(&[("num_experts_per_tok", json!(2))]).unwrap();
    assert!(build_for(&two, 8).unwrap_err().to_string().contains("2 experts a token"));
}
