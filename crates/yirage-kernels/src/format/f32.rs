//! IEEE 754 binary32.

use super::{BlockRun, RunDecoder, WeightGroup};
use yirage_kir::{KernelWriter, Register, ScalarType};

pub(super) const DECODER: RunDecoder = RunDecoder::whole(decode);

fn decode(w: &mut KernelWriter, at: &BlockRun<'_>) -> Vec<WeightGroup> {
    let count = at.rows.unit;
    let mut bytes = at.bytes(w, 0, 4 * count);
    let float = |number: u32| {
        let word = bytes.word(w, 4 * number);
        w.bitcast(ScalarType::F32, word)
    };
    let codes: Vec<Register> = (0..count).map(float).collect();
    vec![WeightGroup { scale: None, minimum: None, codes }]
}
