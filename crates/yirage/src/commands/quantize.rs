//! `yirage quantize`: a GGUF file of floats written anew with few bits a weight.

use crate::console::{Console, bytes};
use crate::failure::CliFailure;
use crate::locate::named;
use crate::options::Layers;
use serde_json::{Value, json};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use yirage_convert::{ConvertError, Importances, Mix, QuantizeOptions, QuantizePlan, TensorPlan, quantize};
use yirage_mmap::MappedFile;
use yirage_model::gguf::{GgmlType, Gguf};

/// Runs the command.
///
/// # Errors
/// Whatever is wrong with the options or the files; [`CliFailure::Convert`].
pub(crate) fn run(layers: &Layers, console: &Console) -> Result<(), CliFailure> {
    // The model that other commands take where none is named is quantised already.
    let given = layers.text("model").ok_or_else(no_model)?;
    let located = named(given, layers, console)?;
    let source = located.path.as_path();
    let mix = Mix::parse(layers.text("mix").unwrap_or_default())?;
    // What was found in a cache or in the folder of models is written where the user is.
    let unnamed = || if Path::new(given) == source { beside(source, mix) } else { file_name(source, mix).into() };
    let output = layers.text("quantized").map_or_else(unnamed, PathBuf::from);
    let threads = threads(layers)?;
    if source.is_dir() {
        return Err(ConvertError::NotGguf { path: source.to_owned() }.into());
    }
    let mapped = MappedFile::open(source).map_err(|e| CliFailure::Other(e.to_string()))?;
    let gguf = Gguf::parse(mapped.bytes(), &source.display().to_string())?;
    let importances = layers.text("imatrix").map(|path| Importances::read(Path::new(path))).transpose()?;
    let plan = QuantizePlan::new(&gguf, mix, &options(layers)?, importances.as_ref())?;
    notices(&plan, importances.as_ref(), console);
    let written = if layers.switch("dry-run")? {
        None
    } else {
        let bar = console.progress(&format!("{} as {}", source.display(), mix.name), plan.bytes_before(), 0);
        let mut progress = |tensor: &TensorPlan| {
            bar.inc(tensor.bytes_before());
            console.detail(&line(tensor));
        };
        let to = yirage_convert::Output { path: &output, force: layers.switch("force")?, threads };
        let written = quantize(mapped.bytes(), &gguf, &plan, importances.as_ref(), &to, &mut progress)?;
        bar.finish_and_clear();
        // A file that was cut off meanwhile reads as zeros behind its end.
        mapped.intact().map_err(|e| CliFailure::Other(e.to_string()))?;
        Some(written)
    };
    if console.json { console.value(&report(&plan, &output, written)) } else { show(&plan, &output, written, console) }
}

fn no_model() -> CliFailure {
    CliFailure::Usage(
        "expected a model whose weights are floats, got none; name it: `yirage quantize MODEL Q4_K_M`".to_owned(),
    )
}

fn options(layers: &Layers) -> Result<QuantizeOptions, CliFailure> {
    Ok(QuantizeOptions {
        allow_requantize: layers.switch("allow-requantize")?,
        pure: layers.switch("pure")?,
        leave_output: layers.switch("leave-output-tensor")?,
        output_format: layers.text("output-tensor-type").map(str::to_owned),
        embedding_format: layers.text("token-embedding-type").map(str::to_owned),
    })
}

fn threads(layers: &Layers) -> Result<NonZeroUsize, CliFailure> {
    let asked = layers.number("quantize-threads", "a number of threads from 1 on", |_| true)?;
    Ok(asked.unwrap_or_else(|| std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)))
}

/// `name-Q4_K_M.gguf` beside `name-f16.gguf`.
fn beside(source: &Path, mix: Mix) -> PathBuf {
    source.with_file_name(file_name(source, mix))
}

/// The name without the format of the floats, with the mix's.
fn file_name(source: &Path, mix: Mix) -> String {
    let stem = source.file_stem().unwrap_or_default().to_string_lossy();
    let upper = stem.to_ascii_uppercase();
    let floats = ["F32", "F16", "BF16"].iter().flat_map(|name| ["-", "."].map(|dot| format!("{dot}{name}")));
    let cut = floats.filter(|end| upper.ends_with(end.as_str())).map(|end| end.len()).max().unwrap_or(0);
    format!("{}-{}.gguf", &stem[..stem.len() - cut], mix.name)
}

/// What is not as the mix's name says.
fn notices(plan: &QuantizePlan, importances: Option<&Importances>, console: &Console) {
    let mut fallbacks: Vec<((u64, GgmlType, GgmlType), usize)> = Vec::new();
    for tensor in &plan.tensors {
        let Some(wanted) = tensor.fell_back_from else { continue };
        let kind = (tensor.columns(), wanted, tensor.to);
        match fallbacks.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, count)) => *count += 1,
            None => fallbacks.push((kind, 1)),
        }
    }
    for ((columns, wanted, to), count) in fallbacks {
        let (wanted, to) = (format_name(wanted), format_name(to));
        console.note(&format!(
            "{count} tensors of {columns} columns, no whole blocks of {wanted}, become {to}; -v names all tensors"
        ));
    }
    let without = plan.tensors.iter().filter(|t| t.from != t.to && !t.important).count();
    if importances.is_some() && without > 0 {
        console.note(&format!(
            "{without} tensors are quantised without importances: the file has none for them; -v names all tensors"
        ));
    }
}

fn line(tensor: &TensorPlan) -> String {
    let important = if tensor.important { ", by importances" } else { "" };
    let (from, to) = (format_name(tensor.from), format_name(tensor.to));
    format!("{} {:?}: {from} to {to}{important}, {}", tensor.name, tensor.shape, bytes(tensor.bytes()))
}

/// The published name of a format.
fn format_name(ty: GgmlType) -> String {
    ty.name().map_or_else(|| ty.to_string(), str::to_owned)
}

/// How many tensors have each format, and their bytes.
fn formats(plan: &QuantizePlan) -> Vec<(String, usize, u64)> {
    let mut all: Vec<(String, usize, u64)> = Vec::new();
    for tensor in &plan.tensors {
        let name = format_name(tensor.to);
        match all.iter_mut().find(|(known, ..)| *known == name) {
            Some((_, count, sum)) => (*count, *sum) = (*count + 1, *sum + tensor.bytes()),
            None => all.push((name, 1, tensor.bytes())),
        }
    }
    all.sort_by_key(|(.., sum)| std::cmp::Reverse(*sum));
    all
}

fn report(plan: &QuantizePlan, output: &Path, written: Option<u64>) -> Value {
    let tensor = |t: &TensorPlan| {
        json!({"name": t.name, "shape": t.shape, "from": t.from.name(), "to": t.to.name(), "bytes": t.bytes(),
            "importances": t.important, "fell_back_from": t.fell_back_from.and_then(|ty| ty.name())})
    };
    json!({"output": written.map(|_| output), "bytes": written, "mix": plan.mix.name,
        "tensor_bytes": {"before": plan.bytes_before(), "after": plan.bytes_after()},
        "tensors": plan.tensors.iter().map(tensor).collect::<Vec<_>>()})
}

fn show(plan: &QuantizePlan, output: &Path, written: Option<u64>, console: &Console) -> Result<(), CliFailure> {
    for (format, count, sum) in formats(plan) {
        console.line(&format!("{format}: {count} tensors, {}", bytes(sum)))?;
    }
    let (before, after) = (bytes(plan.bytes_before()), bytes(plan.bytes_after()));
    console.line(&match written {
        Some(written) => format!("{}: {}, tensors {before} before and {after} now", output.display(), bytes(written)),
        None => format!("{} would have tensors of {after}, {before} before; nothing was written", output.display()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_new_file_lies_beside_and_says_its_mix() {
        let mix = Mix::parse("q4_k_m").unwrap();
        for (source, expected) in [
            ("a/tiny-f16.gguf", "a/tiny-Q4_K_M.gguf"),
            ("tiny.BF16.gguf", "tiny-Q4_K_M.gguf"),
            ("tiny.gguf", "tiny-Q4_K_M.gguf"),
            ("f16.gguf", "f16-Q4_K_M.gguf"),
        ] {
            assert_eq!(beside(Path::new(source), mix), Path::new(expected));
        }
    }
}
