//! How much each input of a matrix counts, found by running the model over texts: sums of squares of what matrices are
//! multiplied with, in the file that `llama-imatrix` writes.
//!
//! The model runs elsewhere: what its steps give is added here.

use crate::atomic_file::AtomicFile;
use crate::error::ConvertError;
use crate::gguf_writer::{TensorEntry, header};
use crate::importances::{COUNTS, SUMS};
use std::collections::BTreeMap;
use std::path::Path;
use yirage_model::Checkpoint;
use yirage_model::arch::{ExpertInput, MatmulInputs, StoredMatmul};
use yirage_model::gguf::{GgmlType, GgufArray, GgufValue};

/// The type of all tensors of the file.
const F32: GgmlType = GgmlType(0);
/// The matrix that gives the logits, where that is not the token embedding.
pub const OUTPUT_MATRIX: &str = "output.weight";
/// How the names of the layers' tensors begin.
const LAYERS: &str = "blk.";
/// Tensors start at multiples of this many bytes: what holds where a file does not say.
const ALIGNMENT: u64 = 32;

/// Which text was read, as the file says it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ImportanceText {
    /// Its name.
    pub dataset: String,
    /// Chunks that the model read, each from its first position on.
    pub chunks: u32,
    /// Tokens of a chunk.
    pub chunk_size: u32,
}

/// Sums of squares of what matrices of a GGUF file are multiplied with.
#[derive(Clone, Debug)]
pub struct ImportanceSums {
    inputs: Vec<InputSums>,
    /// Positions in `inputs`, by the names of tensors.
    tensors: BTreeMap<String, Vec<usize>>,
    left_out: Vec<String>,
}

/// Sums of one activation: `[matrices, columns]`, and how many rows each has of.
#[derive(Clone, Debug)]
struct InputSums {
    activation: usize,
    columns: usize,
    experts: Option<ExpertInput>,
    sums: Vec<f64>,
    counts: Vec<u64>,
}

impl ImportanceSums {
    /// Nothing yet, of the layers' matrices among the `inputs` of a GGUF checkpoint; with `output` of the matrix of the logits too.
    pub fn new(checkpoint: &Checkpoint, inputs: &MatmulInputs, output: bool) -> ImportanceSums {
        let wanted = |name: &str| name.starts_with(LAYERS) || (output && name == OUTPUT_MATRIX);
        let shapes: BTreeMap<&str, &[usize]> = checkpoint.tensors().map(|t| (t.name.as_str(), &t.shape[..])).collect();
        let mut all = ImportanceSums { inputs: Vec::new(), tensors: BTreeMap::new(), left_out: Vec::new() };
        for matmul in inputs.matmuls.iter().filter(|matmul| wanted(&matmul.tensor)) {
            if shapes.get(matmul.tensor.as_str()).is_some_and(|shape| is_of(matmul, shape)) {
                all.insert(matmul);
            }
        }
        let is_matrix = |shape: &[usize]| shape.iter().filter(|&&dim| dim > 1).count() > 1;
        let left_out = shapes.iter().filter(|(name, shape)| wanted(name) && is_matrix(shape));
        all.left_out = left_out.map(|(name, _)| (*name).to_owned()).filter(|n| !all.tensors.contains_key(n)).collect();
        all
    }

    fn insert(&mut self, matmul: &StoredMatmul) {
        let same =
            |i: &InputSums| (i.activation, i.columns, i.experts) == (matmul.activation, matmul.columns, matmul.experts);
        let at = self.inputs.iter().position(same).unwrap_or_else(|| {
            let matrices = matmul.experts.map_or(1, |experts| experts.count);
            self.inputs.push(InputSums {
                activation: matmul.activation,
                columns: matmul.columns,
                experts: matmul.experts,
                sums: vec![0.0; matrices * matmul.columns],
                counts: vec![0; matrices],
            });
            self.inputs.len() - 1
        });
        self.tensors.entry(matmul.tensor.clone()).or_default().push(at);
    }

    /// Tensors that it is about.
    pub fn tensors(&self) -> usize {
        self.tensors.len()
    }

    /// Matrices of the file that it says nothing of, in order: what they are multiplied with is not known.
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// Experts' matrices that no token has reached yet, and experts' matrices.
    pub fn unreached(&self) -> (usize, usize) {
        let of_experts = self.inputs.iter().filter(|input| input.experts.is_some());
        let counts: Vec<u64> = of_experts.flat_map(|input| input.counts.iter().copied()).collect();
        (counts.iter().filter(|&&count| count == 0).count(), counts.len())
    }

    /// Adds what a step gave: of each value of [`MatmulInputs::values`] that is an activation its elements, and of each
    /// that is a choice of experts their numbers.
    pub fn add(&mut self, activation: impl Fn(usize) -> Vec<f32>, chosen: impl Fn(usize) -> Vec<i32>) {
        for input in &mut self.inputs {
            let elements = activation(input.activation);
            let rows = elements.chunks_exact(input.columns);
            match input.experts {
                None => rows.for_each(|row| input.sums_of(0, row)),
                Some(experts) => {
                    let numbers = chosen(experts.chosen);
                    let rows: Vec<&[f32]> = rows.collect();
                    for (at, &expert) in numbers.iter().enumerate() {
                        let row = if experts.shared { at / experts.top_k } else { at };
                        // A choice of none reads no matrix.
                        if let Some(expert) = usize::try_from(expert).ok().filter(|&e| e < experts.count) {
                            input.sums_of(expert, rows[row]);
                        }
                    }
                }
            }
        }
    }

    /// Writes the file, and gives its bytes.
    ///
    /// # Errors
    /// [`ConvertError::ActivationRange`]; an output that is there and not to be overwritten by `force`, or that cannot be
    /// written. Nothing is left of it then.
    pub fn write(&self, text: &ImportanceText, path: &Path, force: bool) -> Result<u64, ConvertError> {
        let mut tensors = Vec::new();
        for (name, inputs) in &self.tensors {
            let (sums, counts) = self.added(name, inputs)?;
            let (matrices, columns) = (counts.len() as u64, (sums.len() / counts.len()) as u64);
            tensors.push((format!("{name}{SUMS}"), [matrices, columns], sums));
            tensors.push((format!("{name}{COUNTS}"), [matrices, 1], counts));
        }
        let entries: [(&str, GgufValue); 4] = [
            ("general.type", GgufValue::String("imatrix".to_owned())),
            ("imatrix.datasets", GgufValue::Array(GgufArray::String(std::iter::once(&text.dataset).collect()))),
            ("imatrix.chunk_count", GgufValue::U32(text.chunks)),
            ("imatrix.chunk_size", GgufValue::U32(text.chunk_size)),
        ];
        let entries: Vec<(&str, &GgufValue)> = entries.iter().map(|(key, value)| (*key, value)).collect();
        let table: Vec<TensorEntry<'_>> = tensors
            .iter()
            .map(|(name, shape, values)| TensorEntry { name, shape, ty: F32, bytes: 4 * values.len() as u64 })
            .collect();
        let mut file = AtomicFile::create(path, force)?;
        file.write(&header(&entries, &table, ALIGNMENT))?;
        for (_, _, values) in &tensors {
            file.write(&values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>())?;
            file.pad(ALIGNMENT)?;
        }
        file.finish()
    }

    /// What a tensor's inputs have together, as the file holds it.
    fn added(&self, name: &str, inputs: &[usize]) -> Result<(Vec<f32>, Vec<f32>), ConvertError> {
        let first = &self.inputs[inputs[0]];
        let (mut sums, mut counts) = (first.sums.clone(), first.counts.clone());
        for other in inputs[1..].iter().map(|&at| &self.inputs[at]) {
            sums.iter_mut().zip(&other.sums).for_each(|(sum, more)| *sum += more);
            counts.iter_mut().zip(&other.counts).for_each(|(count, more)| *count += more);
        }
        if let Some(at) = sums.iter().position(|&sum| !(sum as f32).is_finite()) {
            let (tensor, column) = (name.to_owned(), at % first.columns);
            return Err(ConvertError::ActivationRange { tensor, column, sum: sums[at] });
        }
        Ok((sums.iter().map(|&sum| sum as f32).collect(), counts.iter().map(|&count| count as f32).collect()))
    }
}

impl InputSums {
    fn sums_of(&mut self, matrix: usize, row: &[f32]) {
        let sums = &mut self.sums[matrix * self.columns..][..self.columns];
        sums.iter_mut().zip(row).for_each(|(sum, &x)| *sum += f64::from(x) * f64::from(x));
        self.counts[matrix] += 1;
    }
}

/// Whether a stored tensor of that shape, outermost first, has the rows and matrices that are multiplied.
fn is_of(matmul: &StoredMatmul, shape: &[usize]) -> bool {
    let columns = shape.last() == Some(&matmul.columns);
    columns && matmul.experts.is_none_or(|experts| shape.len() == 3 && shape[0] == experts.count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dense(tensor: &str, activation: usize) -> StoredMatmul {
        StoredMatmul { tensor: tensor.into(), columns: 2, activation, experts: None }
    }

    fn sums(matmuls: &[StoredMatmul]) -> ImportanceSums {
        let mut all = ImportanceSums { inputs: Vec::new(), tensors: BTreeMap::new(), left_out: Vec::new() };
        matmuls.iter().for_each(|matmul| all.insert(matmul));
        all
    }

    #[test]
    fn tensors_with_one_input_share_its_sums() {
        let mut all = sums(&[dense("blk.0.a", 0), dense("blk.0.b", 0), dense("blk.0.c", 1)]);
        assert_eq!(all.inputs.len(), 2);
        all.add(|at| if at == 0 { vec![1.0, 2.0, 3.0, -4.0] } else { vec![0.5, 0.0] }, |_| Vec::new());
        all.add(|at| if at == 0 { vec![0.0, 1.0] } else { vec![0.5, 1.0] }, |_| Vec::new());
        assert_eq!(all.added("a", &[0]).unwrap(), (vec![10.0, 21.0], vec![3.0]));
        assert_eq!(all.added("c", &[1]).unwrap(), (vec![0.5, 1.0], vec![2.0]));
    }

    #[test]
    fn experts_have_the_rows_of_the_tokens_that_chose_them() {
        for shared in [true, false] {
            let experts = Some(ExpertInput { count: 3, chosen: 1, top_k: 2, shared });
            let mut all = sums(&[StoredMatmul { experts, ..dense("blk.0.e", 0) }]);
            let rows = if shared { vec![1.0, 2.0, 3.0, 0.0] } else { vec![1.0, 2.0, 1.0, 2.0, 3.0, 0.0, 3.0, 0.0] };
            all.add(|_| rows.clone(), |_| vec![0, 2, 2, -1]);
            let (sums, counts) = all.added("e", &[0]).unwrap();
            assert_eq!((sums, counts), (vec![1.0, 4.0, 0.0, 0.0, 10.0, 4.0], vec![1.0, 0.0, 2.0]), "{shared}");
            assert_eq!(all.unreached(), (1, 3));
        }
    }

    #[test]
    fn a_sum_beyond_floats_is_named() {
        let mut all = sums(&[dense("blk.0.a", 0)]);
        all.add(|_| vec![0.0, 1e20], |_| Vec::new());
        let error = all.added("blk.0.a", &[0]).unwrap_err().to_string();
        assert!(error.contains("blk.0.a") && error.contains("input 1") && error.contains("1e40"), "{error}");
    }
}
