//! What a kernel's bindings are to it, as the bytes of its argument: for each operand which binding it lies in, and of a
//! KV cache how many blocks it has and how they lie.

use yirage_hal::driver::DriverError;
use yirage_plan::KvCacheOrder;

/// Blocks of what is no KV cache.
const NO_CACHE: u32 = u32::MAX;

/// An operand of a kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct KernelOperand {
    /// Which binding it lies in.
    pub(crate) binding: u32,
    /// Of a KV cache; none of another value.
    pub(crate) cache: Option<CacheOperand>,
}

/// A KV cache that a kernel reads or writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CacheOperand {
    /// Its blocks.
    pub(crate) blocks: u32,
    /// What of a block lies together.
    pub(crate) order: KvCacheOrder,
    /// Bytes that a head of a position is padded to a multiple of.
    pub(crate) align: u32,
}

/// The bytes.
pub(crate) fn encode(operands: &[KernelOperand]) -> Vec<u8> {
    let words = operands.iter().flat_map(|operand| match operand.cache {
        Some(CacheOperand { blocks, order, align }) => {
            [operand.binding, blocks, u32::from(order == KvCacheOrder::Heads), align]
        }
        None => [operand.binding, NO_CACHE, 0, 0],
    });
    words.flat_map(u32::to_le_bytes).collect()
}

/// The operands in such bytes.
pub(crate) fn decode(bytes: &[u8]) -> Result<Vec<KernelOperand>, DriverError> {
    let (operands, rest) = bytes.as_chunks::<16>();
    if !rest.is_empty() {
        let why = format!("an argument of {} bytes is no whole number of operands", bytes.len());
        return Err(DriverError::Failed { call: "launch", why });
    }
    let operand = |word: &[u8; 16]| {
        let [binding, blocks, order, align] = [0, 1, 2, 3].map(|at| u32::from_le_bytes(word.as_chunks().0[at]));
        let order = if order == 0 { KvCacheOrder::Positions } else { KvCacheOrder::Heads };
        let cache = CacheOperand { blocks, order, align };
        KernelOperand { binding, cache: (blocks != NO_CACHE).then_some(cache) }
    };
    Ok(operands.iter().map(operand).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_come_back() {
        let cache = CacheOperand { blocks: 0, order: KvCacheOrder::Heads, align: 32 };
        let operands = [KernelOperand { binding: 1, cache: None }, KernelOperand { binding: 7, cache: Some(cache) }];
        assert_eq!(decode(&encode(&operands)), Ok(operands.to_vec()));
        assert!(decode(&[0; 9]).is_err());
    }
}
