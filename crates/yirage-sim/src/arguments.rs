//! What a kernel's bindings are to it, as the bytes of its argument: for each operand which binding it lies in, and of a
//! KV cache how many blocks it has.

use yirage_hal::driver::DriverError;

/// Blocks of what is no KV cache.
const NO_CACHE: u32 = u32::MAX;

/// An operand of a kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct KernelOperand {
    /// Which binding it lies in.
    pub(crate) binding: u32,
    /// Blocks of a KV cache; none of another value.
    pub(crate) blocks: Option<u32>,
}

/// The bytes.
pub(crate) fn encode(operands: &[KernelOperand]) -> Vec<u8> {
    let words = operands.iter().flat_map(|operand| [operand.binding, operand.blocks.unwrap_or(NO_CACHE)]);
    words.flat_map(u32::to_le_bytes).collect()
}

/// The operands in such bytes.
pub(crate) fn decode(bytes: &[u8]) -> Result<Vec<KernelOperand>, DriverError> {
    let (operands, rest) = bytes.as_chunks::<8>();
    if !rest.is_empty() {
        let why = format!("an argument of {} bytes is no whole number of operands", bytes.len());
        return Err(DriverError::Failed { call: "launch", why });
    }
    let operand = |word: &[u8; 8]| {
        let [binding, blocks] = [0, 1].map(|at| u32::from_le_bytes(word.as_chunks().0[at]));
        KernelOperand { binding, blocks: (blocks != NO_CACHE).then_some(blocks) }
    };
    Ok(operands.iter().map(operand).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_come_back() {
        let operands = [KernelOperand { binding: 1, blocks: None }, KernelOperand { binding: 7, blocks: Some(0) }];
        assert_eq!(decode(&encode(&operands)), Ok(operands.to_vec()));
        assert!(decode(&[0; 9]).is_err());
    }
}
