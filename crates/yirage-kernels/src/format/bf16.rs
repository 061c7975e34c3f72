//! bfloat16: the upper half of an IEEE 754 binary32.

use super::{BlockRun, RunDecoder, WeightGroup};
use yirage_kir::{KernelWriter, Register};

pub(super) const DECODER: RunDecoder = RunDecoder::whole(decode);

fn decode(w: &mut KernelWriter, at: &BlockRun<'_>) -> Vec<WeightGroup> {
    let count = at.rows.unit;
    let mut bytes = at.bytes(w, 0, 2 * count);
    let codes: Vec<Register> = (0..count).map(|number| bytes.bf16(w, 2 * number)).collect();
    vec![WeightGroup { scale: None, minimum: None, codes }]
}
