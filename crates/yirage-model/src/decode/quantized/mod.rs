//! Weights of safetensors models that several tensors of a module make: codes, scales, zero points. One file for each way
//! of packing and one line of [`SCHEMES`] for each.

mod awq;
mod bitsandbytes;
mod compressed;
mod float_scaled;
mod float_type;
mod fp8;
mod gptq;
mod hqq;
mod integer;
mod module;
mod mxfp4;
mod nvfp4;
mod words;

use super::TensorDecoder;
use crate::error::ModelError;
pub(crate) use float_type::PartType;
pub(crate) use module::{ModulePart, QuantizationSettings, QuantizedModule};

/// A weight as its module's tensors make it.
pub(crate) struct QuantizedWeight {
    /// The packing, with all that the values depend on beside the tensors.
    pub(crate) name: String,
    /// Dimensions, outermost first.
    pub(crate) shape: Vec<usize>,
    /// Ends of the names of the parts, in the decoder's order; the first are the codes.
    pub(crate) parts: Vec<&'static str>,
    /// What makes values of them.
    pub(crate) decoder: Box<dyn TensorDecoder>,
}

/// A way of packing.
pub(crate) struct QuantizationScheme {
    /// End of the name of the tensor with the codes.
    pub(crate) codes: &'static str,
    /// Ends of the names of the tensors that belong to a weight of it, read or not.
    pub(crate) all: &'static [&'static str],
    /// Whether a module that has such codes is packed so.
    pub(crate) is: fn(&QuantizedModule<'_>) -> bool,
    /// Checks the parts, and makes the decoder.
    pub(crate) read: fn(&QuantizedModule<'_>) -> Result<QuantizedWeight, ModelError>,
}

/// Ends of the names of what says how activations were to be rounded, which they are not here.
pub(crate) const ACTIVATIONS: &[&str] =
    &[".input_scale", ".input_scale_ub", ".input_zero_point", ".input_global_scale", ".activation_scale"];

/// Every way of packing: the only list.
pub(crate) const SCHEMES: &[QuantizationScheme] = &[
    QuantizationScheme { codes: ".qweight", all: gptq::PARTS, is: |m| m.method() == Some("gptq"), read: gptq::read },
    QuantizationScheme { codes: ".qweight", all: awq::PARTS, is: |m| m.method() == Some("awq"), read: awq::read },
    QuantizationScheme { codes: ".weight_packed", all: nvfp4::PACKED, is: nvfp4::is_packed, read: nvfp4::read_packed },
    QuantizationScheme { codes: ".weight_packed", all: mxfp4::PARTS, is: mxfp4::is, read: mxfp4::read },
    QuantizationScheme { codes: ".weight_packed", all: compressed::PARTS, is: compressed::is, read: compressed::read },
    QuantizationScheme { codes: ".weight", all: fp8::PARTS, is: fp8::is, read: fp8::read },
    QuantizationScheme { codes: ".weight", all: nvfp4::PLAIN, is: nvfp4::is_plain, read: nvfp4::read_plain },
    QuantizationScheme {
        codes: ".weight",
        all: compressed::BYTES,
        is: compressed::is_bytes,
        read: compressed::read_bytes,
    },
    QuantizationScheme {
        codes: ".weight",
        all: bitsandbytes::FOUR,
        is: bitsandbytes::is_four,
        read: bitsandbytes::read_four,
    },
    QuantizationScheme {
        codes: ".weight",
        all: bitsandbytes::EIGHT,
        is: bitsandbytes::is_eight,
        read: bitsandbytes::read_eight,
    },
    QuantizationScheme { codes: ".W_q", all: hqq::PARTS, is: |_| true, read: hqq::read },
];
