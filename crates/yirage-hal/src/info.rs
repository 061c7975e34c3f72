//! What is known of a device without opening it.

/// A device that could be opened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceInfo {
    /// The backend it belongs to.
    pub backend: &'static str,
    /// Its number there.
    pub ordinal: u32,
    /// What the maker calls it.
    pub name: String,
    /// Architecture and instruction set.
    pub arch: String,
    /// Bytes of memory it could use now.
    pub memory_bytes: u64,
    /// Further facts, as (name, value).
    pub facts: Vec<(&'static str, String)>,
}
