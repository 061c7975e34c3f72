//! Quantisations that a `config.json` announces, recognised by name.

use super::RawConfig;
use super::access::Section;
use crate::error::ModelError;
use serde_json::Value;

/// How weights of a safetensors model are stored, beyond plain floats.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Quantization {
    /// As their tensors' types say.
    None,
    /// Expert weights in `*_blocks` and `*_scales` tensors of bytes.
    Mxfp4,
    /// In several tensors of each module, which are decoded when they are read.
    Decoded,
}

/// Methods whose tensors are decoded.
const DECODED: &[&str] = &[
    "gptq",
    "awq",
    "fp8",
    "fbgemm_fp8",
    "finegrained_fp8",
    "modelopt",
    "modelopt_fp8",
    "compressed-tensors",
    "bitsandbytes",
    "hqq",
];

impl RawConfig {
    /// The stored quantisation.
    ///
    /// # Errors
    /// [`ModelError::Unsupported`] with the name of a method that is not read.
    pub fn quantization(&self) -> Result<Quantization, ModelError> {
        let config = self.top().opt("quantization_config", "an object", Value::as_object)?;
        let Some(values) = config else { return Ok(Quantization::None) };
        let section = Section { file: self.file(), prefix: "quantization_config.", values, names: &self.names };
        let method = section.opt_str("quant_method")?.unwrap_or("unnamed");
        let what = match method {
            "mxfp4" => return Ok(Quantization::Mxfp4),
            known if DECODED.contains(&known) => return Ok(Quantization::Decoded),
            other => format!("the stored quantisation {other:?}"),
        };
        let why = format!(
            "{}: quantization_config.quant_method is {method:?}; use the model's unquantised safetensors or a GGUF file",
            self.file()
        );
        Err(ModelError::Unsupported { what, why })
    }
}
