//! Chat templates: a copy of the small model that has one.

use crate::support::{stories, yirage};
use tempfile::TempDir;

const TEMPLATE: &str = "{{ bos_token }}{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}[assistant]";

/// A copy of the small model with [`TEMPLATE`], in a folder that lives as long as the first value.
pub(crate) fn templated() -> Option<(TempDir, String)> {
    let source = std::fs::read(stories()?).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("templated.gguf");
    std::fs::write(&path, with_template(&source)).unwrap();
    let path = path.to_str().unwrap().to_owned();
    Some((folder, path))
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

fn prompt_tokens(model: &str, more: &[&str]) -> Vec<u64> {
    let arguments = ["run", "--model", model, "--prompt", "Hi", "--max-tokens", "1", "--json"];
    let value = yirage(&[&arguments[..], more].concat()).json();
    value["prompt_tokens"].as_array().unwrap().iter().map(|x| x.as_u64().unwrap()).collect()
}

#[test]
fn the_template_is_applied_unless_raw_and_bos_stands_once() {
    let Some((_folder, model)) = templated() else { return };
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
    let Some(model) = stories() else { return };
    let run = |more: &[&str]| yirage(&[&["run", "--model", &model, "--max-tokens", "1"], more].concat()).ran();
    assert!(run(&[]).err.contains("no chat template"));
    assert!(run(&["--system", "x"]).err.contains("--system is not used"));
    assert!(!run(&["--raw"]).err.contains("no chat template"));
    assert_eq!(run(&["--quiet"]).err, "");
}
