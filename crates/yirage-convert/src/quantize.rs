//! A file written by its plan: tensor after tensor, a piece of rows at a time, on several threads. The bytes do not depend on
//! their number.

use crate::atomic_file::AtomicFile;
use crate::encode::{EncodeRow, encoder};
use crate::error::ConvertError;
use crate::gguf_writer::{TensorEntry, header};
use crate::importances::Importances;
use crate::plan::{QuantizePlan, TensorPlan};
use std::num::NonZeroUsize;
use std::path::Path;
use yirage_model::gguf::{Gguf, GgufValue};

/// The version of the block formats, `general.quantization_version`.
pub(crate) const QUANTIZATION_VERSION: u32 = 2;
/// Numbers of a tensor that are in memory at once: 16 MiB of them.
const NUMBERS_AT_ONCE: u64 = 4 << 20;

/// Where the file goes, and how it is made.
#[derive(Clone, Copy, Debug)]
pub struct Output<'a> {
    /// The file.
    pub path: &'a Path,
    /// Whether a file that is there is overwritten.
    pub force: bool,
    /// Threads that quantise.
    pub threads: NonZeroUsize,
}

/// Writes the quantised file and gives its bytes. `bytes` are those of the file that `gguf` was read from; `progress` is told of each tensor
/// before it is written.
///
/// # Errors
/// Numbers that are not finite; an output that is there, or cannot be written. Nothing is left of it then.
pub fn quantize(
    bytes: &[u8],
    gguf: &Gguf,
    plan: &QuantizePlan,
    importances: Option<&Importances>,
    output: &Output<'_>,
    progress: &mut dyn FnMut(&TensorPlan),
) -> Result<u64, ConvertError> {
    let mut out = AtomicFile::create(output.path, output.force)?;
    let table: Vec<TensorEntry<'_>> = plan.tensors.iter().map(TensorPlan::entry).collect();
    let entries = entries(gguf, plan);
    let entries: Vec<(&str, &GgufValue)> = entries.iter().map(|(k, v)| (k.as_str(), v)).collect();
    out.write(&header(&entries, &table, gguf.alignment()))?;
    for tensor in &plan.tensors {
        progress(tensor);
        let data = &bytes[tensor.source.start as usize..tensor.source.end as usize];
        let weights = match importances.filter(|_| tensor.important) {
            Some(all) => all.of(&tensor.name, tensor.importances())?,
            None => None,
        };
        TensorWriter { file: gguf.name(), tensor, weights, threads: output.threads.get() }
            .write(data, &mut |piece| out.write(piece))?;
        out.pad(gguf.alignment())?;
    }
    out.finish()
}

/// The file's own entries, with its new type last and without those that speak of parts.
fn entries(gguf: &Gguf, plan: &QuantizePlan) -> Vec<(String, GgufValue)> {
    let new = [("general.quantization_version", QUANTIZATION_VERSION), ("general.file_type", plan.mix.file_type)];
    let replaced = |key: &str| key.starts_with("split.") || new.iter().any(|(name, _)| *name == key);
    let kept = gguf.metadata().filter(|(key, _)| !replaced(key)).map(|(key, value)| (key.to_owned(), value.clone()));
    kept.chain(new.map(|(key, value)| (key.to_owned(), GgufValue::U32(value)))).collect()
}

/// One tensor on its way.
struct TensorWriter<'a> {
    file: &'a str,
    tensor: &'a TensorPlan,
    weights: Option<&'a [f32]>,
    threads: usize,
}

type Sink<'a> = dyn FnMut(&[u8]) -> Result<(), ConvertError> + 'a;

impl TensorWriter<'_> {
    fn write(&self, data: &[u8], sink: &mut Sink<'_>) -> Result<(), ConvertError> {
        if self.tensor.from == self.tensor.to {
            return sink(data);
        }
        let (columns, rows) = (self.tensor.columns(), self.tensor.rows());
        let row_bytes = (self.tensor.bytes() / rows) as usize;
        let at_once = (NUMBERS_AT_ONCE / columns).clamp(1, rows);
        let mut out = vec![0; row_bytes * at_once as usize];
        let mut first = 0;
        while first < rows {
            let count = at_once.min(rows - first);
            let piece = &mut out[..row_bytes * count as usize];
            self.piece(data, first, row_bytes, piece)?;
            sink(piece)?;
            first += count;
        }
        Ok(())
    }

    /// Rows from `first` on, as many as `out` holds, divided among the threads.
    fn piece(&self, data: &[u8], first: u64, row_bytes: usize, out: &mut [u8]) -> Result<(), ConvertError> {
        let rows = out.len() / row_bytes;
        let each = rows.div_ceil(self.threads);
        std::thread::scope(|scope| {
            let parts = out.chunks_mut(each * row_bytes).enumerate();
            let running: Vec<_> = parts
                .map(|(i, out)| scope.spawn(move || self.rows(data, first + (i * each) as u64, row_bytes, out)))
                .collect();
            // In order, so that of several errors the first row's is told.
            running.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|e| std::panic::resume_unwind(e)))
        })
    }

    fn rows(&self, data: &[u8], first: u64, row_bytes: usize, out: &mut [u8]) -> Result<(), ConvertError> {
        let columns = self.tensor.columns() as usize;
        let format = self.tensor.from.format().expect("`QuantizePlan::new` refuses what is not read");
        let encode: EncodeRow = encoder(self.tensor.to).expect("mixes and options name formats that are written");
        let source_bytes = format.info().row_bytes(columns);
        let rows_of_expert = self.tensor.shape.iter().rev().nth(1).copied().unwrap_or(1);
        let mut row = vec![0.0; columns];
        for (at, out) in (first..).zip(out.chunks_exact_mut(row_bytes)) {
            (format.info().decode)(&data[at as usize * source_bytes..][..source_bytes], &mut row);
            if let Some(column) = row.iter().position(|v| !v.is_finite()) {
                let (file, tensor) = (self.file.to_owned(), self.tensor.name.clone());
                let element = at * columns as u64 + column as u64;
                return Err(ConvertError::NotFinite { file, tensor, element, value: row[column] });
            }
            let weights = self.weights.map(|all| &all[(at / rows_of_expert) as usize * columns..][..columns]);
            encode(&row, weights, out);
        }
        Ok(())
    }
}
