//! `yirage config explain`: every option, its value, and who said so.

use crate::console::Console;
use crate::failure::CliFailure;
use crate::locate::locate;
use crate::options::{Default, Layers, OPTIONS, OptionKind, OptionOrigin, Spec};
use crate::settings::ResolvedSampling;
use serde::Serialize;
use serde_json::Value;
use yirage_model::{Checkpoint, GenerationConfig, RawConfig};

#[derive(Serialize)]
struct ConfigOutput {
    options: Vec<OptionReport>,
}

#[derive(Serialize)]
struct OptionReport {
    name: &'static str,
    /// A string, a list of strings, or null where only the description of the default says it.
    value: Value,
    /// `flag`, `env`, `file`, `model` or `default`.
    origin: &'static str,
    /// The variable or the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    default: &'static str,
    variable: String,
    key: String,
    help: &'static str,
}

/// Runs the command. With a model given, its suggestions are shown, too.
///
/// # Errors
/// [`CliFailure`] when the model cannot be opened.
pub(crate) fn run(layers: &Layers, console: &Console) -> Result<(), CliFailure> {
    let suggested = if layers.raw_value("model").is_some() { suggestions(layers, console)? } else { Vec::new() };
    let options: Vec<OptionReport> = OPTIONS.iter().map(|spec| explained(spec, layers, &suggested)).collect();
    if console.json {
        return console.value(&ConfigOutput { options });
    }
    let width = OPTIONS.iter().map(|s| s.name.len()).max().unwrap_or(0);
    for o in options {
        let value = match &o.value {
            Value::String(text) => text.clone(),
            Value::Null => format!("({})", o.default),
            other => other.to_string(),
        };
        let source = o.source.map(|s| format!(" {s}")).unwrap_or_default();
        console.line(&format!("{:width$}  {value}  [{}{source}]", o.name, o.origin))?;
    }
    Ok(())
}

fn suggestions(layers: &Layers, console: &Console) -> Result<Vec<(&'static str, f64)>, CliFailure> {
    let checkpoint = Checkpoint::open(locate(layers, console)?.path)?;
    let generation = GenerationConfig::load(&checkpoint, &RawConfig::load(&checkpoint)?)?;
    Ok(ResolvedSampling::resolve(layers, &generation)?.suggested)
}

fn explained(spec: &'static Spec, layers: &Layers, suggested: &[(&str, f64)]) -> OptionReport {
    let default = match spec.default {
        Default::Value(text) | Default::Described(text) => text,
    };
    let (value, origin, source) = match (layers.raw_value(spec.name), spec.default) {
        (Some(given), _) => {
            let value = match spec.kind {
                OptionKind::Texts(_) | OptionKind::Repeated(_) => given.values.clone().into(),
                _ => given.values.concat().into(),
            };
            let source = match &given.origin {
                OptionOrigin::Flag => None,
                OptionOrigin::Variable(name) => Some(name.clone()),
                OptionOrigin::File(path) => Some(path.display().to_string()),
            };
            (value, given.origin.word(), source)
        }
        (None, default) => match (suggested.iter().find(|(name, _)| *name == spec.name), default) {
            (Some((_, x)), _) => (x.to_string().into(), "model", None),
            (None, Default::Value(text)) => (text.into(), "default", None),
            (None, Default::Described(_)) => (Value::Null, "default", None),
        },
    };
    let (variable, key) = (spec.variable(), spec.key());
    OptionReport { name: spec.name, value, origin, source, default, variable, key, help: spec.help }
}
