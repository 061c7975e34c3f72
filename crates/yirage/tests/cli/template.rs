//! Chat templates: a copy of the small model that has one.

use crate::support::{Ran, bedtime, keys, yirage};
use serde_json::{Map, Value, json};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

const TEMPLATE: &str = "{{ bos_token }}{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}[assistant]";

/// A copy of the small model with [`TEMPLATE`], in a folder that lives as long as the first value.
pub(crate) fn templated() -> (TempDir, String) {
    let source = std::fs::read(bedtime()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("templated.gguf");
    std::fs::write(&path, with_template(&source)).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (folder, path)
}

/// Puts the key in front of all others. The insertion is a multiple of the alignment, so that tensors only move.
fn with_template(gguf: &[u8]) -> Vec<u8> {
    const ALIGNMENT: usize = 32;
    const KEYS_AT: usize = 24;
    const STRING: u32 = 8;
    let key = "tokenizer.chat_template";
    let fixed = 8 + key.len() + 4 + 8 + TEMPLATE.len() + "{##}".len();
    let filling = " ".repeat((ALIGNMENT - fixed % ALIGNMENT) % ALIGNMENT);
    let template = format!("{TEMPLATE}{{#{filling}#}}");
    let count = u64::from_le_bytes(gguf[16..KEYS_AT].try_into().unwrap()) + 1;
    let mut out = gguf[..16].to_vec();
    out.extend(count.to_le_bytes());
    out.extend((key.len() as u64).to_le_bytes());
    out.extend(key.as_bytes());
    out.extend(STRING.to_le_bytes());
    out.extend((template.len() as u64).to_le_bytes());
    out.extend(template.as_bytes());
    assert_eq!((out.len() - KEYS_AT) % ALIGNMENT, 0);
    out.extend(&gguf[KEYS_AT..]);
    out
}

/// A folder with the small model, letters as tokens, and `config` as its `tokenizer_config.json`.
fn folder(config: &Value) -> TempDir {
    let source = yirage_testkit::bedtime::safetensors();
    let folder = tempfile::tempdir().unwrap();
    for file in ["config.json", "model.safetensors"] {
        fs::copy(source.join(file), folder.path().join(file)).unwrap();
    }
    let letters: Map<String, Value> = (' '..='~').zip(3..).map(|(c, id)| (c.to_string(), id.into())).collect();
    let tokenizer = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
        "pre_tokenizer": null, "post_processor": null, "decoder": {"type": "Fuse"},
        "model": {"type": "BPE", "unk_token": null, "vocab": letters, "merges": []}
    });
    fs::write(folder.path().join("tokenizer.json"), tokenizer.to_string()).unwrap();
    fs::write(folder.path().join("tokenizer_config.json"), config.to_string()).unwrap();
    folder
}

/// The same with a default template and the named ones `terse` and `tool_use`; the config has a `terse` as well, which
/// the file of that name beats.
pub(crate) fn named_templates() -> TempDir {
    let tool_use = json!({"name": "tool_use", "template": "tools:{{ messages[0].content }}"});
    let beaten = json!({"name": "terse", "template": "never"});
    let folder = folder(&json!({"chat_template": [tool_use, beaten]}));
    fs::write(folder.path().join("chat_template.jinja"), "default:{{ messages[0].content }}").unwrap();
    let more = folder.path().join("additional_chat_templates");
    fs::create_dir(&more).unwrap();
    fs::write(more.join("terse.jinja"), "{{ messages[0].content }}!").unwrap();
    fs::write(more.join("README.md"), "no template").unwrap();
    folder
}

/// What the model is asked when the user says `Hi`.
fn prompt_text(model: &Path, more: &[&str]) -> String {
    let model = model.to_str().unwrap();
    let ids: Vec<String> = prompt_tokens(model, more).iter().map(u64::to_string).collect();
    let arguments = ["tokenize", "--model", model, "--decode", "--ids", &ids.join(","), "--json"];
    yirage(&arguments).json()["text"].as_str().unwrap().to_owned()
}

fn run(model: &Path, more: &[&str]) -> Ran {
    let arguments = ["run", "--model", model.to_str().unwrap(), "--prompt", "Hi", "--max-tokens", "1"];
    yirage(&[&arguments[..], more].concat()).ran()
}

#[test]
fn a_template_is_chosen_by_its_name() {
    let folder = named_templates();
    let model = folder.path();
    assert_eq!(prompt_text(model, &[]), "default:Hi");
    assert_eq!(prompt_text(model, &["--chat-template", "default"]), "default:Hi");
    assert_eq!(prompt_text(model, &["--chat-template", "terse"]), "Hi!");
    assert_eq!(prompt_text(model, &["--chat-template", "tool_use"]), "tools:Hi");
    assert_eq!(prompt_text(model, &["--raw"]), "Hi");

    let arguments = ["chat", "--model", model.to_str().unwrap(), "--max-tokens", "1", "--json"];
    let asked = |more: &[&str]| {
        let value = yirage(&[&arguments[..], more].concat()).input("Hi\n").json();
        value["prompt_tokens"].as_array().unwrap().len()
    };
    assert_eq!((asked(&[]), asked(&["--chat-template", "terse"])), ("default:Hi".len(), "Hi!".len()));
}

#[test]
fn the_choice_comes_from_every_layer() {
    let folder = named_templates();
    let config = folder.path().join("c.toml");
    fs::write(&config, "chat_template = \"terse\"\n").unwrap();
    let config = ["--config", config.to_str().unwrap()];
    assert_eq!(prompt_text(folder.path(), &config), "Hi!");
    assert_eq!(prompt_text(folder.path(), &[&config[..], &["--raw"]].concat()), "Hi", "a flag beats the file");
    let model = folder.path().to_str().unwrap();
    let arguments = ["run", "--model", model, "--prompt", "Hi", "--max-tokens", "1", "--json"];
    let value = yirage(&arguments).env("YIRAGE_CHAT_TEMPLATE", "tool_use").json();
    assert_eq!(value["prompt_tokens"].as_array().unwrap().len(), "tools:Hi".len());
}

#[test]
fn wrong_choices_name_what_there_is() {
    let folder = named_templates();
    let ran = run(folder.path(), &["--chat-template", "trese"]);
    assert!(ran.code == 2 && ran.err.contains("--chat-template"), "{}", ran.err);
    assert!(ran.err.contains("`trese`") && ran.err.contains("default, terse, tool_use"), "{}", ran.err);
    let ran = run(folder.path(), &["--chat-template", "terse", "--raw"]);
    assert!(ran.code == 2 && ran.err.contains("exclude each other"), "{}", ran.err);
    let plain = bedtime();
    let ran = run(Path::new(&plain), &["--chat-template", "terse"]);
    assert!(ran.code == 2 && ran.err.contains("this model has: none"), "{}", ran.err);
}

#[test]
fn a_model_with_named_templates_only_wants_one_named() {
    let folder = folder(&json!({"chat_template": [{"name": "rag", "template": "{{ messages[0].content }}?"}]}));
    let ran = run(folder.path(), &[]);
    assert!(ran.code == 1 && ran.err.contains("--chat-template") && ran.err.contains("rag"), "{}", ran.err);
    assert_eq!(prompt_text(folder.path(), &["--chat-template", "rag"]), "Hi?");
    assert_eq!(prompt_text(folder.path(), &["--raw"]), "Hi");
}

#[test]
fn a_broken_template_is_in_the_way_of_nothing_else() {
    let folder = folder(&json!({"chat_template": "{% if %}"}));
    let ran = run(folder.path(), &[]);
    assert!(ran.code == 1 && ran.err.contains("line 1") && ran.err.contains("--raw"), "{}", ran.err);
    assert_eq!(prompt_text(folder.path(), &["--raw"]), "Hi");
    let report = yirage(&["inspect", "--model", folder.path().to_str().unwrap(), "--json"]).json();
    let findings = report["lint"].as_array().unwrap();
    assert!(findings.iter().any(|f| f["place"] == "chat template" && f["severity"] == "error"), "{findings:?}");
}

#[test]
fn inspect_lists_all_templates() {
    let folder = named_templates();
    let model = folder.path().to_str().unwrap();
    let report = yirage(&["inspect", "--model", model, "--json"]).json();
    assert_eq!(report["chat_template"], "default:{{ messages[0].content }}");
    assert_eq!(keys(&report["chat_templates"]), ["default", "terse", "tool_use"]);
    assert_eq!(report["chat_templates"]["terse"], "{{ messages[0].content }}!");
    let plain = yirage(&["inspect", "--model", model]).ran().out;
    assert!(plain.contains("chat template terse:\n{{ messages[0].content }}!\n"), "{plain}");
}

fn prompt_tokens(model: &str, more: &[&str]) -> Vec<u64> {
    let arguments = ["run", "--model", model, "--prompt", "Hi", "--max-tokens", "1", "--json"];
    let value = yirage(&[&arguments[..], more].concat()).json();
    value["prompt_tokens"].as_array().unwrap().iter().map(|x| x.as_u64().unwrap()).collect()
}

#[test]
fn the_template_is_applied_unless_raw_and_bos_stands_once() {
    let (_folder, model) = templated();
    let text = |ids: &[u64]| {
        let ids: Vec<String> = ids.iter().map(u64::to_string).collect();
        let value = yirage(&["tokenize", "--model", &model, "--decode", "--ids", &ids.join(","), "--json"]).json();
        value["text"].as_str().unwrap().to_owned()
    };
    let chat = prompt_tokens(&model, &[]);
    assert_eq!(chat.iter().filter(|&&id| id == 1).count(), 1, "{chat:?}");
    assert_eq!((chat[0], text(&chat).as_str()), (1, "[user] Hi\n[assistant]"));
    let system = prompt_tokens(&model, &["--system", "Be brief."]);
    assert_eq!(text(&system), "[system] Be brief.\n[user] Hi\n[assistant]");
    let raw = prompt_tokens(&model, &["--raw"]);
    assert_eq!((raw[0], text(&raw).as_str()), (1, "Hi"));
}

#[test]
fn a_model_without_template_says_so() {
    let model = bedtime();
    let run = |more: &[&str]| yirage(&[&["run", "--model", &model, "--max-tokens", "1"], more].concat()).ran();
    assert!(run(&[]).err.contains("no chat template"));
    assert!(run(&["--system", "x"]).err.contains("--system is not used"));
    assert!(!run(&["--raw"]).err.contains("no chat template"));
    assert_eq!(run(&["--quiet"]).err, "");
}
