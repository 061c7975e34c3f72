//! Tiny models that read pictures, with a tokenizer, a processor, a chat template and what transformers makes of prompts.
//!
//! `fixtures/vision/NAME.json` has a model's configuration, the recipe of each tensor, its other files, pictures and
//! results; `tools/oracle/make_tiny_vision.py` makes them.

use crate::{fixtures, recipe};
use serde_json::Value;
use std::path::PathBuf;

/// All of them.
pub const NAMES: &[&str] = &["llava", "llava-siglip", "idefics3", "smolvlm", "smolvlm-whole"];

/// `pictures` as files in base64, `seen` with what the tower makes of each, and `cases` of prompts.
#[must_use]
pub fn golden(name: &str) -> Value {
    let text = match name {
        "llava" => include_str!("../fixtures/vision/llava.json"),
        "llava-siglip" => include_str!("../fixtures/vision/llava-siglip.json"),
        "idefics3" => include_str!("../fixtures/vision/idefics3.json"),
        "smolvlm" => include_str!("../fixtures/vision/smolvlm.json"),
        "smolvlm-whole" => include_str!("../fixtures/vision/smolvlm-whole.json"),
        other => panic!("there is no tiny model of pictures {other}"),
    };
    serde_json::from_str(text).unwrap()
}

/// The model's folder: config.json, model.safetensors in f32, and the files of its tokenizer and processor.
#[must_use]
pub fn model(name: &str) -> PathBuf {
    let of = golden(name);
    let others = of["files"].as_object().unwrap();
    let mut files: Vec<(&str, Vec<u8>)> =
        others.iter().map(|(file, value)| (file.as_str(), value.to_string().into_bytes())).collect();
    files.push(("config.json", of["config"].to_string().into_bytes()));
    files.push(("model.safetensors", recipe::checkpoint(&of)));
    fixtures::folder(&format!("vision-{name}"), &files)
}

#[cfg(test)]
mod tests {
    use super::{NAMES, golden};
    use crate::recipe;

    #[test]
    fn python_made_the_same_bytes_of_every_model() {
        for name in NAMES {
            let of = golden(name);
            assert_eq!(recipe::digest(&of), of["sha256"].as_str().unwrap(), "{name}");
        }
    }
}
