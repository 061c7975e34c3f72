//! Elements of a tensor where their owner has them.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// What has bytes, and may be read from any thread.
pub type Owner = dyn AsRef<[u8]> + Send + Sync;

/// Bytes that a tensor's owner shares: they are read where they lie, when a compilation or a run in test mode wants them.
#[derive(Clone)]
pub struct SharedBytes(Arc<Owner>);

impl SharedBytes {
    /// The bytes of `owner`, which stays as long as they do.
    pub fn of(owner: Arc<Owner>) -> SharedBytes {
        SharedBytes(owner)
    }
}

impl Deref for SharedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

impl From<Vec<u8>> for SharedBytes {
    fn from(bytes: Vec<u8>) -> SharedBytes {
        SharedBytes(Arc::new(bytes))
    }
}

impl From<&[u8]> for SharedBytes {
    fn from(bytes: &[u8]) -> SharedBytes {
        SharedBytes::from(bytes.to_vec())
    }
}

impl PartialEq for SharedBytes {
    fn eq(&self, other: &SharedBytes) -> bool {
        self[..] == other[..]
    }
}

impl fmt::Debug for SharedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.len())
    }
}
