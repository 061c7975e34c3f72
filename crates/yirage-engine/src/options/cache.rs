//! How much a cache holds.

/// The size of an engine's cache of keys and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheSize {
    /// As many sequences of full length, at least one.
    Sequences(u32),
    /// At most as many bytes of the device's memory. Requests that this cannot hold are refused one by one.
    Bytes(u64),
    /// So many blocks of 32 positions for each group of layers.
    Blocks(u32),
}
