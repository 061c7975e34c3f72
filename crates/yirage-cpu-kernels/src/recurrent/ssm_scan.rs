//! A selective state space model of which each head has one decay.

use super::{ChannelStates, Channels, RecurrenceStep};
use crate::rows::{Src, load};
use crate::simd::Lanes;

/// `s = decay * s + (dt * x) * b`, `y = sum_j c[j] * s[j] + skip * x`.
#[derive(Clone, Copy)]
pub struct SsmScanStep {
    /// Rows of the state.
    pub n: usize,
    /// Heads that share a row of `b` and `c`.
    pub heads_per_group: usize,
    /// What comes in, a row a token.
    pub x: Src,
    /// Step sizes, a number a head.
    pub dt: Src,
    /// What the state is multiplied by, a number a head.
    pub decay: Src,
    /// How what comes in enters the state, a row a group.
    pub b: Src,
    /// How the state is read, a row a group.
    pub c: Src,
    /// What is added of `x` itself, a number a head.
    pub skip: Option<*const f32>,
}

impl RecurrenceStep for SsmScanStep {
    #[inline(always)]
    unsafe fn step<V: Lanes>(&self, token: usize, channels: Channels, states: ChannelStates) -> V {
        let Channels { head, first, count } = channels;
        // SAFETY: what `RecurrenceStep::step` is promised; `StepTokens::place` has checked the blocks.
        unsafe {
            let x = load::<V>(self.x.row(token).add(first), count, 0.0);
            let (dt, decay) = (*self.dt.row(token).add(head), V::splat(*self.decay.row(token).add(head)));
            let of_group = head / self.heads_per_group * self.n;
            let (b, c) = (self.b.row(token).add(of_group), self.c.row(token).add(of_group));
            let (given, mut y) = (V::splat(dt).mul(x), V::splat(0.0));
            for row in 0..self.n {
                let s = decay.fma(states.before(row), given.mul(V::splat(*b.add(row))));
                states.leave(row, s);
                y = V::splat(*c.add(row)).fma(s, y);
            }
            self.skip.map_or(y, |skip| V::splat(*skip.add(head)).fma(x, y))
        }
    }
}
