//! A step's graph under construction: step inputs, weights and cache groups, each declared when it is first wanted and by the
//! name under which an engine looks for it.
//!
//! Architectures build on it, and so do recorded layers. It knows neither checkpoints nor layers.

use super::KvCacheSpec;
use std::collections::HashMap;
use yirage_ir::{BuildError, DType, Graph, GraphBuilder, Sym, Type, Value, ValueId, ValueSource};

/// A layer's cache, and where the positions of a step are in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KvCacheInputs {
    /// The cache as it is before the step.
    pub cache: ValueId,
    /// `slots.g` of its group g; none of recurrent states, which positions have no places in.
    pub slot_mapping: Option<ValueId>,
    /// `table.g` of its group g.
    pub block_table: ValueId,
}

/// A finished graph, and the caches that an engine keeps for it between steps.
#[derive(Clone, PartialEq, Debug)]
pub struct StepGraph {
    /// What a step computes.
    pub graph: Graph,
    /// The cache groups; group g has the step inputs `slots.g` and `table.g`.
    pub groups: Vec<KvCacheSpec>,
    /// Each cache's name and its group.
    pub kv_cache_group: Vec<(String, usize)>,
}

/// A step's graph under construction.
#[derive(Debug)]
pub struct StepGraphBuilder {
    /// The graph, to which ops and outputs are added as they come.
    pub graph: GraphBuilder,
    /// Step inputs and weights by their names.
    inputs: HashMap<String, ValueId>,
    groups: Vec<KvCacheSpec>,
    kv_cache_group: Vec<(String, usize)>,
}

impl StepGraphBuilder {
    /// An empty graph.
    pub fn new(name: impl Into<String>) -> StepGraphBuilder {
        StepGraphBuilder {
            graph: GraphBuilder::new(name),
            inputs: HashMap::new(),
            groups: Vec::new(),
            kv_cache_group: Vec::new(),
        }
    }

    fn known(&self, name: &str, is: impl Fn(&Value) -> bool) -> Option<ValueId> {
        self.inputs.get(name).copied().filter(|&id| is(self.graph.graph().value(id)))
    }

    fn declared(&mut self, name: &str, ty: Type, source: ValueSource) -> Result<ValueId, BuildError> {
        if let Some(known) = self.known(name, |value| value.ty == ty && value.source == source) {
            return Ok(known);
        }
        let id = self.graph.declare(name, ty, source)?;
        self.inputs.insert(name.to_owned(), id);
        Ok(id)
    }

    /// The step input of this name.
    ///
    /// # Errors
    /// A name that a value of another kind or type has, or a type that no step input has.
    pub fn step_input(&mut self, name: &str, ty: Type) -> Result<ValueId, BuildError> {
        self.declared(name, ty, ValueSource::StepInput)
    }

    /// The weight of this name.
    ///
    /// # Errors
    /// A name that a value of another kind or type has, or a type that no weight has.
    pub fn weight(&mut self, name: &str, ty: Type) -> Result<ValueId, BuildError> {
        self.declared(name, ty, ValueSource::Weight)
    }

    /// The weight of this name, if it is bound.
    pub fn bound_weight(&self, name: &str) -> Option<ValueId> {
        self.known(name, |value| value.source == ValueSource::Weight)
    }

    /// A step input of an integer for each token.
    ///
    /// # Errors
    /// As [`StepGraphBuilder::step_input`].
    pub fn per_token(&mut self, name: &str) -> Result<ValueId, BuildError> {
        self.step_input(name, Type::new(DType::I32, [Sym::Tokens]))
    }

    /// The tokens of the step.
    ///
    /// # Errors
    /// As [`StepGraphBuilder::step_input`].
    pub fn ids(&mut self) -> Result<ValueId, BuildError> {
        self.per_token("ids")
    }

    /// The position of each token in its sequence.
    ///
    /// # Errors
    /// As [`StepGraphBuilder::step_input`].
    pub fn positions(&mut self) -> Result<ValueId, BuildError> {
        self.per_token("positions")
    }

    /// The sequence of each token: its row of the block tables.
    ///
    /// # Errors
    /// As [`StepGraphBuilder::step_input`].
    pub fn seqs(&mut self) -> Result<ValueId, BuildError> {
        self.per_token("seqs")
    }

    /// The token rows whose logits are wanted.
    ///
    /// # Errors
    /// As [`StepGraphBuilder::step_input`].
    pub fn rows(&mut self) -> Result<ValueId, BuildError> {
        self.step_input("rows", Type::new(DType::I32, [Sym::Rows]))
    }

    /// A new cache, by the type of one block, in the group of all layers that keep the same.
    ///
    /// # Errors
    /// As [`StepGraphBuilder::step_input`], and a type that no cache has.
    pub fn kv_cache(&mut self, name: String, block: Type, keeps: KvCacheSpec) -> Result<KvCacheInputs, BuildError> {
        let group = self.groups.iter().position(|&group| group == keeps).unwrap_or_else(|| {
            self.groups.push(keeps);
            self.groups.len() - 1
        });
        let slot_mapping = match keeps {
            KvCacheSpec::Recurrent => None,
            KvCacheSpec::Paged { .. } | KvCacheSpec::Latent { .. } => Some(self.per_token(&format!("slots.{group}"))?),
        };
        let table = Type::new(DType::I32, [Sym::Seqs, Sym::Blocks]);
        let block_table = self.step_input(&format!("table.{group}"), table)?;
        let cache = self.graph.kv_cache(&name, block)?;
        self.kv_cache_group.push((name, group));
        Ok(KvCacheInputs { cache, slot_mapping, block_table })
    }

    /// Each cache's name and its group, in the order in which they were asked for.
    pub fn kv_caches(&self) -> &[(String, usize)] {
        &self.kv_cache_group
    }

    /// The finished graph.
    pub fn finish(self) -> StepGraph {
        StepGraph { graph: self.graph.finish(), groups: self.groups, kv_cache_group: self.kv_cache_group }
    }
}
