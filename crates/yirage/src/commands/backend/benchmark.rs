//! `yirage backend benchmark`: ops of a model's layer, timed on each backend.

use crate::console::Console;
use crate::failure::CliFailure;
use crate::options::Layers;
use crate::settings::{open_options, threads};
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::time::Duration;
use yirage_advisor::{BackendBenchmark, BenchmarkEvent, BenchmarkSizes, OpBenchmark, OpThroughput, benchmark};
use yirage_registry::{ProbeEnvironment, Registry, RegistryError};

/// Longest run, in seconds: a day.
const MOST_SECONDS: f64 = 86_400.0;

/// Runs the command on the backends of `names`, or on all that are here.
///
/// # Errors
/// [`CliFailure::Usage`] and [`CliFailure::Backend`] for what makes no sense, [`CliFailure::Other`] where nothing could be timed.
pub(crate) fn run(layers: &Layers, console: &Console, names: &[String]) -> Result<(), CliFailure> {
    let expected = format!("a number of seconds above 0, up to {MOST_SECONDS}");
    let seconds = layers.number("duration", &expected, |&s: &f64| s > 0.0 && s <= MOST_SECONDS)?;
    let seconds = seconds.ok_or_else(|| layers.wrong("duration", &expected))?;
    let options = open_options(layers, threads(layers)?)?;
    let registry = Registry::new(ProbeEnvironment::of_this_process());
    let names: Vec<&str> = match names {
        [] => registry.list_available(),
        names => names.iter().map(String::as_str).collect(),
    };
    for name in &names {
        if let Err(unknown @ RegistryError::Unknown { .. }) = registry.select(name) {
            return Err(unknown.into());
        }
    }
    let mut progress = |next: BenchmarkEvent<'_>| {
        if let BenchmarkEvent::Op(text) = next {
            console.note(&format!("timing: {text}"));
        }
        ControlFlow::Continue(())
    };
    let time = Duration::from_secs_f64(seconds);
    let results = benchmark(&registry, &names, &options, &BenchmarkSizes::MODEL, time, &mut progress);
    if console.json {
        let backends: Vec<Value> = results.iter().map(of_backend).collect();
        console.value(&json!({"seconds": seconds, "backends": backends}))?;
    } else {
        results.iter().try_for_each(|of| show(of, console))?;
    }
    match results.iter().any(is_timed) {
        true => Ok(()),
        false => Err(CliFailure::Other(format!("nothing could be timed on {}", names.join(", ")))),
    }
}

fn is_timed(of: &BackendBenchmark) -> bool {
    of.outcome.as_ref().is_ok_and(|device| device.ops.iter().any(|op| op.outcome.is_ok()))
}

fn of_backend(of: &BackendBenchmark) -> Value {
    match &of.outcome {
        Err(error) => json!({"backend": of.backend, "error": error.to_string()}),
        Ok(device) => {
            let ops: Vec<Value> = device.ops.iter().map(of_op).collect();
            json!({"backend": of.backend, "device": device.name, "notes": device.notes, "ops": ops})
        }
    }
}

fn of_op(of: &OpBenchmark) -> Value {
    let (op, shape) = (of.op, &of.shape);
    match &of.outcome {
        Err(error) => json!({"op": op, "shape": shape, "error": error.to_string()}),
        Ok(rates) => json!({
            "op": op,
            "shape": shape,
            "steps": rates.timing.steps(),
            "median_seconds": rates.timing.median(),
            "lowest_seconds": rates.timing.lowest(),
            "highest_seconds": rates.timing.highest(),
            "ops": rates.ops,
            "bytes": rates.bytes,
            "ops_per_second": rates.ops_per_second(),
            "bytes_per_second": rates.bytes_per_second(),
        }),
    }
}

fn show(of: &BackendBenchmark, console: &Console) -> Result<(), CliFailure> {
    let device = match &of.outcome {
        Err(error) => return console.line(&format!("{}: failed: {error}", of.backend)),
        Ok(device) => device,
    };
    device.notes.iter().for_each(|note| console.note(note));
    console.line(&format!("{}: {}", of.backend, device.name))?;
    for OpBenchmark { op, shape, outcome } in &device.ops {
        let said = match outcome {
            Err(error) => format!("failed: {error}"),
            Ok(rates) => written(rates),
        };
        console.line(&format!("    {op} {shape}: {said}"))?;
    }
    Ok(())
}

fn written(rates: &OpThroughput) -> String {
    let timing = &rates.timing;
    let [median, low, high] = [timing.median(), timing.lowest(), timing.highest()].map(|seconds| seconds * 1e3);
    let ops = rates.ops_per_second().map(|rate| format!("{:.1} GOP/s, ", rate / 1e9)).unwrap_or_default();
    let (bytes, steps) = (rates.bytes_per_second() / 1e9, timing.steps());
    format!("{median:.3} ms ({low:.3} to {high:.3}, {steps} steps): {ops}{bytes:.1} GB/s")
}
