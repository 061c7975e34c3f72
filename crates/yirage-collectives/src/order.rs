//! Which results of a maker's library are those of every other transport, to the bit.

use yirage_comm::{CollectiveKind, ReduceOp};

/// Whether a collective of a library gives the bytes that `yirage_comm` gives, in whatever order the library adds.
///
/// What moves elements does, and so does the largest or smallest. Two elements have one sum and one product, which are rounded
/// once, however often they are rounded on the way: `f32` has more than twice the digits of `f16` and `bf16`, and `f64` of `f32`.
pub fn is_in_order(kind: CollectiveKind, ranks: usize) -> bool {
    match kind {
        CollectiveKind::AllReduce(op) | CollectiveKind::ReduceScatter(op) => match op {
            ReduceOp::Sum | ReduceOp::Prod | ReduceOp::Avg => ranks <= 2,
            ReduceOp::Max | ReduceOp::Min => true,
        },
        _ => true,
    }
}
