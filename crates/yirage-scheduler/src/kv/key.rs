//! Content keys of full blocks.

use sha2::{Digest, Sha256};

/// Identifies the content of a full block together with everything before it.
///
/// The key of a block is SHA-256 over its parent's key and its own token ids; the first block's parent is the root
/// derived from the request's salt. Two different histories with one key would be a SHA-256 collision, none of which
/// is known, so token ids are not compared again: a hit on the full 256-bit key is taken as equality, also when a
/// hostile client picks the tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlockKey([u8; 32]);

impl BlockKey {
    /// The parent of every first block under `salt`. Requests with different salts never share a block.
    pub fn root(salt: &[u8]) -> Self {
        let mut hash = Sha256::new();
        hash.update(b"yirage kv root");
        hash.update(salt);
        BlockKey(hash.finalize().into())
    }

    /// The key of the block that holds `tokens` and follows the block (or root) with key `self`.
    pub fn child(self, tokens: &[u32]) -> Self {
        let mut hash = Sha256::new();
        hash.update(self.0);
        for token in tokens {
            hash.update(token.to_le_bytes());
        }
        BlockKey(hash.finalize().into())
    }
}
