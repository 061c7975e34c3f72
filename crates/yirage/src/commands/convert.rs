//! `yirage convert`: a folder of safetensors written as one GGUF file.

use crate::console::{Console, bytes};
use crate::failure::CliFailure;
use crate::locate::named;
use crate::options::Layers;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use yirage_convert::{ConversionPlan, ConvertOptions, ConvertedTensor, Mix, ModelTexts, RoundedNumbers, WrittenGguf};
use yirage_model::Checkpoint;
use yirage_session::TextProcessor;

/// Runs the command.
///
/// # Errors
/// Whatever is wrong with the options or the files; [`CliFailure::Convert`].
pub(crate) fn run(layers: &Layers, console: &Console) -> Result<(), CliFailure> {
    // The model that other commands take where none is named is a GGUF file already.
    let given = layers.text("model").ok_or_else(no_model)?;
    let located = named(given, layers, console)?;
    let source = located.path.as_path();
    let checkpoint = Checkpoint::open(source)?;
    let texts = if checkpoint.gguf().is_some() { None } else { TextProcessor::load(&checkpoint)? };
    let texts = texts.as_ref().map(|t| ModelTexts { tokenizer: &t.tokenizer, templates: &t.templates });
    let plan = ConversionPlan::new(&checkpoint, texts, &options(layers)?)?;
    let output = output(given, source, plan.outtype, layers);
    notices(&plan, texts.is_some(), console);
    let written = if layers.switch("dry-run")? {
        None
    } else {
        let bar = console.progress(&format!("{} as {}", source.display(), plan.outtype.name), plan.tensor_bytes(), 0);
        let mut progress = |tensor: &ConvertedTensor| {
            bar.inc(tensor.bytes());
            console.detail(&line(tensor));
        };
        let written = plan.write(&output, layers.switch("force")?, &mut progress)?;
        bar.finish_and_clear();
        Some(written)
    };
    if let Some(written) = &written {
        roundings(&plan, written, console);
    }
    if console.json {
        return console.value(&report(&plan, &output, written.as_ref()));
    }
    console.line(&match written {
        Some(written) => format!("{}: {}, {} tensors", output.display(), bytes(written.bytes), plan.tensors.len()),
        None => format!(
            "{} would have {} tensors of {}; nothing was written",
            output.display(),
            plan.tensors.len(),
            bytes(plan.tensor_bytes())
        ),
    })
}

fn no_model() -> CliFailure {
    CliFailure::Usage("expected a folder with safetensors, got none; name it: `yirage convert FOLDER`".to_owned())
}

fn options(layers: &Layers) -> Result<ConvertOptions, CliFailure> {
    let outtype = match layers.text("outtype") {
        None | Some("auto") => None,
        Some(name) => Some(Mix::of_floats(name)?),
    };
    Ok(ConvertOptions { outtype, name: layers.text("model-name").map(str::to_owned) })
}

/// What the options name, or `NAME-F16.gguf` beside the folder; where the user is of what was found in a cache or in the
/// folder of models.
fn output(given: &str, source: &Path, outtype: Mix, layers: &Layers) -> PathBuf {
    if let Some(named) = layers.text("outfile") {
        return named.into();
    }
    let whole = source.canonicalize().unwrap_or_else(|_| source.to_owned());
    let folder = if whole.is_dir() { whole.as_path() } else { whole.parent().unwrap_or(&whole) };
    let name = format!("{}-{}.gguf", folder.file_name().unwrap_or_default().to_string_lossy(), outtype.name);
    if Path::new(given) == source { folder.with_file_name(name) } else { name.into() }
}

/// What the file has not of the folder.
fn notices(plan: &ConversionPlan<'_>, texts: bool, console: &Console) {
    if !texts {
        console.note("there is no tokenizer.json: the file has no tokenizer, and takes token ids alone");
    }
    plan.notes.iter().for_each(|note| console.note(note));
    if let Some(first) = plan.left_out.first() {
        let count = plan.left_out.len();
        console
            .note(&format!("{count} tensors that the model does not read are left out, {first:?} first; -v names all"));
        plan.left_out.iter().for_each(|name| console.detail(&format!("{name}: left out")));
    }
}

/// What became of the numbers, of matrices that have fewer bits than they had.
fn roundings(plan: &ConversionPlan<'_>, written: &WrittenGguf, console: &Console) {
    let mut all = RoundedNumbers::default();
    for (tensor, rounded) in plan.tensors.iter().zip(&written.rounded).filter(|(_, rounded)| rounded.changed > 0) {
        all += *rounded;
        console.detail(&format!("{}: {} numbers rounded, {} to zero", tensor.name(), rounded.changed, rounded.to_zero));
    }
    if all.changed > 0 {
        let (changed, name) = (all.changed, plan.outtype.name);
        console.note(&format!(
            "{changed} numbers were rounded to {name}, {} of them to zero; -v names the tensors",
            all.to_zero
        ));
    }
}

fn line(tensor: &ConvertedTensor) -> String {
    let to = tensor.to.name().unwrap_or_default();
    format!("{} {:?}: {} to {to}, {}", tensor.name(), tensor.shape, tensor.from().info().name, bytes(tensor.bytes()))
}

fn report(plan: &ConversionPlan<'_>, output: &Path, written: Option<&WrittenGguf>) -> Value {
    let tensor = |(i, t): (usize, &ConvertedTensor)| {
        let rounded = written.map(|w| w.rounded[i]);
        json!({"name": t.name(), "shape": t.shape, "from": t.from().info().name, "to": t.to.name(), "bytes": t.bytes(),
            "sources": t.sources(), "rounded": rounded.map(|r| r.changed), "rounded_to_zero": rounded.map(|r| r.to_zero)})
    };
    json!({"output": written.map(|_| output), "bytes": written.map(|w| w.bytes), "outtype": plan.outtype.name,
        "tensor_bytes": plan.tensor_bytes(), "left_out": plan.left_out, "notes": plan.notes,
        "tensors": plan.tensors.iter().enumerate().map(tensor).collect::<Vec<_>>()})
}
