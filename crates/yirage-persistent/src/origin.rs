//! What a graph's weight is made of: a tensor of the kernel, or a part of one.

use crate::elements::KernelDType;
use crate::error::PersistentError;
use crate::float8::widen;
use crate::tensor::KernelTensor;
use std::sync::Arc;
use yirage_ir::Format;

/// Which part of a tensor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TensorPart {
    /// All of it.
    Whole,
    /// Of each matrix of it, the rows of part `index` of `of` equal ones.
    Rows { index: u32, of: u32 },
    /// The first `columns` of each row as f32: a table of a rotary embedding, whose second half says the same again.
    Table { columns: u32 },
}

/// A weight of the graph and where it comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct WeightOrigin {
    /// Its name in the graph.
    pub(crate) name: String,
    /// The tensor's name.
    pub(crate) tensor: String,
    /// The name of the tensor of its scales, where it has any.
    pub(crate) scales: Option<String>,
    pub(crate) part: TensorPart,
}

/// A weight's shape, format and elements.
pub(crate) struct HostWeight {
    pub(crate) shape: Vec<u32>,
    pub(crate) format: Format,
    pub(crate) bytes: Arc<[u8]>,
}

impl TensorPart {
    /// The part of `tensor`, called `name` in errors; of 8-bit floats with these scales, by their name, widened to f32.
    ///
    /// # Errors
    /// [`PersistentError::Tensor`] for a tensor without elements, of ids, or without such a part, and for scales that do not
    /// fit.
    pub(crate) fn of(
        self,
        name: &str,
        tensor: &KernelTensor,
        scales: Option<(&str, &KernelTensor)>,
    ) -> Result<HostWeight, PersistentError> {
        let wrong = |why: String| PersistentError::Tensor { name: name.to_owned(), why };
        match (tensor.elements, scales) {
            (KernelDType::Float8E4M3, Some((of, scales))) => {
                return self.of(name, &widen(tensor, of, scales).map_err(wrong)?, None);
            }
            (KernelDType::Float8E4M3, None) => {
                return Err(wrong(
                    "it is of 8-bit floats and has no scales: linear_fp8_layer and its kin take both".into(),
                ));
            }
            (other, Some(_)) => return Err(wrong(format!("it is {other}, only weights of 8-bit floats have scales"))),
            (_, None) => {}
        }
        let KernelDType::Floats(format) = tensor.elements else {
            return Err(wrong(format!("it is {}, a weight of floats is wanted", tensor.elements)));
        };
        let data = tensor.data.as_ref().ok_or_else(|| wrong("it is a weight and has no elements".into()))?;
        let dims = &tensor.dims;
        match self {
            TensorPart::Whole => Ok(HostWeight { shape: dims.clone(), format, bytes: Arc::from(&data[..]) }),
            TensorPart::Rows { index, of } => {
                let Some((&width, &rows)) = dims.iter().rev().zip(dims.iter().rev().skip(1)).next() else {
                    return Err(wrong(format!("it has the sizes {dims:?}, a matrix is wanted")));
                };
                if of == 0 || index >= of || !rows.is_multiple_of(of) {
                    return Err(wrong(format!(
                        "its {rows} rows do not divide into {of} parts of which one is {index}"
                    )));
                }
                let row = format.info().row_bytes(width as usize);
                let (matrix, part) = (row * rows as usize, row * (rows / of) as usize);
                let first = part * index as usize;
                let parts = data.chunks_exact(matrix).flat_map(|matrix| &matrix[first..first + part]);
                let bytes = parts.copied().collect();
                let mut shape = dims.clone();
                let at = shape.len() - 2;
                shape[at] = rows / of;
                Ok(HostWeight { shape, format, bytes })
            }
            TensorPart::Table { columns } => table(dims, format, data, columns as usize).map_err(wrong),
        }
    }
}

fn table(dims: &[u32], format: Format, data: &[u8], columns: usize) -> Result<HostWeight, String> {
    let width = dims.last().map_or(0, |&n| n as usize);
    let elements: usize = dims.iter().map(|&n| n as usize).product();
    if columns == 0 || (width != columns && width != 2 * columns) {
        return Err(format!("its rows have {width} elements; {columns}, or the same twice, are wanted"));
    }
    let mut values = vec![0f32; elements];
    (format.info().decode)(data, &mut values);
    let mut bytes = Vec::with_capacity(elements / width * columns * 4);
    for (position, row) in values.chunks_exact(width).enumerate() {
        let (first, second) = row.split_at(columns);
        if !second.is_empty() && first != second {
            return Err(format!(
                "position {position} has other values in its second half: halves rotate together here, not neighbours"
            ));
        }
        bytes.extend(first.iter().flat_map(|x| x.to_le_bytes()));
    }
    let shape = vec![(elements / width) as u32, columns as u32];
    Ok(HostWeight { shape, format: Format::F32, bytes: bytes.into() })
}
