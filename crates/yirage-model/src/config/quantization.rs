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
}

impl RawConfig {
    /// The stored quantisation.
    ///
    /// # Errors
    /// [`ModelError::Unsupported`] with the name of any other than MXFP4.
    pub fn quantization(&self) -> Result<Quantization, ModelError> {
        let config = self.top().opt("quantization_config", "an object", Value::as_object)?;
        let Some(values) = config else { return Ok(Quantization::None) };
        let section = Section { file: self.file(), prefix: "quantization_config.", values, names: &self.names };
        let method = section.opt_str("quant_method")?.unwrap_or("unnamed");
        let what = match method {
            "mxfp4" => return Ok(Quantization::Mxfp4),
            "fp8" | "fbgemm_fp8" | "finegrained_fp8" | "modelopt_fp8" => "FP8 quantisation".to_owned(),
            "awq" => "AWQ quantisation".to_owned(),
            "gptq" => "GPTQ quantisation".to_owned(),
            "bitsandbytes" => "bitsandbytes quantisation".to_owned(),
            other => format!("the stored quantisation {other:?}"),
        };
        let why = format!(
            "{}: quantization_config.quant_method is {method:?}; use the model's unquantised safetensors or a GGUF file",
            self.file()
        );
        Err(ModelError::Unsupported { what, why })
    }
}
