//! `yirage bench-graph`: how fast the graphs of Mirage's benchmarks run here, and how much of the machine that is.

use crate::bench_graph::{GraphBenchRow, GraphBenchSettings, TimedGraph};
use crate::console::Console;
use crate::failure::CliFailure;
use crate::options::Layers;
use crate::settings::DeviceSettings;
use serde_json::json;
use std::io;
use yirage_graph::workloads::ALL;

/// Runs the command for the workloads called `names`, or all.
///
/// # Errors
/// Whatever is wrong with the options or the device; [`CliFailure::Call`] where it has no plan for a graph.
pub(crate) fn run(layers: &Layers, console: &Console, names: &[String]) -> Result<(), CliFailure> {
    if layers.switch("list")? {
        return list(console);
    }
    let settings = GraphBenchSettings::resolve(layers, names)?;
    let (device, notes) = DeviceSettings::resolve(layers)?.open(layers)?;
    notes.iter().for_each(|note| console.note(note));
    for case in &settings.cases {
        console.note(&format!("timing: {} batch {} {}", case.workload.name, case.batch, case.dtype));
        let mut graph = TimedGraph::new(&*device, case, settings.superoptimize, console)?;
        let mut rounds = |count: u32| -> Result<(), CliFailure> {
            let rounds = (0..count).map(|_| graph.round()).collect::<Result<Vec<_>, CliFailure>>()?;
            let row = GraphBenchRow::new(case, device.info().backend, &graph, &rounds);
            if console.json { console.value(&row) } else { console.line(&row.line()) }
        };
        if !settings.paced {
            rounds(settings.repetitions)?;
            continue;
        }
        console.note("a line of standard input begins each round; its end ends the program");
        let mut line = String::new();
        while io::stdin().read_line(&mut line).map_err(|e| CliFailure::io("standard input".as_ref(), e))? > 0 {
            rounds(1)?;
            line.clear();
        }
    }
    Ok(())
}

/// The workloads.
fn list(console: &Console) -> Result<(), CliFailure> {
    ALL.iter().try_for_each(|w| match console.json {
        true => console.value(&json!({"workload": w.name, "about": w.about})),
        false => console.line(&format!("{}: {}", w.name, w.about)),
    })
}
