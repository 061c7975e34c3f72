//! `yirage graph run`: a graph called once with arrays.

use super::file;
use crate::console::Console;
use crate::failure::Failure;
use crate::options::Layers;
use crate::profiling::Profiling;
use crate::settings::DeviceSettings;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use yirage_call::{Array, CallOptions, Callable};
use yirage_graph::{Npy, npy};
use yirage_hal::Record;
use yirage_ir::{Dim, Dims, Graph, Source, Type, ValueId};

/// Runs the command.
///
/// # Errors
/// Whatever is wrong with the options, the files, the graph or the device.
pub(crate) fn run(layers: &Layers, console: &Console, path: &str) -> Result<(), Failure> {
    let graph = file::graph(std::path::Path::new(path))?;
    let is_state = |id: &ValueId| graph.value(*id).source == Source::State;
    let inputs: Vec<ValueId> = graph.inputs.iter().copied().filter(|id| !is_state(id)).collect();
    let names = |ids: &[ValueId]| ids.iter().map(|&id| graph.value(id).name.as_str()).collect::<Vec<_>>();
    let given = file::by_name("input", layers.texts("input"), &names(&inputs))?;
    let wanted = file::by_name("output", layers.texts("output-array"), &names(&graph.outputs))?;
    let (device, notes) = DeviceSettings::resolve(layers)?.open(layers)?;
    notes.iter().for_each(|note| console.note(note));
    let profiling = Profiling::begin(layers, &*device)?;
    let (arrays, dims) = read(&graph, &inputs, &given, console)?;
    let (mut weights, mut slots) = (Vec::new(), Vec::new());
    for (&id, array) in inputs.iter().zip(arrays) {
        let value = graph.value(id);
        match value.source {
            Source::Weight => weights.push((value.name.clone(), array)),
            _ => slots.push(array),
        }
    }
    let options = CallOptions { dims, ..CallOptions::default() };
    let mut callable = Callable::new(&*device, &graph, &weights, &options)?;
    let results = callable.call(&slots)?;
    profiling.map_or(Ok(()), |profiling| profiling.write(console))?;
    let mut shown = Vec::new();
    for (((name, ty), array), file) in callable.outputs().iter().zip(&results).zip(&wanted) {
        match file {
            Some(file) => write(file, name, array, console)?,
            None => console.note(&format!("`{name}` is not written: --output {name}=FILE.npy writes it")),
        }
        shown.push((name, ty, file.as_ref().map(|file| file.display().to_string())));
    }
    if console.json {
        let one = |(name, ty, file): &(&String, &Type, Option<String>)| json!({"name": name, "type": ty.to_string(), "file": file});
        let outputs: Vec<Value> = shown.iter().map(one).collect();
        return console.value(&json!({"graph": graph.name, "backend": device.info().backend, "outputs": outputs}));
    }
    for (name, ty, file) in shown {
        let to = file.map_or_else(String::new, |file| format!(" -> {file}"));
        console.line(&format!("{name}: {ty}{to}"))?;
    }
    Ok(())
}

/// The array of each input, and the sizes that symbols have in them.
fn read(
    graph: &Graph,
    inputs: &[ValueId],
    given: &[Option<PathBuf>],
    console: &Console,
) -> Result<(Vec<Array>, Dims), Failure> {
    let mut sizes = Sizes::default();
    let mut arrays = Vec::with_capacity(inputs.len());
    for (&id, file) in inputs.iter().zip(given) {
        let (name, ty) = (&graph.value(id).name, graph.ty(id));
        let missing = || Failure::Usage(format!("the input `{name}`, {ty}, is not given: --input {name}=FILE.npy"));
        let path = file.as_deref().ok_or_else(missing)?;
        let failed = |source| Failure::Array { path: path.to_path_buf(), input: name.clone(), source };
        let bytes = file::array(path, ty)?;
        let array = Npy::parse(&bytes).map_err(failed)?;
        let ty = sizes.of(ty, &array.header().shape, name)?;
        let (memory, note) = array.memory(&ty).map_err(failed)?;
        if let Some(note) = note {
            console.note(&format!("{}: {note}", path.display()));
        }
        arrays.push(Array::new(ty, Record::of(&memory))?);
    }
    Ok((arrays, sizes.dims))
}

/// Sizes of symbols as the inputs have them.
#[derive(Default)]
struct Sizes {
    dims: Dims,
    from: Vec<(yirage_ir::Sym, String)>,
}

impl Sizes {
    /// The type with numbers for its symbols, which the first array that has them decides.
    fn of(&mut self, ty: &Type, shape: &[usize], name: &str) -> Result<Type, Failure> {
        let mut out = ty.clone();
        for (axis, dim) in ty.shape.iter().enumerate() {
            let Dim::Sym(sym) = *dim else { continue };
            let given = shape.get(axis).and_then(|&n| u32::try_from(n).ok());
            // Another number of dimensions is told by the array, which has all of them.
            let Some(given) = given else { continue };
            match self.from.iter().find(|(known, _)| *known == sym) {
                None => {
                    self.dims.set(sym, given);
                    self.from.push((sym, name.to_owned()));
                }
                Some((_, first)) if self.dims.get(sym) != given => {
                    let (symbol, has) = (sym.name(), self.dims.get(sym));
                    let what = format!("{symbol} is {has} in the input `{first}` and {given} in `{name}`");
                    return Err(Failure::Other(what));
                }
                Some(_) => {}
            }
            out.shape[axis] = Dim::Const(given);
        }
        Ok(out)
    }
}

fn write(path: &Path, name: &str, array: &Array, console: &Console) -> Result<(), Failure> {
    let failed = |source| Failure::Array { path: path.to_path_buf(), input: name.to_owned(), source };
    let (bytes, note) = npy::write(array.ty(), array.bytes()).map_err(failed)?;
    if let Some(note) = note {
        console.note(&format!("{}: {note}", path.display()));
    }
    std::fs::write(path, bytes).map_err(|source| Failure::io(path, source))
}
