//! What is to be made of a graph, beside what it says.

use yirage_plan::Precision;

/// How a graph is compiled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CompileOptions {
    /// How closely products are computed.
    pub precision: Precision,
    /// Whether ops are fused. Without it each op is a step of its own and every value is whole in memory: the plan that
    /// fused ones are compared with.
    pub fuse: bool,
    /// Whether the graph is a model's, whose activations may be of the target's own type. A user's graph says its types.
    pub model: bool,
}

impl CompileOptions {
    /// Products as closely as `precision` says, ops fused.
    pub fn new(precision: Precision) -> CompileOptions {
        CompileOptions { precision, fuse: true, model: false }
    }

    /// The same with every op a step of its own.
    #[must_use]
    pub fn unfused(self) -> CompileOptions {
        CompileOptions { fuse: false, ..self }
    }
}

impl Default for CompileOptions {
    fn default() -> CompileOptions {
        CompileOptions::new(Precision::default())
    }
}
