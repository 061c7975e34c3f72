//! The inputs of `sample`: their names and types.

use crate::dim::{Dim, Sym};
use crate::dtype::DType;
use crate::types::Type;

/// An input of [`super::Sample`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)] // the op's documentation says what each is
pub enum SampleSlot {
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

impl SampleSlot {
    pub(super) const ALL: [SampleSlot; 14] = {
        use SampleSlot::*;
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
            SampleSlot::Logits => "logits",
            SampleSlot::Row => "row",
            SampleSlot::Temperature => "temperature",
            SampleSlot::TopK => "top_k",
            SampleSlot::TopP => "top_p",
            SampleSlot::MinP => "min_p",
            SampleSlot::Key => "key",
            SampleSlot::Allowed => "allowed",
            SampleSlot::BiasAt => "bias_at",
            SampleSlot::Bias => "bias",
            SampleSlot::Repetition => "repetition",
            SampleSlot::Frequency => "frequency",
            SampleSlot::Presence => "presence",
            SampleSlot::History => "history",
        }
    }

    /// The type for a vocabulary. Entries of the history are counted by `Tokens`, biases by `Blocks`; both come in the
    /// order of their sequences.
    pub fn ty(self, vocabulary: u32) -> Type {
        let rows = |dtype: DType, sym: Sym, width: u32| Type::new(dtype, [Dim::Sym(sym), Dim::Const(width)]);
        let each = |dtype: DType, sym: Sym| Type::new(dtype, [sym]);
        match self {
            SampleSlot::Logits => rows(DType::F32, Sym::Rows, vocabulary),
            SampleSlot::Row | SampleSlot::TopK => each(DType::I32, Sym::Seqs),
            // Seed, index of the choice and position as words: two, two and one, the lower of a pair first.
            SampleSlot::Key => rows(DType::U32, Sym::Seqs, 5),
            SampleSlot::Allowed => rows(DType::U32, Sym::Seqs, vocabulary.div_ceil(32)),
            SampleSlot::BiasAt => rows(DType::I32, Sym::Blocks, 2),
            SampleSlot::Bias => each(DType::F32, Sym::Blocks),
            SampleSlot::History => rows(DType::I32, Sym::Tokens, 3),
            _ => each(DType::F32, Sym::Seqs),
        }
    }
}
