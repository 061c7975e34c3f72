//! What a rank has of a model.

/// What a rank has of a model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RankRole {
    /// Its part of every layer: the device takes part in collectives.
    Shard,
    /// Some layers, whole: the device computes by itself.
    Stage,
}
