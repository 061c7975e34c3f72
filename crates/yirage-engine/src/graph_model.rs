//! A model that its owner gives as a graph, in place of files that an architecture is read from.
//!
//! It knows which inputs and outputs an engine fills and reads, and nothing of what the graph computes.

use crate::block_positions::block_positions;
use crate::error::EngineError;
use crate::limits::MAX_GROUPS;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use yirage_ir::{DType, Dim, Dims, Format, Graph, Sym, Type, ValueSource};
use yirage_model::arch::{KvCacheSpec, Model, ModelOutput};

/// A model as a graph with the interface of [`yirage_model::arch`], and the elements of its weights.
#[derive(Clone, Debug)]
pub struct GraphModel {
    /// What is computed. Its bindings to stored tensors are not read.
    pub model: Model,
    /// The elements of each weight of the graph by its name, dense and row-major in the graph's format.
    pub weights: HashMap<String, Arc<[u8]>>,
}

impl GraphModel {
    /// Whether an engine can fill what the graph takes and read what it gives; the format of its cache.
    ///
    /// # Errors
    /// [`EngineError::GraphModel`] with the first input, output, group or weight that is otherwise.
    pub(crate) fn check(&self) -> Result<Format, EngineError> {
        let graph = &self.model.graph;
        let groups = self.model.groups.len();
        if self.model.output != ModelOutput::Logits || groups == 0 || groups > MAX_GROUPS {
            let (output, most) = (self.model.output, MAX_GROUPS);
            return wrong(format!("logits and 1 to {most} cache groups are wanted, it has {output:?} and {groups}"));
        }
        if self.model.dynamic_rope.is_some() {
            return wrong("its rotary embedding depends on lengths, which is read from configurations alone".into());
        }
        self.check_step_inputs()?;
        let logits = Type::new(DType::F32, [Dim::Sym(Sym::Rows), Dim::Const(self.model.vocab_size)]);
        match graph.outputs[..] {
            [only] if *graph.ty(only) == logits => {}
            _ => return wrong(format!("its outputs are {:?}, one of {logits} is wanted", outputs(graph))),
        }
        self.check_weights()?;
        self.check_kv_caches()
    }

    fn check_step_inputs(&self) -> Result<(), EngineError> {
        let graph = &self.model.graph;
        let slot = |name: &str, shape: &[Sym]| {
            (name.to_owned(), Type::new(DType::I32, shape.iter().map(|&sym| Dim::Sym(sym))))
        };
        let mut filled = vec![slot("rows", &[Sym::Rows])];
        filled.extend(["ids", "positions", "seqs"].map(|name| slot(name, &[Sym::Tokens])));
        for group in 0..self.model.groups.len() {
            filled.push(slot(&format!("slots.{group}"), &[Sym::Tokens]));
            filled.push(slot(&format!("table.{group}"), &[Sym::Seqs, Sym::Blocks]));
        }
        for id in graph.inputs_of(ValueSource::StepInput) {
            let value = graph.value(id);
            if !filled.iter().any(|(name, ty)| *name == value.name && *ty == value.ty) {
                return wrong(format!("no step fills its step input `{}` of {}", value.name, value.ty));
            }
        }
        Ok(())
    }

    fn check_weights(&self) -> Result<(), EngineError> {
        let graph = &self.model.graph;
        for id in graph.inputs_of(ValueSource::Weight) {
            let value = graph.value(id);
            let wanted = value.ty.checked_bytes(&Dims::default());
            let given = self.weights.get(&value.name).map(|bytes| bytes.len());
            if given.is_none() || given != wanted {
                let (wanted, given) = (wanted.unwrap_or(0), given.map_or("none".into(), |n| n.to_string()));
                return wrong(format!(
                    "its weight `{}` of {} takes {wanted} bytes, {given} given",
                    value.name, value.ty
                ));
            }
        }
        Ok(())
    }

    /// All keys and values have one format, since one is reported and its precision is one decision; recurrent states are
    /// f32, and that is reported where there is nothing else.
    fn check_kv_caches(&self) -> Result<Format, EngineError> {
        let graph = &self.model.graph;
        let declared: BTreeSet<&str> =
            graph.inputs_of(ValueSource::KvCache).map(|id| graph.value(id).name.as_str()).collect();
        let grouped: BTreeSet<&str> = self.model.kv_cache_group.iter().map(|(name, _)| name.as_str()).collect();
        if declared != grouped || self.model.kv_cache_group.len() != grouped.len() {
            return wrong(format!("its KV caches are {declared:?}, those of its cache groups are {grouped:?}"));
        }
        let mut formats = BTreeSet::new();
        for (name, group) in &self.model.kv_cache_group {
            let ty = graph.find(name).map(|id| graph.ty(id));
            if self.model.groups.get(*group) == Some(&KvCacheSpec::Recurrent) {
                if ty.is_none_or(|ty| ty.dtype != DType::F32 || ty.shape.len() != 2) {
                    return wrong(format!("its KV cache `{name}` is {ty:?}, f32 [rows, channels] is wanted"));
                }
                continue;
            }
            let (heads, width) = match self.model.groups.get(*group) {
                Some(&KvCacheSpec::Paged { kv_heads, k_width, v_width, .. }) => {
                    (kv_heads, k_width.checked_add(v_width))
                }
                Some(&KvCacheSpec::Latent { rank, rope }) => (1, rank.checked_add(rope)),
                None | Some(KvCacheSpec::Recurrent) => {
                    return wrong(format!(
                        "its KV cache `{name}` is of group {group}, which keeps neither keys and values nor compressed rows"
                    ));
                }
            };
            let Some(width) = width else {
                return wrong(format!("its cache group {group} has rows of more elements than a number counts"));
            };
            // All caches of a model have one length of a block, as one table says where their positions are.
            let shape = [block_positions(&self.model) as u32, heads, width].map(Dim::Const);
            match ty.map(|ty| (ty.dtype, &ty.shape)) {
                Some((DType::Stored(format), found)) if **found == shape => formats.insert(format.info().name),
                _ => return wrong(format!("its KV cache `{name}` is {ty:?}, blocks of {shape:?} are wanted")),
            };
        }
        if formats.is_empty() {
            return Ok(Format::F32);
        }
        let format = formats.iter().next().and_then(|name| Format::parse(name)).filter(|_| formats.len() == 1);
        format.map_or_else(|| wrong(format!("its KV caches have the formats {formats:?}, one is wanted")), Ok)
    }
}

fn outputs(graph: &Graph) -> Vec<String> {
    graph.outputs.iter().map(|&id| graph.ty(id).to_string()).collect()
}

fn wrong<T>(what: String) -> Result<T, EngineError> {
    Err(EngineError::GraphModel(what))
}
