//! What a kernel has before its layers: options, metadata, tensors by their names.

use crate::bytes::SharedBytes;
use crate::config::KernelConfig;
use crate::error::PersistentError;
use crate::limits::MAX_TENSORS;
use crate::meta::MetaTensors;
use crate::tensor::{DeclaredTensor, KernelTensor, TensorId, TensorSource};
use std::collections::HashMap;

/// Options, metadata and tensors.
#[derive(Clone, Debug)]
pub(crate) struct KernelDeclaration {
    pub(crate) config: KernelConfig,
    pub(crate) meta: MetaTensors,
    tensors: Vec<DeclaredTensor>,
    names: HashMap<String, TensorId>,
    /// The scales of weights of 8-bit floats.
    scales: HashMap<TensorId, TensorId>,
}

impl KernelDeclaration {
    /// Nothing but options and metadata.
    ///
    /// # Errors
    /// As [`KernelConfig::check`]; [`PersistentError::Meta`] for rows shorter than `max_seq_length`.
    pub(crate) fn new(config: KernelConfig, meta: MetaTensors) -> Result<KernelDeclaration, PersistentError> {
        config.check()?;
        check(&config, &meta)?;
        Ok(KernelDeclaration { config, meta, tensors: Vec::new(), names: HashMap::new(), scales: HashMap::new() })
    }

    /// Other metadata.
    ///
    /// # Errors
    /// [`PersistentError::Meta`] for rows shorter than `max_seq_length`.
    pub(crate) fn set_meta(&mut self, meta: MetaTensors) -> Result<(), PersistentError> {
        check(&self.config, &meta)?;
        self.meta = meta;
        Ok(())
    }

    /// Adds a tensor.
    ///
    /// # Errors
    /// [`PersistentError::DeclaredTensor`] for a name that is taken or none, and elements that do not fit the sizes.
    pub(crate) fn add(
        &mut self,
        name: &str,
        given: KernelTensor,
        kind: TensorSource,
    ) -> Result<TensorId, PersistentError> {
        let wrong = |why: String| Err(PersistentError::Tensor { name: name.to_owned(), why });
        if name.is_empty() || name.len() > 256 || name.chars().any(char::is_control) {
            return wrong("a name of 1 to 256 bytes without control characters is wanted".into());
        }
        if self.names.contains_key(name) {
            return wrong("the name is taken".into());
        }
        if self.tensors.len() >= MAX_TENSORS {
            return wrong(format!("a kernel has at most {MAX_TENSORS} tensors"));
        }
        given.check(name)?;
        let id = TensorId(self.tensors.len() as u32);
        self.tensors.push(DeclaredTensor { name: name.to_owned(), tensor: given, kind });
        self.names.insert(name.to_owned(), id);
        Ok(id)
    }

    /// Other elements of a tensor.
    ///
    /// # Errors
    /// [`PersistentError::DeclaredTensor`] for another number of them, [`PersistentError::UnknownTensor`].
    pub(crate) fn set_elements(&mut self, id: TensorId, data: SharedBytes) -> Result<(), PersistentError> {
        let Some(of) = self.tensors.get_mut(id.0 as usize) else { return Err(PersistentError::UnknownTensor(id.0)) };
        let given = KernelTensor { data: Some(data), ..of.tensor.clone() };
        given.check(&of.name)?;
        of.tensor = given;
        Ok(())
    }

    /// A tensor by its name.
    pub(crate) fn find(&self, name: &str) -> Option<TensorId> {
        self.names.get(name).copied()
    }

    /// A tensor.
    ///
    /// # Errors
    /// [`PersistentError::UnknownTensor`].
    pub(crate) fn of(&self, id: TensorId) -> Result<&DeclaredTensor, PersistentError> {
        self.tensors.get(id.0 as usize).ok_or(PersistentError::UnknownTensor(id.0))
    }

    /// Says which tensor has the scales of a weight.
    ///
    /// # Errors
    /// [`PersistentError::UnknownTensor`], and [`PersistentError::DeclaredTensor`] for a weight that has other scales already.
    pub(crate) fn scale(&mut self, weight: TensorId, scales: TensorId) -> Result<(), PersistentError> {
        let other = self.of(scales)?.name.clone();
        match self.scales.insert(weight, scales) {
            Some(known) if known != scales => {
                let why = format!("its scales are `{}` in one layer and `{other}` in another", self.of(known)?.name);
                Err(PersistentError::Tensor { name: self.of(weight)?.name.clone(), why })
            }
            _ => Ok(()),
        }
    }

    /// The scales of a weight, if it has any.
    ///
    /// # Errors
    /// [`PersistentError::UnknownTensor`].
    pub(crate) fn scales_of(&self, weight: TensorId) -> Result<Option<&DeclaredTensor>, PersistentError> {
        self.scales.get(&weight).map(|&id| self.of(id)).transpose()
    }

    /// Weights with the tensors of their scales, in order.
    pub(crate) fn scaled(&self) -> Vec<(TensorId, TensorId)> {
        let mut all: Vec<_> = self.scales.iter().map(|(&weight, &scales)| (weight, scales)).collect();
        all.sort_unstable();
        all
    }

    /// All of them.
    pub(crate) fn tensors(&self) -> impl Iterator<Item = &DeclaredTensor> {
        self.tensors.iter()
    }
}

fn check(config: &KernelConfig, meta: &MetaTensors) -> Result<(), PersistentError> {
    if meta.max_seq_length() >= config.max_seq_length as usize {
        return Ok(());
    }
    let (width, wanted) = (meta.max_seq_length(), config.max_seq_length);
    let why = format!("its rows have {width} positions, max_seq_length is {wanted}: as many are wanted");
    Err(PersistentError::Meta { name: "tokens".into(), why })
}
