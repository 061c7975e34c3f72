//! What is to be made of a graph, beside what it says.

use yirage_plan::Precision;

/// How a graph is compiled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// How closely products are computed.
    pub precision: Precision,
    /// Whether ops are fused. Without it each op is a step of its own and every value is whole in memory: the plan that
    /// fused ones are compared with.
    pub fuse: bool,
}

impl Options {
    /// Products as closely as `precision` says, ops fused.
    pub fn new(precision: Precision) -> Options {
        Options { precision, fuse: true }
    }

    /// The same with every op a step of its own.
    #[must_use]
    pub fn unfused(self) -> Options {
        Options { fuse: false, ..self }
    }
}

impl Default for Options {
    fn default() -> Options {
        Options::new(Precision::default())
    }
}
