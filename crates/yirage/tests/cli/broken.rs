//! `inspect` has an error to report exactly where `run` refuses: a list of models broken in different ways.

use crate::support::yirage;
use serde_json::{Value, json};
use std::path::Path;

/// A way to break a model's folder.
enum Break {
    /// Nothing.
    Not,
    /// A key of `config.json` gets another value.
    Key(&'static str, Value),
    /// A file gets another content.
    File(&'static str, &'static str),
}

fn copy(name: &str, how: &Break) -> tempfile::TempDir {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../yirage-model/tests/golden/tiny/safetensors").join(name);
    let copy = tempfile::tempdir().unwrap();
    for file in ["config.json", "model.safetensors"] {
        std::fs::copy(source.join(file), copy.path().join(file)).unwrap();
    }
    match how {
        Break::Not => {}
        Break::File(file, content) => std::fs::write(copy.path().join(file), content).unwrap(),
        Break::Key(key, value) => {
            let path = copy.path().join("config.json");
            let mut config: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
            config[key] = value.clone();
            std::fs::write(path, config.to_string()).unwrap();
        }
    }
    copy
}

#[test]
fn inspect_has_an_error_where_run_refuses_and_nowhere_else() {
    use Break::{File, Key, Not};
    let cases = [
        ("llama-yarn", Not, 0),
        ("gpt2-scaled", Not, 0),
        ("llama-yarn", Key("num_hidden_layers", json!(1)), 1),
        ("llama-yarn", Key("num_hidden_layers", json!(3)), 1),
        ("llama-yarn", Key("num_hidden_layers", json!(0)), 1),
        ("llama-yarn", Key("intermediate_size", json!(51)), 1),
        ("llama-yarn", Key("vocab_size", json!(0)), 1),
        ("llama-yarn", Key("max_position_embeddings", json!(0)), 1),
        ("llama-yarn", Key("num_attention_heads", json!(0)), 1),
        ("llama-yarn", Key("head_dim", json!(1)), 1),
        ("llama-yarn", Key("partial_rotary_factor", json!(0.5)), 1),
        ("llama-yarn", Key("tie_word_embeddings", json!(true)), 0),
        ("llama-yarn", Key("use_cache", json!(false)), 0),
        ("llama-yarn", Key("model_type", json!("perceptron9000")), 3),
        ("llama-yarn", Key("quantization_config", json!({"quant_method": "vptq"})), 3),
        ("gemma2-biased", Key("use_bidirectional_attention", json!(true)), 3),
        ("llama-yarn", File("config.json", "{"), 1),
        ("llama-yarn", File("generation_config.json", "{\"temperature\": -1}"), 1),
        ("llama-yarn", File("generation_config.json", "{\"temperature\": 0.5}"), 0),
        ("llama-yarn", File("tokenizer.json", "{}"), 1),
        ("llama-yarn", File("tokenizer.json", "no JSON"), 1),
    ];
    for (name, how, code) in cases {
        let folder = copy(name, &how);
        let model = folder.path().to_str().unwrap();
        let what = match &how {
            Not => "nothing".to_owned(),
            Key(key, value) => format!("{key} = {value}"),
            File(file, content) => format!("{file}: {content}"),
        };
        let ran = yirage(&["run", "-m", model, "--prompt-ids", "1,2", "-n", "2"]).ran();
        assert_eq!(ran.code, code, "{name}, {what}: {}", ran.err);
        let report = yirage(&["inspect", "-m", model, "--json"]).json();
        let findings = report["lint"].as_array().unwrap();
        let errors = findings.iter().filter(|f| f["severity"] == "error").count();
        assert_eq!(errors > 0, code != 0, "{name}, {what}: {} but {findings:?}", ran.err);
    }
}
