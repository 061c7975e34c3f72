//! Gemma 3n and 4: configurations in the forms that files have them in, and those that lie.

use serde_json::{Map, Value, json};
use yirage_model::arch::{BuildOptions, Model, build};
use yirage_model::{Checkpoint, ModelError, RawConfig};
use yirage_testkit::{json, tiny};

/// A tiny model and its configuration.
struct Files {
    checkpoint: Checkpoint,
    config: Map<String, Value>,
}

impl Files {
    fn of(name: &str) -> Files {
        let folder = tiny::model(name);
        let config = json::read(&folder.join("config.json")).as_object().unwrap().clone();
        Files { checkpoint: Checkpoint::open(&folder).unwrap(), config }
    }

    fn build(&self, config: &Value) -> Result<Model, ModelError> {
        let config = RawConfig::from_json(config.to_string().as_bytes(), "config.json")?;
        build(&self.checkpoint, &config, BuildOptions::plain(64))
    }

    /// The model with these keys instead.
    fn with(&self, changes: &[(&str, Value)]) -> Result<Model, ModelError> {
        let mut config = self.config.clone();
        changes.iter().for_each(|(key, value)| drop(config.insert((*key).to_owned(), value.clone())));
        self.build(&config.into())
    }

    fn error(&self, key: &str, value: Value) -> String {
        self.with(&[(key, value)]).err().map(|error| error.to_string()).unwrap_or_default()
    }
}

#[test]
fn files_that_state_wide_heads_for_all_layers_give_the_same_model() {
    let files = Files::of("gemma4-moe");
    let mut older = files.config.clone();
    assert!(older.remove("per_layer_config").is_some());
    older.insert("global_head_dim".into(), json!(32));
    older.insert("num_global_key_value_heads".into(), json!(1));
    let (now, older) = (files.with(&[]).unwrap(), files.build(&older.into()).unwrap());
    assert_eq!((now.graph, now.weights), (older.graph, older.weights));
}

/// Pictures see each other in both directions there, which says nothing of text.
#[test]
fn the_language_model_of_a_multi_modal_file_is_the_same_model() {
    for name in ["gemma4", "gemma3n"] {
        let files = Files::of(name);
        let mut text = files.config.clone();
        if name == "gemma4" {
            text.insert("use_bidirectional_attention".into(), json!("vision"));
        }
        let nested = json!({"model_type": name, "text_config": text, "vision_config": {"model_type": "none"}});
        let (alone, inside) = (files.with(&[]).unwrap(), files.build(&nested).unwrap());
        assert_eq!((alone.graph, alone.weights), (inside.graph, inside.weights), "{name}");
    }
}

#[test]
fn layers_are_told_by_rule_where_a_file_does_not_list_them() {
    let files = Files::of("gemma4");
    let types = |changes: &[(&str, Value)]| {
        let mut config = files.config.clone();
        config.remove("layer_types");
        changes.iter().for_each(|(key, value)| drop(config.insert((*key).to_owned(), value.clone())));
        let config = RawConfig::from_json(Value::from(config).to_string().as_bytes(), "config.json").unwrap();
        config.windows().unwrap().iter().map(|window| if window.is_some() { 's' } else { 'f' }).collect::<String>()
    };
    assert_eq!(types(&[]), "sssssf");
    assert_eq!(types(&[("num_hidden_layers", json!(8))]), "sssssfsf", "the last one attends to everything");
    assert_eq!(types(&[("model_type", json!("gemma3n_text"))]), "ssssfs");
}

#[test]
fn what_does_not_fit_is_named() {
    let files = Files::of("gemma4");
    let layers: Vec<&str> = ["full_attention", "sliding_attention"].into_iter().cycle().take(6).collect();
    for (key, value, named) in [
        ("layer_types", json!(layers), "full_attention for the last layer"),
        ("num_kv_shared_layers", json!(6), "num_kv_shared_layers"),
        ("num_kv_shared_layers", json!(5), "one of each type"),
        ("per_layer_config", json!({"1": {"head_dim": 32, "sliding_window": 4}}), "per_layer_config"),
        ("per_layer_config", json!({"1": {"head_dim": 0}}), "per_layer_config"),
        ("per_layer_config", json!([]), "per_layer_config"),
        ("use_bidirectional_attention", json!("all"), "attention to later positions"),
        ("vocab_size_per_layer_input", json!(100), "vocab_size_per_layer_input"),
        ("hidden_size_per_layer_input", json!(16), "embed_tokens_per_layer"),
        ("attn_logit_softcapping", json!(30.0), "capped scores"),
    ] {
        let error = files.error(key, value);
        assert!(error.contains(named), "{key}: {error}");
    }
    let files = Files::of("gemma3n");
    for (key, value, named) in [
        ("altup_active_idx", json!(3), "altup_active_idx"),
        ("altup_num_inputs", json!(1), "altup_num_inputs"),
        ("activation_sparsity_pattern", json!([0.5]), "activation_sparsity_pattern"),
        ("activation_sparsity_pattern", json!([0.9, 0.5, 0.0, 0.0, 0.3, 1.0]), "activation_sparsity_pattern"),
        ("intermediate_size", json!([96, 96]), "intermediate_size"),
        ("hidden_size_per_layer_input", json!(0), "hidden_size_per_layer_input"),
        ("laurel_rank", json!(0), "laurel_rank"),
    ] {
        let error = files.error(key, value);
        assert!(error.contains(named), "{key}: {error}");
    }
}
