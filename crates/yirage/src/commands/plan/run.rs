//! `yirage plan run`: the plan of a file, proved and run once with arrays.

use crate::commands::graph::arrays;
use crate::console::Console;
use crate::failure::CliFailure;
use crate::options::Layers;
use crate::plan_file;
use crate::profiling::Profiling;
use crate::settings::DeviceSettings;
use std::path::Path;
use yirage_ir::{Dim, Dims, Sym, Type};
use yirage_plancache::{Callable, ResidentWeights};

/// Runs the command.
///
/// # Errors
/// Whatever is wrong with the options, the files or the device; [`CliFailure::Plan`] for a plan that the device cannot run.
pub(crate) fn run(layers: &Layers, console: &Console, path: &str) -> Result<(), CliFailure> {
    let (device, notes) = DeviceSettings::resolve(layers)?.open(layers)?;
    notes.iter().for_each(|note| console.note(note));
    let file = plan_file::proved(Path::new(path), &*device)?;
    let interface = &file.interface;
    let inputs = [named(&interface.step_inputs), named(&interface.weights)].concat();
    let given = arrays::files("input", layers.texts("input"), &inputs)?;
    let wanted = arrays::files("output", layers.texts("output-array"), &named(&interface.outputs))?;
    interface.check_callable()?;
    let profiling = Profiling::begin(layers, &*device)?;
    let (mut step_inputs, dims) = arrays::read(&inputs, &given, console)?;
    let weights = step_inputs.split_off(interface.step_inputs.len());
    let names = interface.weights.iter().map(|(name, _)| name.clone());
    let weights: Vec<_> = names.zip(weights).collect();
    let mut held = ResidentWeights::default();
    held.load(&*device, &file.plan, &weights)?;
    let dims = all_sizes(dims, &file.plan.bucket, &interface.step_inputs);
    let mut callable = Callable::load(&*device, interface, &file.plan, &held, dims)?;
    let results = callable.call(&step_inputs)?;
    profiling.map_or(Ok(()), |profiling| profiling.write(console))?;
    arrays::put((&interface.graph, device.info().backend), callable.outputs(), &results, &wanted, console)
}

fn named(of: &[(String, Type)]) -> Vec<arrays::NamedType<'_>> {
    of.iter().map(|(name, ty)| (name.as_str(), ty)).collect()
}

/// The sizes that the inputs have; of a symbol that none has the plan's.
fn all_sizes(mut dims: Dims, bucket: &Dims, step_inputs: &[(String, Type)]) -> Dims {
    let has = |sym: Sym| step_inputs.iter().any(|(_, ty)| ty.shape.contains(&Dim::Sym(sym)));
    Sym::ALL.into_iter().filter(|&sym| !has(sym)).for_each(|sym| dims.set(sym, bucket.get(sym)));
    dims
}
