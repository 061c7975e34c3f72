//! Tensors and layers of a kernel, as they are declared: names, sizes and order are checked with each; and their graph.

use crate::bytes::SharedBytes;
use crate::config::KernelConfig;
use crate::declaration::KernelDeclaration;
use crate::elements::KernelDType;
use crate::emit::{EmittedGraph, GraphPurpose, LayerEmitter};
use crate::error::PersistentError;
use crate::grid::LaunchDims;
use crate::layer::Layer;
use crate::limits::MAX_LAYERS;
use crate::meta::MetaTensors;
use crate::notice::{KernelNotice, Notices};
use crate::tensor::{DeclaredTensor, KernelTensor, TensorId, TensorSource};
use crate::wire::{LayerInput, Wire};
use std::collections::HashMap;
use yirage_hal::Device;
use yirage_ir::Format;

/// A kernel that is being built.
pub struct KernelBuilder {
    pub(crate) declared: KernelDeclaration,
    pub(crate) wires: Vec<Wire>,
    pub(crate) notices: Notices,
    pub(crate) layers: Vec<Recorded>,
    /// The layer that wrote a tensor last.
    written: HashMap<TensorId, usize>,
    /// The layer that has a cache, by its tensors.
    pub(crate) caches: HashMap<TensorId, usize>,
    /// Ranks whose layers it has.
    pub(crate) ranks: u32,
}

/// A layer and the rank that it is of.
pub(crate) struct Recorded {
    pub(crate) layer: Box<dyn Layer>,
    /// What is added to the numbers of tensors that it knows: tensors of the ranks before.
    pub(crate) base: u32,
}

impl KernelBuilder {
    /// A kernel without layers.
    ///
    /// # Errors
    /// As [`KernelConfig::check`]; [`PersistentError::Meta`] for rows shorter than `max_seq_length`.
    pub fn new(config: KernelConfig, meta: MetaTensors) -> Result<KernelBuilder, PersistentError> {
        let declared = KernelDeclaration::new(config, meta)?;
        let config = &declared.config;
        let mut notices = Notices::default();
        if config.num_local_schedulers > 0 || config.num_remote_schedulers > 0 {
            notices.tell(KernelNotice::Schedulers);
        }
        if !matches!(config.mode.name(), "offline" | "onepass") {
            notices.tell(KernelNotice::Mode(config.mode.name()));
        }
        Ok(KernelBuilder {
            declared,
            wires: Vec::new(),
            notices,
            layers: Vec::new(),
            written: HashMap::new(),
            caches: HashMap::new(),
            ranks: 1,
        })
    }

    /// Attaches a tensor: a weight, a cache, or what a layer reads in test mode.
    ///
    /// # Errors
    /// [`PersistentError::Tensor`] for a name that is taken and elements that do not fit the sizes.
    pub fn attach_input(&mut self, tensor: KernelTensor, name: &str) -> Result<TensorId, PersistentError> {
        self.declared.add(name, tensor, TensorSource::Attached)
    }

    /// Takes the elements of an attached tensor as its owner has them now, as many as there were.
    ///
    /// # Errors
    /// [`PersistentError::Tensor`] for another number of elements.
    pub fn set_elements(&mut self, id: TensorId, data: SharedBytes) -> Result<(), PersistentError> {
        self.declared.set_elements(id, data)
    }

    /// A tensor that a layer writes.
    ///
    /// # Errors
    /// As [`KernelBuilder::attach_input`].
    pub fn new_tensor(&mut self, dims: &[u32], elements: KernelDType, name: &str) -> Result<TensorId, PersistentError> {
        let kept = matches!(elements, KernelDType::Floats(Format::F32) | KernelDType::Int32 | KernelDType::Int64);
        if !kept {
            self.notices.tell(KernelNotice::Activations);
        }
        self.declared.add(name, KernelTensor::declared(dims, elements), TensorSource::New)
    }

    /// Weights as one, whose rows are interleaved in `num_groups` groups: queries, keys and values by heads of keys, or
    /// gate and up. What is computed with it has their results in the same order.
    ///
    /// # Errors
    /// [`PersistentError::Tensor`] for other than matrices with equal rows whose rows divide into the groups.
    pub fn fuse_tensors(
        &mut self,
        inputs: &[TensorId],
        fused_dim: u32,
        num_groups: u32,
        name: &str,
    ) -> Result<TensorId, PersistentError> {
        let wrong = |why: String| PersistentError::Tensor { name: name.to_owned(), why };
        if inputs.is_empty() || fused_dim != 0 || num_groups == 0 {
            let parts = inputs.len();
            return Err(wrong(format!(
                "{parts} weights along dimension {fused_dim} in {num_groups} groups: one at least, 0 and 1 at least are wanted"
            )));
        }
        let first = self.of(inputs[0])?.tensor.clone();
        let mut rows = 0u32;
        for &input in inputs {
            let of = self.of(input)?;
            let t = &of.tensor;
            let fits = t.dims.len() == 2 && t.dims.get(1) == first.dims.get(1) && t.elements == first.elements;
            if !fits || !t.dims[0].is_multiple_of(num_groups) || !matches!(of.kind, TensorSource::Attached) {
                let (part, dims, elements) = (&of.name, &t.dims, t.elements);
                return Err(wrong(format!(
                    "`{part}` is {elements} {dims:?}: an attached matrix of {} with rows like `{}` and a number of them \
                     that divides into {num_groups} groups is wanted",
                    first.elements,
                    self.of(inputs[0])?.name
                )));
            }
            rows = rows.checked_add(t.dims[0]).ok_or_else(|| wrong("its rows are too many".into()))?;
        }
        let tensor = KernelTensor::declared(&[rows, first.dims[1]], first.elements);
        self.declared.add(name, tensor, TensorSource::Fused { parts: inputs.to_vec(), groups: num_groups })
    }

    /// [`KernelBuilder::fuse_tensors`] by Mirage's newer name: the rows are shuffled into groups.
    ///
    /// # Errors
    /// As [`KernelBuilder::fuse_tensors`].
    pub fn shuffle_tensors(
        &mut self,
        inputs: &[TensorId],
        shuffled_dim: u32,
        num_groups: u32,
        name: &str,
    ) -> Result<TensorId, PersistentError> {
        self.fuse_tensors(inputs, shuffled_dim, num_groups, name)
    }

    /// Takes the metadata as its owner has it now.
    ///
    /// # Errors
    /// [`PersistentError::Meta`] for rows shorter than `max_seq_length`.
    pub fn set_meta(&mut self, meta: MetaTensors) -> Result<(), PersistentError> {
        self.declared.set_meta(meta)
    }

    /// Has requests end by another token than the options say; by none they run to their full length.
    pub fn end_by(&mut self, eos_token_id: Option<u32>) {
        self.declared.config.eos_token_id = eos_token_id;
    }

    /// What was asked for and means something else here, since the last call.
    pub fn notices(&mut self) -> Vec<KernelNotice> {
        self.notices.take()
    }

    /// The metadata.
    pub fn meta(&self) -> &MetaTensors {
        &self.declared.meta
    }

    /// How the kernel will run.
    pub fn config(&self) -> &KernelConfig {
        &self.declared.config
    }

    /// What is attached, by name: what [`PersistentKernel::load`](crate::PersistentKernel::load) wants of it again.
    pub fn attached_tensors(&self) -> impl Iterator<Item = (&str, &KernelTensor)> {
        let attached = self.declared.tensors().filter(|of| matches!(of.kind, TensorSource::Attached));
        attached.map(|of| (of.name.as_str(), &of.tensor))
    }

    /// What a tensor is.
    ///
    /// # Errors
    /// [`PersistentError::UnknownTensor`].
    pub fn tensor(&self, id: TensorId) -> Result<&KernelTensor, PersistentError> {
        Ok(&self.of(id)?.tensor)
    }

    /// A tensor by its name.
    pub fn find(&self, name: &str) -> Option<TensorId> {
        self.declared.find(name)
    }

    /// A tensor.
    pub(crate) fn of(&self, id: TensorId) -> Result<&DeclaredTensor, PersistentError> {
        self.declared.of(id)
    }

    /// The layer method that wrote a tensor last, and its number.
    pub(crate) fn writer(&self, id: TensorId) -> Option<(&'static str, usize)> {
        self.written.get(&id).map(|&at| (self.wires[at].method, at))
    }

    /// Whether a layer that chooses tokens wrote a tensor last.
    pub(crate) fn chosen(&self, id: TensorId) -> bool {
        self.written.get(&id).is_some_and(|&at| self.wires[at].chooses)
    }

    /// Layers that were recorded so far.
    pub(crate) fn layers(&self) -> usize {
        self.wires.len()
    }

    /// Elements of a row of an activation.
    pub(crate) fn width(&self, id: TensorId) -> Result<u32, PersistentError> {
        Ok(self.of(id)?.width())
    }

    /// The sizes of a weight that is a matrix.
    pub(crate) fn matrix(&self, layer: &'static str, id: TensorId) -> Result<[u32; 2], PersistentError> {
        let of = self.of(id)?;
        match of.tensor.dims[..] {
            [n, k] => Ok([n, k]),
            _ => Err(PersistentError::Layer {
                layer,
                why: format!("`{}` is {:?}, a matrix is wanted", of.name, of.tensor.dims),
            }),
        }
    }

    /// Adds a layer.
    ///
    /// # Errors
    /// [`PersistentError::Layer`] for a launch that no GPU has, a tensor that nobody wrote or nobody may write, and
    /// tensors with different numbers of rows.
    pub(crate) fn record(
        &mut self,
        layer: impl Layer + 'static,
        launch: LaunchDims,
        reads: &[TensorId],
        writes: &[TensorId],
    ) -> Result<(), PersistentError> {
        self.record_of(layer, launch, reads, writes, &[reads, writes].concat())
    }

    /// [`KernelBuilder::record`] of a layer of which only `rows` have a row for each token.
    pub(crate) fn record_of(
        &mut self,
        layer: impl Layer + 'static,
        launch: LaunchDims,
        reads: &[TensorId],
        writes: &[TensorId],
        rows: &[TensorId],
    ) -> Result<(), PersistentError> {
        let method = layer.method();
        launch.check(method)?;
        let wrong = |why| PersistentError::Layer { layer: method, why };
        if self.ranks > 1 {
            return Err(wrong("the ranks are joined: layers are recorded in the builder of each before".into()));
        }
        if self.wires.len() >= MAX_LAYERS {
            return Err(wrong(format!("a kernel has at most {MAX_LAYERS} layers")));
        }
        let mut resolved = Vec::with_capacity(reads.len());
        for &tensor in reads {
            let (of, by) = (self.of(tensor)?, self.written.get(&tensor).copied());
            match (&of.kind, by) {
                (TensorSource::Fused { .. }, _) => {
                    return Err(wrong(format!("`{}` is a weight, not what a layer reads", of.name)));
                }
                (TensorSource::New, None) => {
                    return Err(wrong(format!("`{}` is read before a layer writes it", of.name)));
                }
                _ => resolved.push(LayerInput { tensor, by }),
            }
        }
        let all: Vec<u32> = rows.iter().map(|&id| self.of(id).map(DeclaredTensor::rows)).collect::<Result<_, _>>()?;
        if all.windows(2).any(|pair| pair[0] != pair[1]) {
            let names = rows.iter().filter_map(|&id| self.of(id).ok());
            let sizes: Vec<String> = names.map(|of| format!("`{}` {:?}", of.name, of.tensor.dims)).collect();
            return Err(wrong(format!("all have the same rows: {}", sizes.join(", "))));
        }
        for &tensor in writes {
            let of = self.of(tensor)?;
            if matches!(of.kind, TensorSource::Fused { .. }) || writes.iter().filter(|&&w| w == tensor).count() > 1 {
                return Err(wrong(format!("`{}` cannot be written: each output is a tensor of its own", of.name)));
            }
        }
        self.notices.tell(KernelNotice::Launches);
        let at = self.wires.len();
        self.written.extend(writes.iter().map(|&tensor| (tensor, at)));
        let (row_by_row, chooses, writes) = (layer.row_by_row(), layer.chooses(), writes.to_vec());
        self.wires.push(Wire { method, reads: resolved, writes, row_by_row, chooses });
        self.layers.push(Recorded { layer: Box::new(layer), base: 0 });
        Ok(())
    }

    /// The graph of all layers, for a device.
    ///
    /// # Errors
    /// The first layer whose ops do not fit, or that reads what no graph gives.
    pub(crate) fn emit(&self, purpose: GraphPurpose, device: &dyn Device) -> Result<EmittedGraph, PersistentError> {
        let processes = self.processes(device)?;
        let mut e = LayerEmitter::new(&self.declared, &self.wires, purpose, processes);
        for Recorded { layer, base } in &self.layers {
            e.base = *base;
            let made = layer.emit(&mut e)?;
            e.end_layer(made);
        }
        e.finish()
    }
}
