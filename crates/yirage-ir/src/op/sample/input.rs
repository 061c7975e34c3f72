//! The inputs of `sample`: their names and types.

use crate::dim::{Dim, Sym};
use crate::dtype::DType;
use crate::types::Type;

/// An input of [`super::Sample`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)] // the op's documentation says what each is
pub enum SampleInput {
    Logits,
    Row,
    Temperature,
    TopK,
    TopP,
    MinP,
    Key,
    Allowed,
    BiasAt,
    Bias,
    Repetition,
    Frequency,
    Presence,
    History,
}

impl SampleInput {
    pub(super) const ALL: [SampleInput; 14] = {
        use SampleInput::*;
        [
            Logits,
            Row,
            Temperature,
            TopK,
            TopP,
            MinP,
            Key,
            Allowed,
            BiasAt,
            Bias,
            Repetition,
            Frequency,
            Presence,
            History,
        ]
    };

    /// The name of the slot in graphs of the op.
    pub fn name(self) -> &'static str {
        match self {
            SampleInput::Logits => "logits",
            SampleInput::Row => "row",
            SampleInput::Temperature => "temperature",
            SampleInput::TopK => "top_k",
            SampleInput::TopP => "top_p",
            SampleInput::MinP => "min_p",
            SampleInput::Key => "key",
            SampleInput::Allowed => "allowed",
            SampleInput::BiasAt => "bias_at",
            SampleInput::Bias => "bias",
            SampleInput::Repetition => "repetition",
            SampleInput::Frequency => "frequency",
            SampleInput::Presence => "presence",
            SampleInput::History => "history",
        }
    }

    /// The type for a vocabulary. Entries of the history are counted by `Tokens`, biases by `Blocks`; both come in the
    /// order of their sequences.
    pub fn ty(self, vocabulary: u32) -> Type {
        let rows = |dtype: DType, sym: Sym, width: u32| Type::new(dtype, [Dim::Sym(sym), Dim::Const(width)]);
        let each = |dtype: DType, sym: Sym| Type::new(dtype, [sym]);
        match self {
            SampleInput::Logits => rows(DType::F32, Sym::Rows, vocabulary),
            SampleInput::Row | SampleInput::TopK => each(DType::I32, Sym::Seqs),
            // Seed, index of the choice and position as words: two, two and one, the lower of a pair first.
            SampleInput::Key => rows(DType::U32, Sym::Seqs, 5),
            SampleInput::Allowed => rows(DType::U32, Sym::Seqs, vocabulary.div_ceil(32)),
            SampleInput::BiasAt => rows(DType::I32, Sym::Blocks, 2),
            SampleInput::Bias => each(DType::F32, Sym::Blocks),
            SampleInput::History => rows(DType::I32, Sym::Tokens, 3),
            _ => each(DType::F32, Sym::Seqs),
        }
    }
}
