//! Linear attention by the gated delta rule.

use super::{ChannelStates, Channels, RecurrenceStep};
use crate::rows::{Src, load};
use crate::simd::Lanes;

/// The state decays, what it says of the key is corrected towards the value, and the query is asked.
#[derive(Clone, Copy)]
pub struct GatedDeltaStep {
    /// Rows of the state: elements of a key.
    pub n: usize,
    /// Heads that read one key head.
    pub heads_per_key: usize,
    /// Queries, a row a token.
    pub q: Src,
    /// Keys.
    pub k: Src,
    /// Values.
    pub v: Src,
    /// What the state is multiplied by, a number a head.
    pub decay: Src,
    /// How much of a correction is made, a number a head.
    pub beta: Src,
}

impl RecurrenceStep for GatedDeltaStep {
    #[inline(always)]
    unsafe fn step<V: Lanes>(&self, token: usize, channels: Channels, states: ChannelStates) -> V {
        let Channels { head, first, count } = channels;
        // SAFETY: what `RecurrenceStep::step` is promised; `StepTokens::place` has checked the blocks.
        unsafe {
            let of_key = head / self.heads_per_key * self.n;
            let (q, k) = (self.q.row(token).add(of_key), self.k.row(token).add(of_key));
            let (decay, beta) = (V::splat(*self.decay.row(token).add(head)), *self.beta.row(token).add(head));
            let mut said = V::splat(0.0);
            for row in 0..self.n {
                let s = decay.mul(states.before(row));
                states.leave(row, s);
                said = V::splat(*k.add(row)).fma(s, said);
            }
            let v = load::<V>(self.v.row(token).add(first), count, 0.0);
            let (correction, mut y) = (v.sub(said).mul(V::splat(beta)), V::splat(0.0));
            for row in 0..self.n {
                let s = V::splat(*k.add(row)).fma(correction, states.left(row));
                states.leave(row, s);
                y = V::splat(*q.add(row)).fma(s, y);
            }
            y
        }
    }
}
