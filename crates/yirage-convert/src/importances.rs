//! How much each input of a matrix counts: the file that `llama-imatrix` writes from texts.

use crate::error::ConvertError;
use std::collections::HashMap;
use std::path::Path;
use yirage_mmap::MappedFile;
use yirage_model::gguf::{Gguf, GgufTensor};

/// The ends of the names of its two kinds of tensors.
pub(crate) const SUMS: &str = ".in_sum2";
pub(crate) const COUNTS: &str = ".counts";

/// Importances by the names of tensors: mean squares of what a matrix is multiplied with, `[experts, columns]`.
#[derive(Clone, Debug)]
pub struct Importances {
    file: String,
    means: HashMap<String, Vec<f32>>,
}

impl Importances {
    /// Reads a file.
    ///
    /// # Errors
    /// A file that is not sound, or that holds no importances; numbers that are not finite.
    pub fn read(path: &Path) -> Result<Importances, ConvertError> {
        let file = path.display().to_string();
        let mapped = MappedFile::open(path).map_err(|e| none(&file, e.to_string()))?;
        let gguf = Gguf::parse(mapped.bytes(), &file)?;
        let tensors: HashMap<&str, &GgufTensor> = gguf.tensors().iter().map(|t| (t.name.as_str(), t)).collect();
        let mut means = HashMap::new();
        for (name, sums) in &tensors {
            let Some(of) = name.strip_suffix(SUMS) else { continue };
            let counts = tensors.get(format!("{of}{COUNTS}").as_str());
            let counts = counts.ok_or_else(|| none(&file, format!("{of:?} has sums and no counts")))?;
            let (sums, counts) = (floats(&file, mapped.bytes(), sums)?, floats(&file, mapped.bytes(), counts)?);
            means.insert(of.to_owned(), divided(&file, of, &sums, &counts)?);
        }
        if means.is_empty() {
            return Err(none(&file, format!("no tensor ends in {SUMS:?}")));
        }
        Ok(Importances { file, means })
    }

    /// How many tensors there are importances for.
    pub fn len(&self) -> usize {
        self.means.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.means.is_empty()
    }

    /// Those of a tensor, `expected` of them.
    pub(crate) fn of(&self, tensor: &str, expected: u64) -> Result<Option<&[f32]>, ConvertError> {
        let Some(found) = self.means.get(tensor) else { return Ok(None) };
        if found.len() as u64 != expected {
            let (file, tensor) = (self.file.clone(), tensor.to_owned());
            return Err(ConvertError::ImportanceCount { file, tensor, found: found.len(), expected });
        }
        Ok(Some(found))
    }
}

fn none(file: &str, what: String) -> ConvertError {
    ConvertError::NoImportances { file: file.to_owned(), what }
}

fn floats(file: &str, bytes: &[u8], tensor: &GgufTensor) -> Result<Vec<f32>, ConvertError> {
    if tensor.ty.name() != Some("F32") {
        return Err(none(file, format!("{:?} is {}, not F32", tensor.name, tensor.ty)));
    }
    // The table of tensors was checked against the file's length.
    let data = &bytes[tensor.range.start as usize..tensor.range.end as usize];
    Ok(data.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect())
}

/// An expert that no token reached counts all its inputs the same.
fn divided(file: &str, tensor: &str, sums: &[f32], counts: &[f32]) -> Result<Vec<f32>, ConvertError> {
    if counts.is_empty() || !sums.len().is_multiple_of(counts.len()) {
        return Err(none(file, format!("{tensor:?} has {} sums of {} counts", sums.len(), counts.len())));
    }
    let columns = sums.len() / counts.len();
    let of_expert = |(sums, &count): (&[f32], &f32)| -> Vec<f32> {
        // Counts are whole numbers that were written as floats.
        let count = count.round();
        sums.iter().map(|sum| if count > 0.0 { sum / count } else { 1.0 }).collect()
    };
    let means: Vec<f32> = sums.chunks_exact(columns).zip(counts).flat_map(of_expert).collect();
    match means.iter().find(|mean| !mean.is_finite()) {
        Some(mean) => Err(none(file, format!("an importance of {tensor:?} is {mean}, not a finite number"))),
        None => Ok(means),
    }
}
