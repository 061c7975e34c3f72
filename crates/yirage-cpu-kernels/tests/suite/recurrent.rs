//! Recurrent states: tokens without a block are refused, and chunks of channels stay within heads.

use yirage_cpu_kernels::recurrent::{ChannelChunks, StateBlocks, StateError, StepTokens};

#[test]
fn tokens_without_a_block_are_refused() {
    let mut floats = vec![0.0f32; 4 * 6];
    // SAFETY: four blocks of six floats.
    let states = unsafe { StateBlocks::new(floats.as_mut_ptr(), [2, 3], 4) };
    let place = |position, seq, table: &[i32]| {
        let tokens = StepTokens { positions: &[position], seqs: &[seq], table, width: 2, block: 32 };
        tokens.place(states).map(drop)
    };
    assert_eq!(place(33, 0, &[0, 3]), Ok(()));
    assert_eq!(place(0, 1, &[-1, -1, 2, -1]), Ok(()));
    assert_eq!(place(0, 2, &[0, 1, 2, 3]), Err(StateError::Sequence { token: 0, seq: 2, seqs: 2 }));
    assert_eq!(place(0, -1, &[0, 1]), Err(StateError::Sequence { token: 0, seq: -1, seqs: 1 }));
    for (position, table, block) in [(32, [-1, 1], -1), (1, [4, 0], 4), (64, [0, 1], -1), (-5, [0, 1], -1)] {
        let refused = place(position, 0, &table).unwrap_err();
        assert!(matches!(refused, StateError::Block { block: b, .. } if b == block), "{refused}");
    }
}

#[test]
fn chunks_stay_within_heads() {
    let chunks = ChannelChunks { heads: 2, head: 20 };
    let all: Vec<_> = (0..chunks.count()).map(|at| chunks.nth(at)).map(|c| (c.head, c.first, c.count)).collect();
    assert_eq!(all, [(0, 0, 16), (0, 16, 4), (1, 20, 16), (1, 36, 4)]);
}
