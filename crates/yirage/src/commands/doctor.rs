//! `yirage doctor`: what this machine has, what it can do, and what of that a model gets.

use crate::bench::{BenchRow, BenchTest};
use crate::commands::bench::load;
use crate::commands::encoding::LoadedEncoder;
use crate::commands::verdict::DoctorVerdict;
use crate::commands::{devices, limits};
use crate::console::{Console, bytes};
use crate::download::hub;
use crate::failure::CliFailure;
use crate::locate::locate;
use crate::options::Layers;
use crate::settings::{DeviceSettings, EncoderSettings, is_encoder, threads};
use serde_json::{Value, json};
use std::path::Path;
use yirage_advisor::{Hardware, Measurement, advise};
use yirage_engine::{ChosenVariant, LoadBytes, VariantTiming};
use yirage_hal::DeviceInfo;
use yirage_model::Checkpoint;
use yirage_registry::BackendSurvey;
use yirage_session::LocalModel;

/// What a model is measured with: long enough to tell, short enough to wait for.
const TESTS: [BenchTest; 2] = [
    BenchTest { prompt: 512, generate: 0, depth: 0, sequences: 1 },
    BenchTest { prompt: 0, generate: 32, depth: 0, sequences: 1 },
];
/// Runs of each.
const RUNS: u32 = 3;

/// Runs the command. Without `--roofline` and `--tune` nothing is measured and no model is opened.
///
/// # Errors
/// Whatever is wrong with options, model or device.
pub(crate) fn run(layers: &Layers, console: &Console) -> Result<(), CliFailure> {
    let roofline = layers.switch("roofline")?;
    let found = devices::survey();
    let folders = folders(layers);
    let limits = if roofline { measured(layers, console)? } else { Vec::new() };
    let (tune, given) = (layers.switch("tune")?, layers.raw_value("model").is_some());
    let model = if (roofline || tune) && given {
        Some(predicted(layers, console, if roofline { &TESTS } else { &[] })?)
    } else {
        None
    };
    if !(roofline || tune) && given {
        console.note(&format!("{} is not looked at without --roofline or --tune", layers.label("model")));
    }
    if tune && !given {
        return Err(CliFailure::Usage(format!(
            "{}: which model's products are measured is missing: --model",
            layers.label("tune")
        )));
    }
    if layers.switch("full")? && !tune {
        console.note(&format!("{} does nothing without --tune", layers.label("full")));
    }
    let verdict = DoctorVerdict::of(&found, &hub(layers));
    if console.json {
        let mut value = devices::as_json(&found);
        value["verdict"] = json!(verdict);
        let of_device = |d: &DeviceInfo| json!({"backend": d.backend, "ordinal": d.ordinal, "advice": advise(&Hardware::from(d)).notes});
        value["advice"] = devices::usable(&found).map(of_device).collect();
        value["folders"] = json!(folders);
        if roofline {
            value["roofline"] = limits::as_json(&limits);
        }
        if roofline || tune {
            value["model"] = json!(model);
        }
        return console.value(&value);
    }
    devices::show(&found, console)?;
    show_advice(&found, console)?;
    console.line("folders:")?;
    for folder in &folders {
        console.line(&format!(
            "    {}: {}, {}",
            text(&folder["for"]),
            text(&folder["path"]),
            text(&folder["state"])
        ))?;
    }
    limits::show(&limits, console)?;
    if let Some(model) = model {
        show_model(&model, console)?;
    }
    verdict.show(console)
}

/// Folders that the program writes to or reads from, and whether they are there.
fn folders(layers: &Layers) -> Vec<Value> {
    let folder = |what: &str, path: &Path| {
        let state = match std::fs::metadata(path) {
            Ok(m) if !m.is_dir() => "no folder",
            Ok(m) if m.permissions().readonly() => "there, read-only",
            Ok(_) => "there",
            Err(_) => "not there yet",
        };
        json!({"for": what, "path": path, "state": state})
    };
    let hub = hub(layers);
    let mut list = match hub.env().homeless {
        true => vec![
            json!({"for": "models of all tools (HF_HUB_CACHE)", "path": null, "state": "nowhere: HOME is not set"}),
        ],
        false => vec![folder("models of all tools (HF_HUB_CACHE)", &hub.env().cache)],
    };
    list.extend(layers.text("models").map(|path| folder("models by file name (--models)", Path::new(path))));
    list
}

/// Every ceiling of the device that the options name; those it does not have with the reason.
fn measured(layers: &Layers, console: &Console) -> Result<Vec<Measurement>, CliFailure> {
    let (device, notes) = DeviceSettings::resolve(layers)?.open(layers)?;
    notes.iter().for_each(|note| console.note(note));
    limits::measured(&*device, console)
}

/// How kernels go about a model's products; what the ceilings would allow it in `tests`, and what it got.
fn predicted(layers: &Layers, console: &Console, tests: &[BenchTest]) -> Result<Value, CliFailure> {
    let located = locate(layers, console)?;
    if layers.switch("tune")? && layers.switch("full")? {
        console.note("every product of the model is measured by every variant, which takes minutes");
    }
    if tests.is_empty() && is_encoder(&Checkpoint::open(&located.path)?)? {
        return encoder(layers, console, &located);
    }
    let threads = threads(layers)?;
    let (mut bench, setup) = load(layers, console, &located, threads, TESTS[0].prompt, &TESTS)?;
    let mut rows = Vec::new();
    for test in tests {
        console.note(&format!("{}: {test}", located.name));
        bench.warm_up(test)?;
        let least = bench.predict(test)?;
        let samples = (0..RUNS).map(|turn| bench.run(test, turn)).collect::<Result<Vec<_>, _>>()?;
        let row = BenchRow::new(&setup, test, bench.executor(test), &samples);
        rows.push(json!({
            "test": test.to_string(),
            "predicted_ts": least.map(|l| test.tokens() as f64 / l.both),
            "bound": least.map(|l| l.bound()),
            "got": row,
        }));
    }
    let facts = bench.engine().facts();
    Ok(of_model(&located, &facts.bytes, facts.variant.as_ref(), &rows))
}

/// How kernels go about an encoder's products.
fn encoder(layers: &Layers, console: &Console, located: &LocalModel) -> Result<Value, CliFailure> {
    let encoder = LoadedEncoder::open(&EncoderSettings::resolve(layers)?, layers, console, located)?;
    let facts = encoder.facts();
    Ok(of_model(located, &facts.bytes, facts.variant.as_ref(), &[]))
}

fn of_model(located: &LocalModel, bytes: &LoadBytes, variant: Option<&ChosenVariant>, tests: &[Value]) -> Value {
    let variant = variant.map(|variant| {
        json!({
            "choices": variant.text,
            "why": variant.origin.to_string(),
            "answers": answers(&variant.answers),
            "full": answers(&variant.full),
        })
    });
    json!({
        "model": located.name,
        "weight_bytes": bytes.weights,
        "cache_bytes": bytes.cache,
        "arena_bytes": bytes.arena,
        "variant": variant,
        "tests": tests,
    })
}

fn answers(all: &[VariantTiming]) -> Vec<Value> {
    let one = |a: &VariantTiming| {
        json!({
            "choices": a.choices,
            "tokens": a.tokens,
            "seconds": a.seconds,
            "median": a.median,
            "longest": a.longest,
            "own": a.own,
            "selected": a.selected,
        })
    };
    all.iter().map(one).collect()
}

fn show_advice(found: &[BackendSurvey], console: &Console) -> Result<(), CliFailure> {
    for device in devices::usable(found) {
        console.line(&format!("advice for {} {}:", device.backend, device.ordinal))?;
        for sentence in advise(&Hardware::from(device)).notes {
            console.line(&format!("    {sentence}"))?;
        }
    }
    Ok(())
}

fn show_model(model: &Value, console: &Console) -> Result<(), CliFailure> {
    let size = |name: &str| bytes(model[name].as_u64().unwrap_or(0));
    console.line(&format!(
        "{}: weights {}, cache {}, scratch {}",
        text(&model["model"]),
        size("weight_bytes"),
        size("cache_bytes"),
        size("arena_bytes")
    ))?;
    if let Some(choices) = model["variant"]["choices"].as_str() {
        console.line(&format!("    kernels: {choices} ({})", text(&model["variant"]["why"])))?;
    }
    show_answers(&model["variant"]["answers"], "seconds", console)?;
    if model["variant"]["full"].as_array().is_some_and(|full| !full.is_empty()) {
        console.line("    with every weight, medians (+ what a first start selects):")?;
        show_answers(&model["variant"]["full"], "median", console)?;
    }
    for t in model["tests"].as_array().into_iter().flatten() {
        let got = t["got"]["median_ts"].as_f64().unwrap_or(0.0);
        let test = text(&t["test"]);
        match t["predicted_ts"].as_f64() {
            Some(predicted) => {
                let (bound, share) = (text(&t["bound"]), t["got"]["share_of_roofline"].as_f64().unwrap_or(0.0) * 100.0);
                console.line(&format!(
                    "    {test}: at most {predicted:.1} tokens/s ({bound}), got {got:.1}: {share:.0} % of the limit as it was then"
                ))?;
            }
            None => console.line(&format!("    {test}: {got:.1} tokens/s; this device does not measure itself"))?,
        }
    }
    Ok(())
}

fn show_answers(answers: &Value, time: &str, console: &Console) -> Result<(), CliFailure> {
    for a in answers.as_array().into_iter().flatten() {
        let mark = match (a["selected"] == true, a["own"] == true && time == "median") {
            (true, _) => '*',
            (false, true) => '+',
            (false, false) => ' ',
        };
        let ms = a[time].as_f64().unwrap_or(0.0) * 1e3;
        console.line(&format!("    {mark} {:>3} tokens {ms:8.2} ms  {}", a["tokens"], text(&a["choices"])))?;
    }
    Ok(())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
