//! The tensors of one module and what the configuration says of them; reading a part is checking its type and its shape.

use super::float_type::PartType;
use crate::error::ModelError;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::ops::Range;

/// What `quantization_config` says, if there is one.
#[derive(Default)]
pub(crate) struct QuantizationSettings {
    /// The file, as errors call it.
    pub(crate) file: String,
    /// The object.
    pub(crate) values: Option<Map<String, Value>>,
}

/// A tensor of a module.
pub(crate) struct ModulePart<'a> {
    /// What its elements are.
    pub(crate) ty: PartType,
    /// Dimensions, outermost first.
    pub(crate) shape: &'a [usize],
    /// Its bytes.
    pub(crate) bytes: &'a [u8],
    /// Where they lie.
    pub(crate) place: (usize, Range<usize>),
}

/// The tensors whose names begin alike.
pub(crate) struct QuantizedModule<'a> {
    /// The file, as errors call it.
    pub(crate) file: String,
    /// What the names begin with.
    pub(crate) stem: &'a str,
    /// The tensors by the ends of their names.
    pub(crate) parts: HashMap<&'static str, ModulePart<'a>>,
    /// What the configuration says.
    pub(crate) settings: &'a QuantizationSettings,
}

impl<'a> QuantizedModule<'a> {
    /// `quant_method`.
    pub(super) fn method(&self) -> Option<&'a str> {
        self.setting("quant_method").and_then(Value::as_str)
    }

    /// A value of the configuration that is neither absent nor null.
    pub(super) fn setting(&self, key: &str) -> Option<&'a Value> {
        self.settings.values.as_ref()?.get(key).filter(|v| !v.is_null())
    }

    /// The settings of weights in a `compressed-tensors` configuration: those of its only group.
    ///
    /// # Errors
    /// [`ModelError::Unsupported`] for several groups that differ.
    pub(super) fn group_setting(&self, key: &str) -> Result<Option<&'a Value>, ModelError> {
        let groups = self.setting("config_groups").and_then(Value::as_object);
        let mut values = groups.into_iter().flat_map(Map::values).map(|group| &group["weights"][key]);
        let Some(first) = values.next() else { return Ok(None) };
        if values.all(|other| other == first) {
            return Ok(Some(first).filter(|v| !v.is_null()));
        }
        Err(self.unsupported("groups of modules that are packed in several ways", "config_groups differ"))
    }

    /// A whole number of the configuration.
    ///
    /// # Errors
    /// [`ModelError::Config`] for another value, also for an absent one without `default`.
    pub(super) fn whole(&self, key: &str, default: Option<i64>) -> Result<i64, ModelError> {
        let found = self.setting(key);
        let number = found.map_or(default, Value::as_i64);
        number.ok_or_else(|| {
            let found = found.map_or("nothing".to_owned(), Value::to_string);
            self.misconfigured(key, "a whole number".into(), found)
        })
    }

    /// The error for a key of the configuration.
    pub(super) fn misconfigured(&self, key: &str, expected: String, found: String) -> ModelError {
        let key = format!("quantization_config.{key}");
        ModelError::Config { file: self.settings.file.clone(), key, expected, found }
    }

    /// The error for a way of packing that is not read.
    pub(super) fn unsupported(&self, what: &str, why: &str) -> ModelError {
        let why = format!("{}: {why}; use the model's unquantised safetensors or a GGUF file", self.settings.file);
        ModelError::Unsupported { what: what.to_owned(), why }
    }

    /// The error for a tensor.
    pub(super) fn misfit(&self, end: &str, expected: String, found: String) -> ModelError {
        let key = format!("tensor {:?}", format!("{}{end}", self.stem));
        ModelError::Config { file: self.file.clone(), key, expected, found }
    }

    /// The module's tensor with that end.
    pub(super) fn get(&self, end: &str) -> Option<&ModulePart<'a>> {
        self.parts.get(end)
    }

    /// The same, which must be there and of one of these types.
    ///
    /// # Errors
    /// [`ModelError::MissingTensor`], [`ModelError::Config`].
    pub(super) fn typed(&self, end: &str, types: &[PartType]) -> Result<&ModulePart<'a>, ModelError> {
        let missing = || ModelError::MissingTensor { file: self.file.clone(), tensor: format!("{}{end}", self.stem) };
        let part = self.get(end).ok_or_else(missing)?;
        if types.contains(&part.ty) {
            return Ok(part);
        }
        let names: Vec<&str> = types.iter().map(|ty| ty.name()).collect();
        Err(self.misfit(end, format!("elements of {}", names.join(" or ")), part.ty.name().to_owned()))
    }

    /// The same, which must have this shape as well.
    ///
    /// # Errors
    /// [`ModelError::MissingTensor`], [`ModelError::Config`].
    pub(super) fn shaped(&self, end: &str, types: &[PartType], shape: &[usize]) -> Result<&ModulePart<'a>, ModelError> {
        let part = self.typed(end, types)?;
        if part.shape == shape {
            return Ok(part);
        }
        Err(self.misfit(end, format!("the shape {shape:?}, as the codes imply"), format!("{:?}", part.shape)))
    }

    /// The two dimensions of a part, neither of them zero.
    ///
    /// # Errors
    /// [`ModelError::Config`].
    pub(super) fn matrix(&self, end: &str, part: &ModulePart<'_>) -> Result<[usize; 2], ModelError> {
        match *part.shape {
            [rows, width] if rows > 0 && width > 0 => Ok([rows, width]),
            _ => Err(self.misfit(end, "a matrix, no dimension zero".into(), format!("the shape {:?}", part.shape))),
        }
    }
}
