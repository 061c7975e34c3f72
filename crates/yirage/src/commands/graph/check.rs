//! `yirage graph check`: what a graph takes and gives, and whether a device has its kernels.

use super::file;
use crate::console::Console;
use crate::failure::CliFailure;
use crate::options::Layers;
use crate::settings::DeviceSettings;
use serde::Serialize;
use yirage_ir::{Dims, Graph, ValueId, ValueSource};
use yirage_plancache::{CallOptions, planned};

/// Sizes of symbols that the graph is compiled for.
const DIMS: Dims = Dims { tokens: 32, seqs: 1, blocks: 1, rows: 32 };

#[derive(Serialize)]
struct GraphCheckOutput<'a> {
    graph: &'a str,
    /// In hexadecimal digits.
    structural_hash: String,
    nodes: usize,
    inputs: Vec<GraphValueSummary<'a>>,
    outputs: Vec<GraphValueSummary<'a>>,
    backend: &'a str,
    /// The kernel of each step; null where a kernel is missing.
    kernels: Option<Vec<String>>,
    /// Why there is no plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

#[derive(Serialize)]
struct GraphValueSummary<'a> {
    name: &'a str,
    /// `input`, `weight`, `kv_cache` or, of outputs, `node`.
    kind: &'static str,
    r#type: String,
}

/// Runs the command.
///
/// # Errors
/// Whatever is wrong with the options or the file; [`CliFailure::Call`] where the device has no plan for it.
pub(crate) fn run(layers: &Layers, console: &Console, path: &str) -> Result<(), CliFailure> {
    let graph = file::graph(std::path::Path::new(path))?;
    yirage_ir::verify(&graph).map_err(|e| CliFailure::Other(format!("{path}: {e}")))?;
    let (device, notes) = DeviceSettings::resolve(layers)?.open(layers)?;
    notes.iter().for_each(|note| console.note(note));
    let options = CallOptions { dims: DIMS, ..CallOptions::default() };
    let plan = planned(&graph, &device.target(), &options);
    let kernels = plan
        .as_ref()
        .ok()
        .map(|plan| plan.steps.iter().map(|step| plan.kernels[step.kernel as usize].name.clone()).collect::<Vec<_>>());
    let output = GraphCheckOutput {
        graph: &graph.name,
        structural_hash: format!("{:032x}", graph.structural_hash()),
        nodes: graph.nodes.len(),
        inputs: named(&graph, &graph.inputs),
        outputs: named(&graph, &graph.outputs),
        backend: device.info().backend,
        kernels,
        problem: plan.as_ref().err().map(ToString::to_string),
    };
    show(&output, console)?;
    plan.map(drop).map_err(CliFailure::from)
}

fn named<'a>(graph: &'a Graph, ids: &[ValueId]) -> Vec<GraphValueSummary<'a>> {
    let one = |&id: &ValueId| {
        let value = graph.value(id);
        let kind = match value.source {
            ValueSource::StepInput => "input",
            ValueSource::Weight => "weight",
            ValueSource::KvCache => "kv_cache",
            ValueSource::Node { .. } => "node",
        };
        GraphValueSummary { name: &value.name, kind, r#type: value.ty.to_string() }
    };
    ids.iter().map(one).collect()
}

fn show(output: &GraphCheckOutput<'_>, console: &Console) -> Result<(), CliFailure> {
    if console.json {
        return console.value(output);
    }
    console.line(&format!("{}: {} nodes, structural hash {}", output.graph, output.nodes, output.structural_hash))?;
    for input in &output.inputs {
        console.line(&format!("  {} {}: {}", input.kind, input.name, input.r#type))?;
    }
    for named in &output.outputs {
        console.line(&format!("  output {}: {}", named.name, named.r#type))?;
    }
    match &output.kernels {
        Some(kernels) => console.line(&format!("{}: {} steps: {}", output.backend, kernels.len(), kernels.join(", "))),
        None => Ok(()),
    }
}
