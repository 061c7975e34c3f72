//! `yirage bench-serve`: what clients of a server see, under load.

use crate::bench_serve::{ResultFile, ServeBench, ServeBenchReport, samples};
use crate::console::Console;
use crate::failure::CliFailure;
use crate::options::Layers;
use yirage_loadgen::LoadRunner;

/// Runs the command.
///
/// # Errors
/// Whatever is wrong with the options or the server. Requests that fail are counted; a run in which none succeeded is an
/// error, after all was shown and written.
pub(crate) fn run(layers: &Layers, console: &Console) -> Result<(), CliFailure> {
    let mut bench = ServeBench::resolve(layers)?;
    bench.notes.iter().for_each(|note| console.note(note));
    let file = ResultFile::resolve(layers, bench.loads.len())?;
    let run = LoadRunner::new()?;
    run.wait_until_ready(&bench.target, bench.ready)?;
    if bench.target.model.is_empty() {
        let none = || CliFailure::Other(format!("{} names no model; give --model", bench.target.address()));
        let model = run.models(&bench.target)?.into_iter().next().ok_or_else(none)?;
        bench.target.model = model;
    }
    let samples = samples(&bench, &run, console)?;
    if bench.warmups > 0 {
        let first: Vec<_> = samples.iter().cycle().take(bench.warmups).cloned().collect();
        run.warm_up(&bench.target, &first)?;
    }
    let model = bench.target.model.clone();
    let mut report = ServeBenchReport::new(layers, file, &bench, console)?;
    let mut nothing = false;
    for load in &bench.loads {
        console.note(&format!("{} requests to {}", samples.len(), bench.target.address()));
        let ran = run.run(&bench.target, &samples, load)?;
        nothing |= ran.requests.iter().all(|seen| seen.error.is_some());
        report.run(&model, load, &ran)?;
    }
    report.finish(&model)?;
    match nothing {
        true => Err(CliFailure::Other("a run had no whole answer".into())),
        false => Ok(()),
    }
}
