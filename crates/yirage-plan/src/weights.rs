//! The weight plan: layout of every weight, decided once per model and target and shared by all buckets.

use std::fmt::Write;
use yirage_ir::Type;
use yirage_ir::hash::fnv128;

/// How one weight is held.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WeightEntry {
    /// The weight's name in the graph.
    pub name: String,
    /// Its type: stored format and logical shape.
    pub ty: Type,
    /// The layout in device memory: `rows` as in the file, or the target's product layout.
    pub layout: String,
    /// Equal matrices that a two-dimensional weight is made of, one below the other (grouped products); else 1.
    pub groups: u32,
    /// The dimension along which the weight may be split over devices.
    pub shard_axis: Option<u32>,
}

/// Layout, format and shard axis of every weight of a model on a target.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WeightPlan {
    /// One entry a weight, in the order of the graph's inputs.
    pub entries: Vec<WeightEntry>,
}

/// The layout of weights that stay as they are in the file.
pub const ROWS: &str = "rows";

impl WeightPlan {
    /// The entry called `name`.
    pub fn get(&self, name: &str) -> Option<&WeightEntry> {
        self.entries.iter().find(|e| e.name == name)
    }

    /// The text form: one line a weight.
    pub fn print(&self) -> String {
        let mut out = String::new();
        for e in &self.entries {
            let axis = e.shard_axis.map_or("-".to_string(), |a| a.to_string());
            let _ = writeln!(out, "weight %{}: {} layout={} groups={} shard={axis}", e.name, e.ty, e.layout, e.groups);
        }
        out
    }

    /// The key of anything cached for this plan.
    pub fn stable_hash(&self) -> u128 {
        fnv128(self.print().as_bytes())
    }
}
