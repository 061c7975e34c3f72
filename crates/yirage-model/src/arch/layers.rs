//! Where the layers of a decoder end in its graph.

use super::Model;
use std::collections::BTreeMap;
use yirage_ir::{ValueId, ValueSource};

/// The token embedding: its rows are as wide as the hidden state.
const EMBEDDING: &str = "embed";

impl Model {
    /// The hidden state behind each layer, f32 `[Tokens, width]`, the first layer first: the last value of that type among
    /// those that the layer computes, whose names begin with `l` and the layer's number. Encoders have none.
    pub fn layer_outputs(&self) -> Vec<ValueId> {
        let graph = &self.graph;
        let Some(embedding) = graph.find(EMBEDDING) else { return Vec::new() };
        let mut last = BTreeMap::new();
        for &id in graph.nodes.iter().flat_map(|node| &node.outs) {
            let value = graph.value(id);
            let is_hidden = matches!(value.source, ValueSource::Node { .. }) && value.ty == *graph.ty(embedding);
            if let Some(layer) = layer(&value.name).filter(|_| is_hidden) {
                last.insert(layer, id);
            }
        }
        last.into_values().collect()
    }
}

/// The layer to which a value belongs.
fn layer(name: &str) -> Option<u32> {
    let (number, _) = name.strip_prefix('l')?.split_once('.')?;
    number.parse().ok()
}
