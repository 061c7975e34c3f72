//! Where the values of a program lie, and the operands of a node as the bindings of one command.

use super::command::{Binding, BindingAccess};
use super::memory::BufferSlice;
use crate::error::HalError;
use yirage_ir::{Graph, Node, ValueId};

/// Where the values of a program lie, for every step of it.
pub trait ValueSlices {
    /// The bytes of a value at the plan's largest sizes: of the step input, of the weight or KV cache that is bound, or in
    /// the arena.
    ///
    /// # Errors
    /// A value that has no place: it lives only inside a region.
    fn slice(&self, value: ValueId) -> Result<BufferSlice, HalError>;
    /// Blocks of a KV cache.
    ///
    /// # Errors
    /// A value that is none.
    fn blocks(&self, cache: ValueId) -> Result<u32, HalError>;
    /// Where a step's sizes lie ([`super::step_sizes`]).
    fn sizes(&self) -> BufferSlice;
}

/// What a node's kernel is bound to: each piece of memory once, whatever number of operands lie there.
///
/// A cache that is appended to is read and written by one binding. Of two bindings that overlap in part neither is written:
/// a device that binds buffers could not tell them apart, and a kernel would read what it writes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OperandBindings {
    /// The bindings.
    pub bindings: Vec<Binding>,
    /// For each input and then each output of the node, which binding it is.
    pub operands: Vec<u32>,
}

impl OperandBindings {
    /// Of a node, in its order.
    ///
    /// # Errors
    /// A value without a place, and operands that overlap where one is written.
    pub fn of(graph: &Graph, node: &Node, values: &dyn ValueSlices) -> Result<OperandBindings, HalError> {
        let mut made = OperandBindings { bindings: Vec::new(), operands: Vec::new() };
        let mut names: Vec<ValueId> = Vec::new();
        let inputs = node.ins.iter().map(|&value| (value, BindingAccess::Read));
        for (value, access) in inputs.chain(node.outs.iter().map(|&value| (value, BindingAccess::Write))) {
            let binding = Binding { slice: values.slice(value)?, access };
            let same = made.bindings.iter().position(|known| known.slice == binding.slice);
            let at = same.unwrap_or(made.bindings.len());
            match made.bindings.get_mut(at) {
                Some(known) => known.access = known.access.and(access),
                None => {
                    made.bindings.push(binding);
                    names.push(value);
                }
            }
            made.operands.push(at as u32);
        }
        made.check_apart(|at| &graph.value(names[at]).name).map_err(HalError::Load)?;
        Ok(made)
    }

    /// That what is written overlaps nothing else.
    fn check_apart<'a>(&self, name: impl Fn(usize) -> &'a str) -> Result<(), String> {
        for (at, a) in self.bindings.iter().enumerate() {
            for (further, b) in self.bindings[at + 1..].iter().enumerate() {
                if a.slice.overlaps(&b.slice) && (a.access.writes() || b.access.writes()) {
                    let (a, b) = (name(at), name(at + 1 + further));
                    return Err(format!(
                        "`{a}` and `{b}` share bytes that one command writes: give each bytes of its own"
                    ));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::memory::BufferId;
    use super::*;
    use std::collections::HashMap;
    use yirage_ir::text;

    /// Values at these offsets of one buffer, 64 bytes each.
    struct At(HashMap<String, u64>, Graph);

    impl ValueSlices for At {
        fn slice(&self, value: ValueId) -> Result<BufferSlice, HalError> {
            let offset = self.0[&self.1.value(value).name];
            Ok(BufferSlice { buffer: BufferId(0), offset, bytes: 64 })
        }
        fn blocks(&self, _: ValueId) -> Result<u32, HalError> {
            Ok(1)
        }
        fn sizes(&self) -> BufferSlice {
            BufferSlice { buffer: BufferId(1), offset: 0, bytes: 16 }
        }
    }

    fn bound(offsets: [u64; 3]) -> Result<OperandBindings, HalError> {
        let body = "input %a: f32[16] input %b: f32[16] %c = map{expr=\"add(x0, x1)\"}(%a, %b): f32[16] output %c";
        let graph = text::parse(&format!("graph g {{ {body} }}")).map_err(|e| HalError::Load(e.to_string()))?;
        let names = ["a", "b", "c"].map(String::from);
        let values = At(names.into_iter().zip(offsets).collect(), graph.clone());
        OperandBindings::of(&graph, &graph.nodes[0], &values)
    }

    #[test]
    fn operands_of_the_same_bytes_share_a_binding() {
        let accesses = |bound: OperandBindings| bound.bindings.iter().map(|b| b.access).collect::<Vec<_>>();
        let of = |offsets| bound(offsets).map(|bound| (bound.operands.clone(), accesses(bound))).unwrap_or_default();
        assert_eq!(
            of([0, 64, 128]),
            (vec![0, 1, 2], vec![BindingAccess::Read, BindingAccess::Read, BindingAccess::Write])
        );
        assert_eq!(of([0, 0, 64]), (vec![0, 0, 1], vec![BindingAccess::Read, BindingAccess::Write]));
        assert_eq!(of([64, 0, 64]), (vec![0, 1, 0], vec![BindingAccess::ReadWrite, BindingAccess::Read]));
    }

    #[test]
    fn bytes_that_are_read_and_written_by_two_bindings_are_refused() {
        assert!(bound([0, 32, 128]).is_ok());
        let error = bound([0, 128, 32]).err().map(|e| e.to_string()).unwrap_or_default();
        assert!(error.contains("`a` and `c` share bytes that one command writes"), "{error}");
    }
}
