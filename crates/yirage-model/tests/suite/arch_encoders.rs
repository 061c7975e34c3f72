//! Encoders by the scalar reference: hidden states and scores of transformers, whatever else is in the step; and
//! configurations that lie or ask for what is not there.

use crate::tokenizer_support::from_json;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use yirage_ir::Tensor;
use yirage_model::arch::{BuildOptions, Model, ModelOutput, build};
use yirage_model::config::{Pooling, SentenceConfig};
use yirage_model::tokenizer::FramedTokens;
use yirage_model::weights::materialise;
use yirage_model::{Checkpoint, ModelError, RawConfig};
use yirage_testkit::{encoders, fixtures, json};

const OPTIONS: BuildOptions = BuildOptions::plain(384);
/// What float32 in another order differs by from transformers.
const CLOSE: f64 = 1e-5;

fn build_with(checkpoint: &Checkpoint, config: &Value) -> Result<Model, ModelError> {
    let config = RawConfig::from_json(config.to_string().as_bytes(), "config.json")?;
    build(checkpoint, &config, OPTIONS)
}

/// The checkpoint and configuration of a tiny encoder.
fn fixture(name: &str) -> (Checkpoint, Value) {
    let folder = encoders::model(name);
    (Checkpoint::open(&folder).unwrap(), json::read(&folder.join("config.json")))
}

fn ints(values: impl Iterator<Item = usize>) -> Tensor {
    let values: Vec<i32> = values.map(|x| x as i32).collect();
    Tensor::i32([values.len()], values)
}

/// What the model gives for a step of these inputs: its output's rows.
fn run(checkpoint: &Checkpoint, model: &Model, inputs: &[FramedTokens]) -> Vec<Vec<f32>> {
    let mut tensors = HashMap::new();
    let mut scratch = Vec::new();
    for w in &model.weights {
        let bytes = materialise(checkpoint, w, 0..w.rows(), &mut scratch).unwrap().to_vec();
        tensors.insert(w.name.clone(), Tensor::stored(w.format, w.shape.clone(), bytes));
    }
    let before = |input: usize| inputs[..input].iter().map(|i| i.ids.len()).sum();
    tensors.insert("rows".into(), ints((0..inputs.len()).map(before)));
    tensors.insert("ids".into(), ints(inputs.iter().flat_map(|i| i.ids.iter().map(|&id| id as usize))));
    tensors.insert("types".into(), ints(inputs.iter().flat_map(|i| i.types.iter().map(|&t| t as usize))));
    tensors.insert("positions".into(), ints(inputs.iter().flat_map(|i| 0..i.ids.len())));
    let seqs = inputs.iter().enumerate().flat_map(|(s, i)| std::iter::repeat_n(s, i.ids.len()));
    tensors.insert("seqs".into(), ints(seqs));
    let out = yirage_ir::interp::evaluate(&model.graph, &mut tensors).expect("all inputs are given");
    (0..out[0].shape[0]).map(|row| out[0].row(row)).collect()
}

fn check_row(what: &str, found: &[f32], wanted: &Value) {
    let wanted = json::floats(wanted);
    assert_eq!(found.len(), wanted.len(), "{what}");
    let worst = found.iter().zip(&wanted).map(|(a, b)| (f64::from(*a) - b).abs()).fold(0.0, f64::max);
    assert!(worst < CLOSE, "{what}: differs by {worst:e}");
}

#[test]
fn hidden_states_are_those_of_transformers() {
    check_hidden_states("embed", 2);
    check_hidden_states("roberta-embed", 1);
    check_hidden_states("modernbert-embed", 0);
}

fn check_hidden_states(name: &str, types: u32) {
    let (checkpoint, config) = fixture(name);
    let tokenizer = from_json(&encoders::model(name).join("tokenizer.json"));
    let model = build_with(&checkpoint, &config).unwrap();
    yirage_ir::verify(&model.graph).unwrap();
    assert_eq!((model.output, model.token_types), (ModelOutput::Hidden { width: 48 }, types));
    assert_eq!(model.context, 384, "{name}: rows of the table that are nobody's are no positions");
    assert!(model.groups.is_empty() && model.kv_cache_group.is_empty(), "nothing is cached");
    let golden = encoders::golden(name);
    let cases: Vec<&Value> = golden["cases"].as_array().unwrap().iter().collect();
    let inputs: Vec<FramedTokens> =
        cases.iter().map(|case| tokenizer.frame(case["text"].as_str().unwrap(), None).unwrap()).collect();
    let mut rows = run(&checkpoint, &model, &inputs).into_iter();
    for (case, input) in cases.iter().zip(&inputs) {
        let own: Vec<Vec<f32>> = rows.by_ref().take(input.ids.len()).collect();
        for wanted in case["rows"].as_array().unwrap() {
            let at = wanted[0].as_u64().unwrap() as usize;
            check_row(&format!("{} at {at}", case["text"]), &own[at], &wanted[1]);
        }
        let alone = run(&checkpoint, &model, std::slice::from_ref(input));
        assert_eq!(alone, own, "{}: the other texts of the step change it", case["text"]);
    }
}

#[test]
fn scores_are_those_of_transformers() {
    ["score", "roberta-score", "modernbert-score"].into_iter().for_each(check_scores);
}

fn check_scores(name: &str) {
    let (checkpoint, config) = fixture(name);
    let tokenizer = from_json(&encoders::model(name).join("tokenizer.json"));
    let model = build_with(&checkpoint, &config).unwrap();
    assert_eq!(model.output, ModelOutput::Scores { labels: 1 });
    let golden = encoders::golden(name);
    let cases: Vec<&Value> = golden["cases"].as_array().unwrap().iter().collect();
    let text = |case: &Value, key: &str| case[key].as_str().unwrap().to_owned();
    let pair = |case: &&Value| tokenizer.frame_pair(&text(case, "first"), &text(case, "second"), None).unwrap();
    let rows = run(&checkpoint, &model, &cases.iter().map(pair).collect::<Vec<_>>());
    assert_eq!(rows.len(), cases.len());
    rows.iter().zip(&cases).for_each(|(row, case)| check_row(&case["first"].to_string(), row, &case["scores"]));
}

#[test]
fn any_value_of_any_key_is_a_model_or_an_error() {
    let values =
        json!([null, 0, 1, 3, 65_537, 16_777_216, 4_294_967_295u32, -1, 1e300, 0.5, "x", "", true, false, [], [1], {}]);
    for name in encoders::NAMES {
        let (checkpoint, config) = fixture(name);
        let mut errors = 0;
        for key in config.as_object().unwrap().keys() {
            for value in values.as_array().unwrap() {
                let mut changed = config.clone();
                changed[key] = value.clone();
                errors += usize::from(build_with(&checkpoint, &changed).is_err());
            }
        }
        assert!(errors > 50, "{name}: only {errors} errors");
    }
}

#[test]
fn what_is_not_computed_is_named() {
    let (checkpoint, config) = fixture("embed");
    for (key, value, named) in [
        ("architectures", json!(["BertForTokenClassification"]), "BertForTokenClassification"),
        ("architectures", json!(["BertModel", "BertForMaskedLM"]), "BertForMaskedLM"),
        ("position_embedding_type", json!("relative_key"), "relative_key"),
        ("is_decoder", json!(true), "is_decoder"),
        ("hidden_act", json!("mish"), "mish"),
    ] {
        let mut changed = config.clone();
        changed[key] = value;
        let error = build_with(&checkpoint, &changed).unwrap_err();
        assert!(matches!(error, ModelError::Unsupported { .. }) && error.to_string().contains(named), "{error}");
    }
    let mut fewer = config.clone();
    fewer["num_hidden_layers"] = json!(1);
    let error = build_with(&checkpoint, &fewer).unwrap_err();
    assert!(matches!(&error, ModelError::UnusedTensors(_)) && error.to_string().contains("correct it to 2"), "{error}");
    let mut headed = config;
    headed["architectures"] = json!(["BertForSequenceClassification"]);
    let error = build_with(&checkpoint, &headed).unwrap_err();
    assert!(matches!(&error, ModelError::MissingTensor { tensor, .. } if tensor == "classifier.weight"), "{error}");
}

/// The file that the fixture's folder has not.
const PROMPTS: &str = "config_sentence_transformers.json";

/// The suggestions beside a model whose files are changed so.
fn sentence(change: &[(&str, &str)]) -> Result<SentenceConfig, ModelError> {
    let folder = encoders::model("embed");
    let names =
        ["config.json", "model.safetensors", "modules.json", "1_Pooling/config.json", "sentence_bert_config.json"];
    let own = |name: &str| std::fs::read(folder.join(name)).unwrap();
    let stated = |name: &str| change.iter().find(|(file, _)| *file == name).map(|(_, text)| text.as_bytes().to_vec());
    let mut files: Vec<_> = names.iter().map(|name| (*name, stated(name).unwrap_or_else(|| own(name)))).collect();
    files.extend(stated(PROMPTS).map(|bytes| (PROMPTS, bytes)));
    let files: Vec<_> = files.into_iter().filter(|(_, bytes)| bytes != b"absent").collect();
    SentenceConfig::load(&open(&fixtures::folder("sentence", &files)))
}

fn open(folder: &Path) -> Checkpoint {
    Checkpoint::open(folder).unwrap()
}

#[test]
fn suggestions_for_vectors_come_from_the_files_beside_the_model() {
    let (prompts, default_prompt) = (BTreeMap::new(), None);
    let usual = SentenceConfig {
        pooling: Pooling::Mean,
        normalise: true,
        longest: Some(320),
        stated: true,
        prompts,
        default_prompt,
    };
    assert_eq!(sentence(&[]).unwrap(), usual);
    let last = SentenceConfig { pooling: Pooling::Last, ..usual.clone() };
    assert_eq!(sentence(&[("1_Pooling/config.json", r#"{"pooling_mode_lasttoken": true}"#)]).unwrap(), last);
    let cls = SentenceConfig { pooling: Pooling::Cls, ..usual.clone() };
    assert_eq!(sentence(&[("1_Pooling/config.json", r#"{"pooling_mode": "cls"}"#)]).unwrap(), cls);
    let text = r#"{"prompts": {"query": "Query: ", "document": ""}, "default_prompt_name": "query"}"#;
    let prompts = [("query", "Query: "), ("document", "")].map(|(name, text)| (name.to_owned(), text.to_owned()));
    let asked = SentenceConfig { prompts: prompts.into(), default_prompt: Some("query".into()), ..usual.clone() };
    assert_eq!(sentence(&[(PROMPTS, text)]).unwrap(), asked);
    let bare = SentenceConfig { normalise: false, longest: None, stated: false, ..usual };
    assert_eq!(sentence(&[("modules.json", "absent"), ("sentence_bert_config.json", "absent")]).unwrap(), bare);
}

#[test]
fn suggestions_that_cannot_be_followed_are_errors() {
    let dense = r#"[{"type": "sentence_transformers.models.Dense", "path": "2_Dense"}]"#;
    let away = r#"[{"type": "sentence_transformers.models.Pooling", "path": "../1_Pooling"}]"#;
    let rooted = r#"[{"type": "sentence_transformers.models.Pooling", "path": "/etc"}]"#;
    let two = r#"{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true}"#;
    for (file, text, named) in [
        ("modules.json", dense, "Dense"),
        ("modules.json", away, "a folder beside the file"),
        ("modules.json", rooted, "a folder beside the file"),
        ("modules.json", "[{}]", "a module's type"),
        ("modules.json", "{}", "a list of modules"),
        ("modules.json", "[", "line 1"),
        ("1_Pooling/config.json", "absent", "1_Pooling"),
        ("1_Pooling/config.json", two, "mean and cls"),
        ("1_Pooling/config.json", r#"{"pooling_mode": "max"}"#, "max"),
        ("1_Pooling/config.json", r#"{"pooling_mode": ["cls", "mean"]}"#, "pooling_mode"),
        ("sentence_bert_config.json", r#"{"max_seq_length": 0}"#, "above 0"),
        (PROMPTS, r#"{"prompts": {"query": 3}}"#, "texts by names"),
        (PROMPTS, r#"{"prompts": {"query": ""}, "default_prompt_name": "passage"}"#, "one of prompts"),
    ] {
        let error = sentence(&[(file, text)]).unwrap_err().to_string();
        assert!(error.contains(named), "{file}: {text}: {error}");
    }
}
