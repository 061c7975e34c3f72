//! Files of graphs and arrays, and which value each is of.

use crate::failure::CliFailure;
use std::path::{Path, PathBuf};
use yirage_graph::json::MAX_BYTES;
use yirage_graph::{from_json, npy};
use yirage_ir::{Dims, Graph, Type};

/// The graph of a file.
///
/// # Errors
/// [`CliFailure::File`]; [`CliFailure::Graph`] with the file and the place in it.
pub(crate) fn graph(path: &Path) -> Result<Graph, CliFailure> {
    let text = yirage_mmap::read_text(path, MAX_BYTES as u64)?;
    from_json(&text).map_err(|source| CliFailure::Graph { path: path.to_path_buf(), source })
}

/// Most bytes of an array whose sizes are not known before it is read.
const MAX_ARRAY: u64 = 64 << 30;

/// The bytes of an .npy file for a value of type `ty`.
///
/// # Errors
/// [`CliFailure::File`].
pub(super) fn array(path: &Path, ty: &Type) -> Result<Vec<u8>, CliFailure> {
    let limit = match ty.is_fixed() {
        // A file of more elements, or of wider ones, is read as well: its header says better what is wrong with it.
        true => (ty.bytes(&Dims::default()).saturating_add(npy::MAX_HEADER) as u64).saturating_mul(8),
        false => MAX_ARRAY,
    };
    Ok(yirage_mmap::read_bytes(path, limit.min(MAX_ARRAY))?)
}

/// Files by the values that they are of: `NAME=FILE` by name, a file alone in the order of `names`.
///
/// # Errors
/// [`CliFailure::Usage`] for an unknown name, a value that is named twice, and more files than values.
pub(super) fn by_name(option: &str, given: &[String], names: &[&str]) -> Result<Vec<Option<PathBuf>>, CliFailure> {
    let mut files: Vec<Option<PathBuf>> = vec![None; names.len()];
    let all = || if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let mut next = 0;
    for text in given {
        let named = text.split_once('=').filter(|(name, _)| !name.contains(['/', '\\']));
        let (at, file) = match named {
            Some((name, file)) => {
                let at = names.iter().position(|n| n == &name);
                let unknown =
                    || CliFailure::Usage(format!("--{option} {text}: nothing is called `{name}`; there is: {}", all()));
                (at.ok_or_else(unknown)?, file)
            }
            None => {
                next += 1;
                (next - 1, text.as_str())
            }
        };
        let many =
            || CliFailure::Usage(format!("--{option} {text}: there are no more than {}: {}", names.len(), all()));
        let slot = files.get_mut(at).ok_or_else(many)?;
        if file.is_empty() {
            return Err(CliFailure::Usage(format!("--{option} {text}: a file wanted")));
        }
        if slot.replace(PathBuf::from(file)).is_some() {
            return Err(CliFailure::Usage(format!("--{option} {text}: `{}` has a file already", names[at])));
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::by_name;

    #[test]
    fn files_are_of_values_by_name_or_in_order() {
        let files = |given: &[&str]| {
            let given: Vec<String> = given.iter().map(|s| (*s).to_owned()).collect();
            let found = by_name("input", &given, &["a", "b"]).map_err(|e| e.to_string())?;
            Ok::<_, String>(found.into_iter().map(|f| f.map(|f| f.display().to_string())).collect::<Vec<_>>())
        };
        let both = Ok(vec![Some("x".to_owned()), Some("y".to_owned())]);
        assert_eq!(files(&["x", "y"]), both);
        assert_eq!(files(&["b=y", "a=x"]), both);
        assert_eq!(files(&["b=y", "x"]), both);
        assert_eq!(files(&["./a=b"]), Ok(vec![Some("./a=b".to_owned()), None]));
        for (given, wanted) in [
            (&["c=x"][..], "nothing is called `c`; there is: a, b"),
            (&["a=x", "a=y"], "has a file already"),
            (&["a=x", "y"], "has a file already"),
            (&["x", "y", "z"], "no more than 2"),
            (&["a="], "a file wanted"),
        ] {
            let error = files(given).unwrap_err();
            assert!(error.contains(wanted), "{error}");
        }
    }
}
