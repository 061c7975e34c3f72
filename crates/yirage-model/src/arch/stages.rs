//! A model cut into pipeline stages: consecutive layers as models of their own, of which each reads the rows that the one
//! before it gives.
//!
//! The cut is made in the emitted graph, at the first node of a layer, so it computes what the whole does whatever the
//! architecture. It knows nothing of who runs the stages, nor of how rows get from one to the next.

use super::{Model, ModelOutput};
use crate::error::ModelError;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use yirage_ir::{BuildError, DType, Dim, Format, Graph, GraphBuilder, Node, Sym, Type, ValueId, ValueSource};

/// Consecutive layers of a model. The embedding is of the first stage; the last norm and the head are of the last one.
#[derive(Clone, PartialEq, Debug)]
pub struct PipelineStage {
    /// The layers.
    pub layers: Range<u32>,
    /// The step input in which the rows of the stage before it are given, f32 `[Tokens, width]`; none of the first stage.
    pub reads: Option<String>,
    /// What the stage computes, with the weights and caches of its layers alone. Its cache groups are all of the whole
    /// model's, in that order, so that one batch's slots and block tables serve every stage. A stage before the last gives
    /// [`ModelOutput::Hidden`]: the rows that the next one reads.
    pub model: Model,
}

/// A stage's place among the nodes of the whole graph, and the values at its borders.
struct StageSpan {
    layers: Range<u32>,
    nodes: Range<usize>,
    reads: Option<ValueId>,
    gives: Option<ValueId>,
}

impl Model {
    /// The model as so many stages, first to last, with layers as equal in number as they can be and the longer stages first.
    /// Weights that several stages read, such as an embedding that is also the head, are in each of them.
    ///
    /// # Errors
    /// [`ModelError::Unsupported`] for no stage or more than there are layers, for a model that gives no logits, and for
    /// layers between which more than one value is handed on.
    pub fn stages(&self, count: u32) -> Result<Vec<PipelineStage>, ModelError> {
        if self.output != ModelOutput::Logits {
            return Err(self.cannot_be_cut(count, "it gives no logits; run it on one rank".into()));
        }
        let starts = self.layer_starts(count)?;
        let layers = starts.len() as u32;
        if count == 0 || count > layers {
            let why = format!("it has {layers} layers, and a stage has one of them at least; use 1 to {layers} stages");
            return Err(self.cannot_be_cut(count, why));
        }
        let spans = self.spans(&shares(layers, count), &starts)?;
        spans.into_iter().map(|span| self.stage(span)).collect()
    }

    /// The first node of each layer.
    fn layer_starts(&self, count: u32) -> Result<Vec<usize>, ModelError> {
        let mut starts = Vec::new();
        for (at, node) in self.graph.nodes.iter().enumerate() {
            let Some(layer) = layer_of(&self.graph, node) else { continue };
            if layer == starts.len() {
                starts.push(at);
            } else if layer + 1 != starts.len() {
                let next = starts.len();
                let why = format!("layer {layer} stands where layer {next} was expected; run it on one rank");
                return Err(self.cannot_be_cut(count, why));
            }
        }
        Ok(starts)
    }

    fn spans(&self, shares: &[Range<u32>], starts: &[usize]) -> Result<Vec<StageSpan>, ModelError> {
        let mut spans: Vec<StageSpan> = Vec::with_capacity(shares.len());
        for layers in shares {
            let is_last = layers.end as usize == starts.len();
            let from = spans.last().map_or(0, |before| before.nodes.end);
            let to = if is_last { self.graph.nodes.len() } else { starts[layers.end as usize] };
            let reads = spans.last().and_then(|before| before.gives);
            let gives = if is_last { None } else { Some(self.handed_on(to, shares.len() as u32, layers.end)?) };
            spans.push(StageSpan { layers: layers.clone(), nodes: from..to, reads, gives });
        }
        Ok(spans)
    }

    /// The value that nodes before `at`, where a layer begins, make for those behind it.
    fn handed_on(&self, at: usize, count: u32, layer: u32) -> Result<ValueId, ModelError> {
        let graph = &self.graph;
        let read = graph.nodes[at..].iter().flat_map(|node| &node.ins).chain(&graph.outputs);
        let is_made_before =
            |id: &ValueId| matches!(graph.value(*id).source, ValueSource::Node { node, .. } if (node as usize) < at);
        let mut handed: Vec<ValueId> = read.copied().filter(is_made_before).collect();
        handed.sort_unstable();
        handed.dedup();
        match handed[..] {
            [one] if width_of_rows(graph.ty(one)).is_some() => Ok(one),
            _ => {
                let list: Vec<String> =
                    handed.iter().map(|&id| format!("`{}`: {}", graph.value(id).name, graph.ty(id))).collect();
                let why = format!(
                    "layer {layer} and those behind it read {} of the layers before ({}), expected f32 rows of tokens alone; \
                     run it on one rank",
                    list.len(),
                    list.join(", ")
                );
                Err(self.cannot_be_cut(count, why))
            }
        }
    }

    fn stage(&self, span: StageSpan) -> Result<PipelineStage, ModelError> {
        let graph = self.graph_of(&span).map_err(|e| ModelError::Unsupported {
            what: format!("layers {:?} of {} as a stage", span.layers, self.name),
            why: e.to_string(),
        })?;
        let name_of = |id: ValueId| self.graph.value(id).name.clone();
        let declared: HashSet<&str> = graph.inputs.iter().map(|&id| graph.value(id).name.as_str()).collect();
        let weights = self.weights.iter().filter(|weight| declared.contains(weight.name.as_str())).cloned().collect();
        let caches = self.kv_cache_group.iter().filter(|(name, _)| declared.contains(name.as_str())).cloned().collect();
        let is_first = span.reads.is_none();
        let output = match span.gives.and_then(|id| width_of_rows(self.graph.ty(id))) {
            Some(width) => ModelOutput::Hidden { width },
            None => self.output,
        };
        let dynamic_rope = if declared.contains("rope.cos") { self.dynamic_rope.clone() } else { None };
        let model = Model {
            name: self.name.clone(),
            output,
            token_types: self.token_types,
            embedded: self.embedded.filter(|_| is_first),
            weights,
            groups: self.groups.clone(),
            kv_cache_group: caches,
            dynamic_rope,
            biased_keys: self.biased_keys,
            vocab_size: self.vocab_size,
            context: self.context,
            graph,
        };
        Ok(PipelineStage { layers: span.layers, reads: span.reads.map(name_of), model })
    }

    /// The nodes of a stage with the inputs that they read, in the order of the whole.
    fn graph_of(&self, span: &StageSpan) -> Result<Graph, BuildError> {
        let (whole, nodes) = (&self.graph, &self.graph.nodes[span.nodes.clone()]);
        let outputs = span.gives.map_or_else(|| whole.outputs.clone(), |rows| vec![rows]);
        let read: HashSet<ValueId> = nodes.iter().flat_map(|node| &node.ins).chain(&outputs).copied().collect();
        let mut graph = GraphBuilder::new(whole.name.clone());
        let mut ids = HashMap::new();
        if let Some(rows) = span.reads {
            let value = whole.value(rows);
            ids.insert(rows, graph.step_input(&value.name, value.ty.clone())?);
        }
        for &input in whole.inputs.iter().filter(|input| read.contains(input)) {
            let value = whole.value(input);
            ids.insert(input, graph.declare(&value.name, value.ty.clone(), value.source)?);
        }
        for node in nodes {
            let ins: Vec<ValueId> = node.ins.iter().map(|id| ids[id]).collect();
            let names: Vec<String> = node.outs.iter().map(|&id| whole.value(id).name.clone()).collect();
            let outs = graph.node(node.kind.clone(), &ins, &names)?;
            ids.extend(node.outs.iter().copied().zip(outs));
        }
        outputs.iter().for_each(|id| graph.output(ids[id]));
        Ok(graph.finish())
    }

    fn cannot_be_cut(&self, count: u32, why: String) -> ModelError {
        ModelError::Unsupported { what: format!("{} in {count} pipeline stages", self.name), why }
    }
}

/// So many shares of layers.
fn shares(layers: u32, count: u32) -> Vec<Range<u32>> {
    let (each, longer) = (layers / count, layers % count);
    let start = |stage: u32| stage * each + stage.min(longer);
    (0..count).map(|stage| start(stage)..start(stage + 1)).collect()
}

/// The layer that a node is of: what it makes is called `l3.` and so on, as every architecture names it.
fn layer_of(graph: &Graph, node: &Node) -> Option<usize> {
    let first = graph.value(*node.outs.first()?).name.strip_prefix('l')?;
    first.split_once('.')?.0.parse().ok()
}

/// The width of f32 rows of all tokens; none of other values.
fn width_of_rows(ty: &Type) -> Option<u32> {
    match ty.shape[..] {
        [Dim::Sym(Sym::Tokens), Dim::Const(width)] if ty.dtype == DType::Stored(Format::F32) => Some(width),
        _ => None,
    }
}
