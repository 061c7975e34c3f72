//! Stored formats that nothing computes with, decoded while a model is loaded, without losing a bit: into a block format
//! where scales and codes go over one to one, into bf16 where every value is one, else into f32.
//!
//! A decoder knows how the values of one tensor come of the bytes of its parts. It does not know what the tensor is for,
//! where the parts lie in which file (that is [`crate::checkpoint`]), or who takes the values.

pub(crate) mod ggml;
pub(crate) mod quantized;

use std::fmt::Debug;
use std::ops::Range;
use yirage_ir::Format;

/// How the values of a tensor come of its parts.
///
/// The bytes of the parts are given in the order that the decoder's table names them; their lengths were checked against
/// the tensor's shape when the file was opened.
pub(crate) trait TensorDecoder: Debug + Send + Sync {
    /// The smallest format that holds every value exactly. Looks at scales at most.
    fn format(&self, parts: &[&[u8]]) -> Format;

    /// Appends `elements` in `format`, which is the one that [`TensorDecoder::format`] gives, or f32. They begin and end with
    /// blocks of that format.
    fn decode(&self, parts: &[&[u8]], elements: Range<usize>, format: Format, out: &mut Vec<u8>);
}

/// Formats that tensors were decoded from, in memory: one line for each pair of formats.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DecodedTensors {
    /// The stored format's name.
    pub stored: String,
    /// The format that its values are computed with.
    pub format: Format,
    /// How many tensors.
    pub tensors: usize,
    /// Their bytes in the files.
    pub stored_bytes: u64,
    /// Their bytes in memory.
    pub bytes: u64,
}

impl std::fmt::Display for DecodedTensors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let DecodedTensors { stored, format, tensors, stored_bytes, bytes } = self;
        let name = format.info().name;
        write!(f, "{stored}: {tensors} tensors, {stored_bytes} bytes in the file, are {name}, {bytes} bytes in memory")
    }
}
