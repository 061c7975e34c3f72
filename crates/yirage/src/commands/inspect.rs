//! `yirage inspect`: what a model's files hold, and what is wrong with them.

use crate::console::{Console, bytes};
use crate::failure::CliFailure;
use crate::locate::named;
use crate::options::Layers;
use serde_json::{Map, Value, json};
use yirage_model::chat::{ChatTemplate, DEFAULT_TEMPLATE, Templates};
use yirage_model::checkpoint::CheckpointKind;
use yirage_model::checkpoint::{StoredType, TensorInfo};
use yirage_model::lint::{LintFinding, Severity, lint};
use yirage_model::{Checkpoint, RawConfig, gguf};
use yirage_session::TextProcessor;

/// Longest array of metadata that is shown in full.
const SHORT_ARRAY: usize = 16;

/// Runs the command. Headers are read, weights are not.
///
/// # Errors
/// [`CliFailure::Model`] for files that cannot be opened; flaws of the model are results, not errors.
pub(crate) fn run(layers: &Layers, console: &Console) -> Result<(), CliFailure> {
    // The model that other commands take where none is named is hundreds of megabytes, which nobody fetches for its header.
    let located = named(layers.text("model").ok_or_else(no_model)?, layers, console)?;
    let checkpoint = Checkpoint::open(&located.path)?;
    let report = report(&located.name, &checkpoint);
    if console.json { console.value(&report) } else { show(&report, console) }
}

fn no_model() -> CliFailure {
    let what = "expected a model, got none; name it: `yirage inspect MODEL` (`yirage list` shows what is here)";
    CliFailure::Usage(what.to_owned())
}

fn report(name: &str, checkpoint: &Checkpoint) -> Value {
    let config = RawConfig::load(checkpoint).ok();
    let architecture = config.as_ref().and_then(|c| c.model_type().ok()).map(str::to_owned);
    let files: Vec<Value> = checkpoint.files().iter().map(|f| json!({"path": f.path, "bytes": f.bytes})).collect();
    let parameters = checkpoint.tensors().fold(0u64, |n, t| n.saturating_add(t.elements() as u64));
    let mut findings: Vec<Value> = lint(checkpoint).iter().map(finding).collect();
    let texts = TextProcessor::load(checkpoint).unwrap_or_else(|e| {
        findings
            .push(json!({"severity": "error", "place": "tokenizer or template", "what": e.to_string(), "remedy": ""}));
        None
    });
    let templates = texts.as_ref().map(|t| templates(&t.templates, &mut findings)).unwrap_or_default();
    let tokenizer = texts.as_ref().map(|t| {
        let ids = t.tokenizer.special_ids();
        json!({"tokens": t.tokenizer.vocab_size(), "bos": ids.bos, "eos": ids.eos, "ends": ids.ends})
    });
    json!({
        "model": name,
        "container": match checkpoint.kind() {
            CheckpointKind::Gguf => "gguf",
            CheckpointKind::Safetensors => "safetensors",
        },
        "architecture": architecture,
        "parameters": parameters,
        "bytes": checkpoint.total_bytes(),
        "files": files,
        "metadata": metadata(checkpoint),
        "config": config.map(|c| c.values().clone()),
        "tokenizer": tokenizer,
        "chat_template": templates.get(DEFAULT_TEMPLATE),
        "chat_templates": templates,
        "tensors": checkpoint.tensors().map(|t| tensor(checkpoint, t)).collect::<Vec<_>>(),
        "lint": findings,
    })
}

/// The sources by name; what is wrong with one becomes a finding: an error with the one that is used where none is chosen.
fn templates(all: &Templates, findings: &mut Vec<Value>) -> Map<String, Value> {
    let mut sources = Map::new();
    let mut add = |severity: &str, what: String| {
        let remedy = "choose another with --chat-template, or none with --raw";
        findings.push(json!({"severity": severity, "place": "chat template", "what": what, "remedy": remedy}));
    };
    let default = all.choose(None, false).unwrap_or_else(|e| {
        add("error", e.to_string());
        None
    });
    for (name, source) in all.iter() {
        if let Err(e) = ChatTemplate::new(name, source) {
            let is_default = default.is_some_and(|(default, _)| default == name);
            add(if is_default { "error" } else { "warning" }, e.to_string());
        }
        sources.insert(name.to_owned(), source.into());
    }
    sources
}

/// A tensor as it is stored, with what it is decoded into where that is something else.
fn tensor(checkpoint: &Checkpoint, t: &TensorInfo) -> Value {
    let mut shown = json!({"name": t.name, "dtype": t.dtype.to_string(), "shape": t.shape,
        "bytes": checkpoint.stored_bytes(t)});
    if let Ok(format) = checkpoint.format(t)
        && t.dtype != StoredType::Format(format)
    {
        shown["computed"] = format.info().name.into();
        shown["computed_bytes"] = format.info().row_bytes(t.elements()).into();
    }
    shown
}

fn finding(f: &LintFinding) -> Value {
    let severity = match f.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    };
    json!({"severity": severity, "place": f.place, "what": f.what, "remedy": f.remedy})
}

fn metadata(checkpoint: &Checkpoint) -> Map<String, Value> {
    if let Some(gguf) = checkpoint.gguf() {
        return gguf.metadata().map(|(key, value)| (key.to_owned(), shown(value))).collect();
    }
    let texts = checkpoint.safetensors_metadata().into_iter().flatten();
    texts.map(|(key, value)| (key.clone(), Value::from(value.as_str()))).collect()
}

/// A metadata value; long arrays by their type and length.
fn shown(value: &gguf::GgufValue) -> Value {
    if let Some(array) = value.as_array() {
        if array.len() > SHORT_ARRAY {
            return format!("{} with {} elements", array.type_name(), array.len()).into();
        }
        return (0..array.len()).filter_map(|i| array.get(i)).map(|v| shown(&v)).collect();
    }
    let number = value.as_int().and_then(|i| i64::try_from(i).ok()).map(Value::from);
    let text = || value.as_str().map(Value::from);
    number
        .or_else(|| value.as_f64().map(Value::from))
        .or_else(|| value.as_bool().map(Value::from))
        .or_else(text)
        .unwrap_or(Value::Null)
}

fn show(report: &Value, console: &Console) -> Result<(), CliFailure> {
    let text = |v: &Value| v.as_str().map_or_else(|| v.to_string(), str::to_owned);
    let list = |key: &str| report[key].as_array().cloned().unwrap_or_default();
    let size = |v: &Value| bytes(v["bytes"].as_u64().unwrap_or(0));
    console.line(&format!(
        "{}: {} ({}), {} parameters, {}",
        text(&report["model"]),
        text(&report["architecture"]),
        text(&report["container"]),
        report["parameters"],
        size(report)
    ))?;
    for file in list("files") {
        console.line(&format!("  {}  {}", text(&file["path"]), size(&file)))?;
    }
    console.line("metadata:")?;
    for (key, value) in report["metadata"].as_object().into_iter().flatten() {
        console.line(&format!("  {key} = {}", if value.is_string() { format!("{value}") } else { text(value) }))?;
    }
    console.line(&format!("tokenizer: {}", report["tokenizer"]))?;
    let templates = report["chat_templates"].as_object();
    for (name, source) in templates.into_iter().flatten() {
        console.line(&format!("chat template {name}:\n{}", text(source)))?;
    }
    if templates.is_none_or(Map::is_empty) {
        console.line("chat template: none")?;
    }
    console.line("tensors:")?;
    for t in list("tensors") {
        let computed =
            t["computed_bytes"].as_u64().map(|n| format!(", computed as {}, {}", text(&t["computed"]), bytes(n)));
        let computed = computed.unwrap_or_default();
        console.line(&format!(
            "  {}  {} {}  {}{computed}",
            text(&t["name"]),
            text(&t["dtype"]),
            t["shape"],
            size(&t)
        ))?;
    }
    console.line("findings:")?;
    for f in list("lint") {
        let place = [text(&f["severity"]), text(&f["place"]), text(&f["what"])].join(": ");
        console.line(&format!("  {place}; {}", text(&f["remedy"])))?;
    }
    Ok(())
}
