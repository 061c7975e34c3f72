//! `yirage graph run`: a graph called once with arrays.

use super::{arrays, file};
use crate::console::Console;
use crate::failure::CliFailure;
use crate::options::Layers;
use crate::profiling::Profiling;
use crate::settings::DeviceSettings;
use yirage_ir::{ValueId, ValueSource};
use yirage_plancache::{CallOptions, Callable};

/// Runs the command.
///
/// # Errors
/// Whatever is wrong with the options, the files, the graph or the device.
pub(crate) fn run(layers: &Layers, console: &Console, path: &str) -> Result<(), CliFailure> {
    let graph = file::graph(std::path::Path::new(path))?;
    let is_state = |id: &ValueId| graph.value(*id).source == ValueSource::KvCache;
    let inputs: Vec<ValueId> = graph.inputs.iter().copied().filter(|id| !is_state(id)).collect();
    let named =
        |ids: &[ValueId]| -> Vec<_> { ids.iter().map(|&id| (graph.value(id).name.as_str(), graph.ty(id))).collect() };
    let given = arrays::files("input", layers.texts("input"), &named(&inputs))?;
    let wanted = arrays::files("output", layers.texts("output-array"), &named(&graph.outputs))?;
    let (device, notes) = DeviceSettings::resolve(layers)?.open(layers)?;
    notes.iter().for_each(|note| console.note(note));
    let profiling = Profiling::begin(layers, &*device)?;
    let (read, dims) = arrays::read(&named(&inputs), &given, console)?;
    let (mut weights, mut step_inputs) = (Vec::new(), Vec::new());
    for (&id, array) in inputs.iter().zip(read) {
        let value = graph.value(id);
        match value.source {
            ValueSource::Weight => weights.push((value.name.clone(), array)),
            _ => step_inputs.push(array),
        }
    }
    let options = CallOptions { dims, ..CallOptions::default() };
    let mut callable = Callable::new(&*device, &graph, &weights, &options)?;
    let results = callable.call(&step_inputs)?;
    profiling.map_or(Ok(()), |profiling| profiling.write(console))?;
    arrays::put((&graph.name, device.info().backend), callable.outputs(), &results, &wanted, console)
}
