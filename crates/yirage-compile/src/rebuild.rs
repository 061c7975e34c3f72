//! Copying a graph node by node while changing it: what every pass is written with.

use std::collections::HashMap;
use yirage_ir::{BuildError, Graph, GraphBuilder, NodeKind, Type, ValueId};

/// A graph being made from another.
pub(crate) struct Rebuild<'a> {
    pub(crate) old: &'a Graph,
    pub(crate) new: GraphBuilder,
    map: HashMap<ValueId, ValueId>,
}

impl<'a> Rebuild<'a> {
    /// A copy that so far holds the inputs for which `keep` is true.
    pub(crate) fn new(old: &'a Graph, keep: impl Fn(ValueId) -> bool) -> Result<Rebuild<'a>, BuildError> {
        let mut r = Rebuild { old, new: GraphBuilder::new(old.name.clone()), map: HashMap::new() };
        for &i in old.inputs.iter().filter(|&&i| keep(i)) {
            let v = old.value(i);
            let id = r.new.declare(&v.name, v.ty.clone(), v.source)?;
            r.map.insert(i, id);
        }
        Ok(r)
    }

    /// A copy that so far holds all inputs, each of the type that `ty` says.
    pub(crate) fn retyped(old: &'a Graph, ty: impl Fn(ValueId) -> Type) -> Result<Rebuild<'a>, BuildError> {
        let mut r = Rebuild { old, new: GraphBuilder::new(old.name.clone()), map: HashMap::new() };
        for &i in &old.inputs {
            let v = old.value(i);
            let id = r.new.declare(&v.name, ty(i), v.source)?;
            r.map.insert(i, id);
        }
        Ok(r)
    }

    /// The new value that stands for an old one, which must have been copied or bound before.
    pub(crate) fn get(&self, old: ValueId) -> ValueId {
        self.map[&old]
    }

    /// Lets `new` stand for `old`.
    pub(crate) fn bind(&mut self, old: ValueId, new: ValueId) {
        self.map.insert(old, new);
    }

    /// Copies node `n` with the inputs `ins` (new values).
    pub(crate) fn copy(&mut self, n: usize, ins: &[ValueId]) -> Result<(), BuildError> {
        self.copy_as(n, self.old.nodes[n].kind.clone(), ins)
    }

    /// Copies node `n` with the inputs `ins` (new values), to do `kind` instead.
    pub(crate) fn copy_as(&mut self, n: usize, kind: NodeKind, ins: &[ValueId]) -> Result<(), BuildError> {
        let node = &self.old.nodes[n];
        let names: Vec<String> = node.outs.iter().map(|&o| self.old.value(o).name.clone()).collect();
        let outs = self.new.node(kind, ins, &names)?;
        for (&old, new) in node.outs.iter().zip(outs) {
            self.map.insert(old, new);
        }
        Ok(())
    }

    /// Adds a node that the old graph does not have.
    pub(crate) fn add(
        &mut self,
        kind: NodeKind,
        ins: &[ValueId],
        names: &[String],
    ) -> Result<Vec<ValueId>, BuildError> {
        self.new.node(kind, ins, names)
    }

    /// The copy, with the old outputs.
    pub(crate) fn finish(mut self) -> Graph {
        for &o in &self.old.outputs {
            self.new.output(self.map[&o]);
        }
        self.new.finish()
    }
}
