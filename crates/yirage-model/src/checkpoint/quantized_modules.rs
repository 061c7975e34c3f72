//! Finding weights that several tensors make, when a safetensors model is opened: they stand in the table as one tensor, and
//! their parts do not.

use super::decoded::DecodedTensor;
use super::{Checkpoint, StoredType, TensorInfo};
use crate::decode::quantized::{
    ACTIVATIONS, ModulePart, PartType, QuantizationScheme, QuantizationSettings, QuantizedModule, QuantizedWeight,
    SCHEMES,
};
use crate::error::ModelError;
use crate::limits::CONFIG_BYTES;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use yirage_mmap::read_bytes_if_there;

/// A weight that was found.
struct FoundWeight {
    /// The tensor with its codes.
    codes: usize,
    /// All tensors that belong to it.
    all: Vec<usize>,
    info: TensorInfo,
    decoded: DecodedTensor,
}

impl Checkpoint {
    /// Has weights stand for their parts.
    ///
    /// # Errors
    /// [`ModelError::MissingTensor`] and [`ModelError::Config`] for parts that are absent or do not fit each other;
    /// [`ModelError::Unsupported`] for layouts that are not read.
    pub(super) fn join_quantized(mut self) -> Result<Checkpoint, ModelError> {
        let candidates: Vec<usize> = (0..self.tensors.len()).filter(|&i| may_be_codes(&self.tensors[i])).collect();
        if candidates.is_empty() {
            return Ok(self);
        }
        let settings = self.quantization_settings();
        let found = candidates.into_iter().filter_map(|i| self.found(i, &settings).transpose());
        let found = found.collect::<Result<Vec<FoundWeight>, ModelError>>()?;
        self.intact()?;
        let mut parts: HashSet<usize> = found.iter().flat_map(|weight| weight.all.iter().copied()).collect();
        for weight in found {
            parts.remove(&weight.codes);
            self.decoded.insert(weight.info.name.clone(), weight.decoded);
            self.tensors[weight.codes] = weight.info;
        }
        self.drop_parts(&parts);
        Ok(self)
    }

    /// The `quantization_config` of the model. One that cannot be read is reported when the configuration is.
    fn quantization_settings(&self) -> QuantizationSettings {
        let Some(path) = self.folder().map(|folder| folder.join("config.json")) else { return Default::default() };
        let file = path.display().to_string();
        let bytes = read_bytes_if_there(&path, CONFIG_BYTES).ok().flatten();
        let config: Value = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        let sections = [&config, &config["text_config"]];
        let settings = |section: &&Value| {
            let keys = ["quantization_config", "compression_config"];
            keys.into_iter().find_map(|key| section[key].as_object().cloned())
        };
        let values = sections.iter().find_map(settings);
        QuantizationSettings { file, values }
    }

    fn found(&self, at: usize, settings: &QuantizationSettings) -> Result<Option<FoundWeight>, ModelError> {
        for scheme in SCHEMES {
            let Some(stem) = self.tensors[at].name.strip_suffix(scheme.codes) else { continue };
            let module = self.module(stem, settings);
            if (scheme.is)(&module) {
                let weight = (scheme.read)(&module)?;
                return self.weight(at, scheme, &module, weight).map(Some);
            }
        }
        Ok(None)
    }

    fn module<'a>(&'a self, stem: &'a str, settings: &'a QuantizationSettings) -> QuantizedModule<'a> {
        let ends = SCHEMES.iter().flat_map(|s| s.all).chain(ACTIVATIONS);
        let part = |end: &&'static str| {
            let t = self.tensor(&format!("{stem}{end}"))?;
            let place = (t.file, t.range.clone());
            let part =
                ModulePart { ty: PartType::of(&t.dtype.to_string()), shape: &t.shape, bytes: self.bytes(t), place };
            Some((*end, part))
        };
        let parts: HashMap<&'static str, ModulePart<'a>> = ends.filter_map(part).collect();
        let codes = SCHEMES.iter().find_map(|s| self.tensor(&format!("{stem}{}", s.codes)));
        let file = codes.map_or_else(|| self.label(), |t| self.files[t.file].path.display().to_string());
        QuantizedModule { file, stem, parts, settings }
    }

    fn weight(
        &self,
        codes: usize,
        scheme: &QuantizationScheme,
        module: &QuantizedModule<'_>,
        weight: QuantizedWeight,
    ) -> Result<FoundWeight, ModelError> {
        let name = format!("{}.weight", module.stem);
        if self.index.get(&name).is_some_and(|&other| other != codes) {
            return Err(ModelError::Config {
                file: module.file.clone(),
                key: format!("tensor {name:?}"),
                expected: format!("a weight once, here packed in {:?}", self.tensors[codes].name),
                found: "the same weight again".into(),
            });
        }
        let places = weight.parts.iter().map(|end| module.parts[end].place.clone()).collect();
        let ends = scheme.all.iter().chain(ACTIVATIONS);
        let all = ends.filter_map(|end| self.index.get(&format!("{}{end}", module.stem)).copied()).collect();
        let info = TensorInfo {
            name,
            dtype: StoredType::Quantized(weight.name),
            shape: weight.shape,
            file: self.tensors[codes].file,
            range: self.tensors[codes].range.clone(),
        };
        Ok(FoundWeight { codes, all, info, decoded: DecodedTensor::of_parts(weight.decoder, places) })
    }
}

/// Whether a tensor may hold the codes of a packed weight.
fn may_be_codes(t: &TensorInfo) -> bool {
    let plain = matches!(t.dtype, StoredType::Format(_));
    !plain && SCHEMES.iter().any(|scheme| t.name.ends_with(scheme.codes))
}
