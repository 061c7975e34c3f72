//! Stable hashes: the same on every machine, build and run. They are keys of caches of our own making, not a defence
//! against collisions made on purpose.

use crate::graph::{Graph, Node, NodeKind, ValueSource};
use crate::rng::mix;

/// 128 bits of FNV-1a (Fowler, Noll and Vo).
pub fn fnv128(bytes: &[u8]) -> u128 {
    bytes.iter().fold(BASIS, |h, &b| step(h, b))
}

const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

fn step(hash: u128, byte: u8) -> u128 {
    (hash ^ u128::from(byte)).wrapping_mul(PRIME)
}

impl Graph {
    /// The hash of the text form.
    pub fn stable_hash(&self) -> u128 {
        fnv128(crate::text::print(self).as_bytes())
    }

    /// The hash of what is computed, whatever it is called and in whatever order it is written.
    ///
    /// Names of values and graphs do not count, nor does the order of nodes that do not depend on each other. All else
    /// does: ops, attributes and the order of operands; kinds and contents of regions; the inputs with their types and
    /// kinds, in the order of their declaration; the outputs in their order. Nodes that nothing reads count, because an
    /// append to a state has its effect unread. Nodes that stand twice are told from one that is shared by two readers;
    /// which of two equal nodes a reader reads is not.
    ///
    /// Each node is looked at once. The graph is sound ([`crate::verify()`]).
    pub fn structural_hash(&self) -> u128 {
        let mut values = vec![0u128; self.values.len()];
        let mut whole = Hasher::of("graph").number(self.inputs.len());
        for (place, &id) in self.inputs.iter().enumerate() {
            let value = self.value(id);
            let hash = Hasher::of(kind(value.source)).number(place).text(&value.ty.to_string()).finish();
            values[id.index()] = hash;
            whole = whole.hash(hash);
        }
        // A sum, so that the order of the nodes does not count.
        let mut nodes = 0u128;
        for node in &self.nodes {
            let hash = of_node(node, &values);
            nodes = nodes.wrapping_add(hash);
            for (output, &id) in node.outs.iter().enumerate() {
                values[id.index()] = Hasher::of("output").hash(hash).number(output).finish();
            }
        }
        let outputs = self.outputs.iter().fold(whole.number(self.outputs.len()), |h, &id| h.hash(values[id.index()]));
        outputs.hash(nodes).finish()
    }
}

/// Tags of the hash, which are no words of the text form: with other ones every kept hash would be another.
fn kind(source: ValueSource) -> &'static str {
    match source {
        ValueSource::StepInput => "slot",
        ValueSource::Weight => "weight",
        ValueSource::KvCache => "state",
        ValueSource::Node { .. } => "node",
    }
}

fn of_node(node: &Node, values: &[u128]) -> u128 {
    let what = match &node.kind {
        NodeKind::Op(op) => Hasher::of("op").text(op.name()).attrs(&op.attrs()),
        NodeKind::Region(region) => {
            let attrs = region.tiled.as_ref().map(|tiled| tiled.attrs()).unwrap_or_default();
            let start = Hasher::of("region").text(region.kind.name()).attrs(&attrs);
            region.graphs().fold(start, |h, graph| h.hash(graph.structural_hash()))
        }
    };
    node.ins.iter().fold(what.number(node.ins.len()), |h, id| h.hash(values[id.index()])).finish()
}

/// FNV-1a over parts that each end where they say, and a last mixing: sums of its hashes differ where one part does.
struct Hasher(u128);

impl Hasher {
    fn of(tag: &str) -> Hasher {
        Hasher(BASIS).text(tag)
    }

    fn text(self, text: &str) -> Hasher {
        Hasher(text.bytes().fold(self.number(text.len()).0, step))
    }

    fn attrs(self, attrs: &[(&'static str, String)]) -> Hasher {
        attrs.iter().fold(self.number(attrs.len()), |h, (name, value)| h.text(name).text(value))
    }

    fn number(self, n: usize) -> Hasher {
        Hasher((n as u64).to_le_bytes().into_iter().fold(self.0, step))
    }

    fn hash(self, hash: u128) -> Hasher {
        Hasher(hash.to_le_bytes().into_iter().fold(self.0, step))
    }

    fn finish(self) -> u128 {
        let (high, low) = ((self.0 >> 64) as u64, self.0 as u64);
        let low = mix(low ^ high.rotate_left(32));
        let high = mix(high.wrapping_add(low));
        u128::from(high) << 64 | u128::from(low)
    }
}
