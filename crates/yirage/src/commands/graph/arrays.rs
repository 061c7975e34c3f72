//! Arrays of .npy files for the inputs of a graph or a plan, and its outputs as such files.

use super::file;
use crate::console::Console;
use crate::failure::CliFailure;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use yirage_graph::{Npy, npy};
use yirage_hal::Record;
use yirage_ir::{Dim, Dims, Type};
use yirage_plancache::HostArray;

/// Names and types.
pub(crate) type NamedType<'a> = (&'a str, &'a Type);

/// The files that `--input` or `--output` name, by the values that they are of.
///
/// # Errors
/// [`CliFailure::Usage`].
pub(crate) fn files(
    option: &str,
    given: &[String],
    values: &[NamedType<'_>],
) -> Result<Vec<Option<PathBuf>>, CliFailure> {
    let names: Vec<&str> = values.iter().map(|(name, _)| *name).collect();
    file::by_name(option, given, &names)
}

/// Writes the outputs that have files, and says what was given.
///
/// # Errors
/// [`CliFailure::HostArray`], [`CliFailure::Io`].
pub(crate) fn put(
    of: (&str, &str),
    outputs: &[(String, Type)],
    results: &[HostArray],
    wanted: &[Option<PathBuf>],
    console: &Console,
) -> Result<(), CliFailure> {
    let mut shown = Vec::new();
    for (((name, ty), array), file) in outputs.iter().zip(results).zip(wanted) {
        match file {
            Some(file) => write(file, name, array, console)?,
            None => console.note(&format!("`{name}` is not written: --output {name}=FILE.npy writes it")),
        }
        shown.push((name, ty, file.as_ref().map(|file| file.display().to_string())));
    }
    if console.json {
        let one = |(name, ty, file): &(&String, &Type, Option<String>)| json!({"name": name, "type": ty.to_string(), "file": file});
        let outputs: Vec<Value> = shown.iter().map(one).collect();
        let (graph, backend) = of;
        return console.value(&json!({"graph": graph, "backend": backend, "outputs": outputs}));
    }
    for (name, ty, file) in shown {
        let to = file.map_or_else(String::new, |file| format!(" -> {file}"));
        console.line(&format!("{name}: {ty}{to}"))?;
    }
    Ok(())
}

/// The array of each input, and the sizes that symbols have in them.
///
/// # Errors
/// [`CliFailure::Usage`] for an input without a file, [`CliFailure::HostArray`], [`CliFailure::Other`] for two sizes of one symbol.
pub(crate) fn read(
    inputs: &[NamedType<'_>],
    given: &[Option<PathBuf>],
    console: &Console,
) -> Result<(Vec<HostArray>, Dims), CliFailure> {
    let mut sizes = SymbolSizes::default();
    let mut arrays = Vec::with_capacity(inputs.len());
    for (&(name, ty), file) in inputs.iter().zip(given) {
        let missing = || CliFailure::Usage(format!("the input `{name}`, {ty}, is not given: --input {name}=FILE.npy"));
        let path = file.as_deref().ok_or_else(missing)?;
        let failed = |source| CliFailure::Array { path: path.to_path_buf(), input: name.to_owned(), source };
        let bytes = file::array(path, ty)?;
        let array = Npy::parse(&bytes).map_err(failed)?;
        let ty = sizes.of(ty, &array.header().shape, name)?;
        let (memory, note) = array.memory(&ty).map_err(failed)?;
        if let Some(note) = note {
            console.note(&format!("{}: {note}", path.display()));
        }
        arrays.push(HostArray::new(ty, Record::of(&memory))?);
    }
    Ok((arrays, sizes.dims))
}

/// Sizes of symbols as the inputs have them.
#[derive(Default)]
struct SymbolSizes {
    dims: Dims,
    from: Vec<(yirage_ir::Sym, String)>,
}

impl SymbolSizes {
    /// The type with numbers for its symbols, which the first array that has them decides.
    fn of(&mut self, ty: &Type, shape: &[usize], name: &str) -> Result<Type, CliFailure> {
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
                    return Err(CliFailure::Other(what));
                }
                Some(_) => {}
            }
            out.shape[axis] = Dim::Const(given);
        }
        Ok(out)
    }
}

fn write(path: &Path, name: &str, array: &HostArray, console: &Console) -> Result<(), CliFailure> {
    let failed = |source| CliFailure::Array { path: path.to_path_buf(), input: name.to_owned(), source };
    let (bytes, note) = npy::write(array.ty(), array.bytes()).map_err(failed)?;
    if let Some(note) = note {
        console.note(&format!("{}: {note}", path.display()));
    }
    std::fs::write(path, bytes).map_err(|source| CliFailure::io(path, source))
}
