//! Where a value of a plan lies: in what a device is bound to, or in the plan's arena.
//!
//! Said once for all devices. What memory each of these is, a device knows.

use crate::plan::{BufferPlacement, Plan};
use yirage_ir::{ValueId, ValueSource};

/// Where a value lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ValueLocation<'p> {
    /// In a step input, by its number among those of the plan.
    StepInput(usize),
    /// In the weight of its name.
    Weight,
    /// In this KV cache or recurrent state, which is an input of the plan's graph: the cache itself, or what it is behind a node
    /// that appended to it.
    KvCache(ValueId),
    /// In the arena.
    Arena(&'p BufferPlacement),
}

impl Plan {
    /// Where a value of the plan's graph lies; none for one without a place, which a verified plan has only of values that
    /// nothing reads.
    pub fn location(&self, value: ValueId) -> Option<ValueLocation<'_>> {
        if let Some(cache) = self.graph.kv_cache_of(value) {
            return Some(ValueLocation::KvCache(cache));
        }
        match self.graph.value(value).source {
            ValueSource::Weight => Some(ValueLocation::Weight),
            ValueSource::StepInput => {
                let mut inputs = self.graph.inputs_of(ValueSource::StepInput);
                inputs.position(|input| input == value).map(ValueLocation::StepInput)
            }
            ValueSource::KvCache | ValueSource::Node { .. } => self.placement(value).map(ValueLocation::Arena),
        }
    }
}
