//! `yirage verify`: a backend beside the reference, op by op, format by format, and a whole model.

use crate::console::Console;
use crate::download::shipped;
use crate::failure::CliFailure;
use crate::locate::named;
use crate::options::Layers;
use crate::settings::DeviceSettings;
use crate::verify::{ModelTask, VerifyComparison, VerifyRecord, model_record, show, suite_record};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use yirage_conformance::Suite;
use yirage_ir::Op;
use yirage_ir::rng::Rng;
use yirage_model::{Checkpoint, RawConfig};
use yirage_session::TextProcessor;

/// Tokens that a model reads.
const TOKENS: usize = 48;
/// What it reads, where it has a tokenizer.
const TEXT: &str = "Once upon a time there was a little girl who lived with her mother in a small house by the sea. Every \
                    morning she ran down to the shore to see what the waves had brought, and one day she found a green \
                    bottle with a letter in it, which nobody in the village could read.";
/// Wrong results that the error names.
const NAMED: usize = 3;

/// Runs the command.
///
/// # Errors
/// [`CliFailure::Wrong`] naming what differs from the reference, [`CliFailure::Worse`] where it did not before, and whatever
/// is wrong with options, files or the device.
pub(crate) fn run(layers: &Layers, console: &Console) -> Result<(), CliFailure> {
    let (ops, quick) = (ops(layers)?, layers.switch("quick")?);
    let before = layers.text("compare").map(|file| VerifyRecord::read(Path::new(file))).transpose()?;
    let settings = DeviceSettings::resolve(layers)?;
    let model = model(layers, console, ops.is_some())?;
    let (device, notes) = settings.open(layers)?;
    notes.iter().for_each(|note| console.note(note));
    // Before minutes are spent on what could not be written.
    let output = layers.text("verify-output").map(|file| OutputFile::open(Path::new(file))).transpose()?;
    console.note("computing what the reference gives");
    let names: Vec<&str> = ops.iter().flatten().map(String::as_str).collect();
    let names = if ops.is_some() { names.as_slice() } else { Op::NAMES };
    let suite = if quick { Suite::quick_of(names) } else { Suite::of(names) };
    let mut cases = suite_record(&suite, &*device, console);
    (cases.quick, cases.only) = (quick, ops);
    let model = model.map(|task| model_record(&task, &device, &mut |what| console.note(what))).transpose()?;
    let mut record = VerifyRecord::new(device.info(), cases, model);
    if let Some(output) = output {
        output.write(&record.text()?)?;
    }
    record.compare = before.map(|before| VerifyComparison::new(&before, &record));
    if console.json {
        console.value(&record)?
    } else {
        show(&record, console)?
    }
    verdict(&record)
}

/// The ops that are asked for.
fn ops(layers: &Layers) -> Result<Option<Vec<String>>, CliFailure> {
    let Some(given) = layers.text("ops") else { return Ok(None) };
    let ops: Vec<String> = given.split(',').map(|op| op.trim().to_owned()).collect();
    if ops.iter().all(|op| Op::NAMES.contains(&op.as_str())) {
        return Ok(Some(ops));
    }
    Err(layers.wrong("ops", format!("names separated by commas, of {}", Op::NAMES.join(", "))))
}

fn verdict(record: &VerifyRecord) -> Result<(), CliFailure> {
    let wrong = record.wrong();
    let worse = record.compare.as_ref().map_or(0, |compare| compare.worse.len());
    match (wrong.len(), worse) {
        (0, 0) => Ok(()),
        (0, worse) => Err(CliFailure::Worse(worse)),
        (count, _) => {
            let others = if count > NAMED { format!("; and {} others", count - NAMED) } else { String::new() };
            let names = format!("{}{others}", wrong.iter().take(NAMED).cloned().collect::<Vec<_>>().join("; "));
            Err(CliFailure::Wrong { count, backend: record.device.backend.clone(), names })
        }
    }
}

/// A file to write, opened.
struct OutputFile {
    path: PathBuf,
    file: File,
}

impl OutputFile {
    /// Opens it and leaves what it holds as it is.
    fn open(path: &Path) -> Result<OutputFile, CliFailure> {
        let file = File::options().write(true).create(true).truncate(false).open(path);
        Ok(OutputFile { path: path.to_owned(), file: file.map_err(|e| CliFailure::io(path, e))? })
    }

    /// Replaces what it holds.
    fn write(mut self, text: &str) -> Result<(), CliFailure> {
        let written = self.file.set_len(0).and_then(|()| self.file.write_all(text.as_bytes()));
        written.map_err(|e| CliFailure::io(&self.path, e))
    }
}

/// The model that is asked for, else the one within the program; none beside `--ops`, which look at something else.
fn model(layers: &Layers, console: &Console, has_ops: bool) -> Result<Option<ModelTask>, CliFailure> {
    if let Some(name) = layers.text("verify-model") {
        let found = named(name, layers, console)?;
        let name = found.name.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        return task(name, &found.path, layers).map(Some);
    }
    match shipped() {
        _ if has_ops => Ok(None),
        Some(shipped) => {
            let folder = tempfile::tempdir().map_err(|e| CliFailure::io(&std::env::temp_dir(), e))?;
            let path = folder.path().join(shipped.file);
            std::fs::write(&path, shipped.bytes).map_err(|e| CliFailure::io(&path, e))?;
            let task = task(shipped.name, &path, layers)?;
            Ok(Some(ModelTask { _unpacked: Some(folder), ..task }))
        }
        None => {
            console.note("no model is run: this program carries none (feature `stories`); name one with --model");
            Ok(None)
        }
    }
}

/// What is to be computed of the model in these files.
fn task(name: &str, path: &Path, layers: &Layers) -> Result<ModelTask, CliFailure> {
    let checkpoint = Checkpoint::open(path)?;
    let (reference, _) = DeviceSettings::named(layers.text("against").unwrap_or_default())?.open(layers)?;
    Ok(ModelTask { name: name.to_owned(), tokens: tokens(&checkpoint)?, checkpoint, reference, _unpacked: None })
}

/// The tokens of [`TEXT`], or some where the model has no tokenizer.
fn tokens(checkpoint: &Checkpoint) -> Result<Vec<u32>, CliFailure> {
    let config = RawConfig::load(checkpoint)?;
    let most = config.opt_u32("max_position_embeddings")?.map_or(TOKENS, |context| TOKENS.min(context as usize));
    let mut tokens = match TextProcessor::load(checkpoint)? {
        Some(texts) => texts.encode_raw(TEXT, None)?,
        None => {
            let (mut rng, vocabulary) = (Rng::new(1), u64::from(config.u32("vocab_size")?).max(1));
            (0..TOKENS).map(|_| rng.below(vocabulary) as u32).collect()
        }
    };
    tokens.truncate(most);
    Ok(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::report;
    use serde_json::{Value, json};

    /// A record whose suite and model are as given.
    fn record(suite: &Value, model: &Value) -> VerifyRecord {
        let device = json!({"backend": "x", "ordinal": 0, "name": "a", "arch": "b", "driver_version": null,
            "sdk_version": null, "software": false, "facts": {}});
        let build = json!({"version": "0", "commit": null, "features": [], "system": "s", "machine": "m"});
        let record =
            json!({"schema": 1, "date": "d", "build": build, "device": device, "suite": suite, "model": model});
        serde_json::from_value(record).unwrap()
    }

    fn suite(failed: usize) -> Value {
        let failed: Vec<Value> = (0..failed).map(|n| json!({"case": format!("map: {n}"), "why": "off"})).collect();
        json!({"quick": false, "only": null, "cases": 9, "ops": [], "formats": [], "refused": [], "rounded": [],
            "failed": failed})
    }

    #[test]
    fn wrong_results_have_a_code_of_their_own_and_are_named() {
        assert!(verdict(&record(&suite(0), &Value::Null)).is_ok());
        let failure = verdict(&record(&suite(5), &Value::Null)).unwrap_err();
        let names = "map: 0; map: 1; map: 2; and 2 others";
        assert_eq!(failure.to_string(), format!("5 results on x differ from the reference: {names}"));
        assert_eq!(report(&failure, true), 6);
        let run = json!({"precision": "exact", "error": null, "kv": "f32", "drift": [1.0], "same_when_cut": true,
            "kl_mean": 0.0, "kl_most": 0.0, "different": 0, "first_different": null, "wrong": ["a drift"]});
        let model = json!({"name": "m", "architecture": "llama", "against": "reference", "tokens": 2, "at_once": 1,
            "runs": [run]});
        let failure = verdict(&record(&suite(0), &model)).unwrap_err();
        assert!(failure.to_string().ends_with(": the model in exact: a drift"), "{failure}");
    }
}
