//! Every number and every switch of a configuration counts: changed, it is an error or changes the logits. A key that is
//! neither is ignored in silence, which only those may be that the reference implementation ignores as well.

#![allow(clippy::print_stderr)]

use crate::arch_support::{ArchRunner, tiny};
use serde_json::{Map, Value, json};
use yirage_model::{Checkpoint, RawConfig};

/// Keys that do not change the reference implementation's logits, by parts of their names: settings of training, of
/// other tasks, of the interface, and ids of tokens.
const NOT_COMPUTED: &[&str] = &[
    "_token_id",
    "pdrop",
    "dropout",
    "initializer_range",
    "use_cache",
    "pretraining_tp",
    "router_aux_loss_coef",
    "router_jitter_noise",
    "output_router_logits",
    "summary_",
    "num_mtp_layers",
    "num_nextn_predict_layers",
    "reorder_and_upcast_attn",
    "is_decoder",
    "chunk_size_feed_forward",
    "return_dict",
    "output_hidden_states",
    "output_attentions",
];

/// Beginning of a fixture's name, key, and why its logits do not depend on it, as the reference implementation's do not.
const WITHOUT_EFFECT: &[(&str, &str, &str)] = &[
    ("", "max_position_embeddings", "a limit, beyond which this test does not go"),
    ("", "tie_word_embeddings", "a head of its own counts whatever this says"),
    ("deepseek", "head_dim", "follows from the widths of its parts"),
    ("deepseek", "qk_head_dim", "follows from the widths of its parts"),
    ("deepseek-groups", "intermediate_size", "no layer is dense"),
    ("deepseek-plain-q", "original_max_position_embeddings", "the band is rounded to whole pairs"),
    ("glm4-yarn", "original_max_position_embeddings", "the band is rounded to whole pairs"),
    ("llama-yarn", "original_max_position_embeddings", "the band is rounded to whole pairs"),
    ("llama-yarn-stated", "beta_fast", "the band is rounded to whole pairs"),
    ("phi3", "original_max_position_embeddings", "the rotation is not scaled"),
    ("qwen3-biased-tied", "max_window_layers", "no layer has a window"),
    ("qwen3-biased-tied", "use_sliding_window", "the first layer with a window would be the 28th"),
    ("qwen3moe", "use_sliding_window", "there is no window"),
    ("smollm3", "no_rope_layer_interval", "the layers are listed"),
];

/// Tokens of the run: more than any window of the models, and than the context of the one that scales beyond it.
const TOKENS: u32 = 20;

fn logits(checkpoint: &Checkpoint, config: &Value) -> Result<Vec<Vec<f32>>, String> {
    let config = RawConfig::from_json(config.to_string().as_bytes(), "config.json").map_err(|e| e.to_string())?;
    let mut runner = ArchRunner::with(checkpoint, &config, 32).map_err(|e| e.to_string())?;
    let ids: Vec<u32> = (0..TOKENS).map(|i| (i * 7 + 1) % 19).collect();
    let rows: Vec<usize> = (0..ids.len()).collect();
    Ok(runner.step(&ids, &rows))
}

/// Other values of a key that a careless or hostile hand might write; none for what is neither number nor switch.
fn mutations(value: &Value) -> Vec<Value> {
    match value {
        Value::Bool(b) => vec![json!(!b)],
        Value::Number(n) if n.is_u64() => {
            let n = n.as_u64().unwrap();
            let mut list = vec![0, n / 2, n.saturating_sub(1), n * 2];
            list.retain(|&m| m != n);
            list.into_iter().map(Value::from).collect()
        }
        Value::Number(n) => {
            let x = n.as_f64().unwrap();
            let list = [0.0, x / 2.0, x * 2.0, -x];
            list.into_iter().filter(|&y| y != x).map(Value::from).collect()
        }
        _ => Vec::new(),
    }
}

/// Each configuration that differs from `config` in one number or switch, and what was changed.
fn mutated(config: &Value) -> Vec<(String, Value)> {
    let mut out = Vec::new();
    let object = config.as_object().unwrap();
    for (key, value) in object {
        for other in mutations(value) {
            let mut changed = config.clone();
            changed[key] = other.clone();
            out.push((format!("{key} = {other}"), changed));
        }
        if let Value::Object(section) = value {
            inside(&mut out, config, &[key], section);
        }
    }
    out
}

fn inside(out: &mut Vec<(String, Value)>, config: &Value, path: &[&str], section: &Map<String, Value>) {
    for (key, value) in section {
        for other in mutations(value) {
            let mut changed = config.clone();
            path.iter().fold(&mut changed, |v, part| &mut v[*part])[key] = other.clone();
            out.push((format!("{}.{key} = {other}", path.join(".")), changed));
        }
        if let Value::Object(deeper) = value {
            inside(out, config, &[path, &[key]].concat(), deeper);
        }
    }
}

#[test]
fn every_number_and_switch_is_an_error_or_changes_the_logits() {
    let (mut silent, mut errors, mut changes) = (Vec::new(), 0, 0);
    for folder in tiny("safetensors") {
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        let checkpoint = Checkpoint::open(&folder).unwrap();
        let config: Value = serde_json::from_slice(&std::fs::read(folder.join("config.json")).unwrap()).unwrap();
        let want = logits(&checkpoint, &config).unwrap_or_else(|e| panic!("{name}: {e}"));
        for (what, changed) in mutated(&config) {
            let key = what.split(" = ").next().unwrap().rsplit('.').next().unwrap();
            let harmless = NOT_COMPUTED.iter().any(|part| key.contains(part));
            let excused = WITHOUT_EFFECT.iter().any(|(of, k, _)| name.starts_with(of) && *k == key);
            match logits(&checkpoint, &changed) {
                Err(e) => {
                    assert!(e.contains("config.json") || e.contains("model.safetensors"), "{name}: {what}: {e}");
                    errors += 1;
                }
                Ok(got) if got != want => changes += 1,
                Ok(_) if harmless || excused => {}
                Ok(_) => silent.push(format!("{name}: {what}")),
            }
        }
    }
    assert!(errors > 300 && changes > 100, "{errors} errors, {changes} changes");
    assert!(silent.is_empty(), "{} are ignored:\n{}", silent.len(), silent.join("\n"));
}
