//! How far a load is.

/// Progress of a load: bytes of weights done, and of all.
pub type LoadProgressFn<'a> = &'a mut dyn FnMut(u64, u64);
