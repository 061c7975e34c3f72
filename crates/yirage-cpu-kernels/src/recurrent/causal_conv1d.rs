//! A short causal convolution of each channel.

use super::{ChannelStates, Channels, RecurrenceStep};
use crate::rows::{Src, load};
use crate::simd::Lanes;

/// `y = bias + sum_j weight[j] * x` of the latest positions, the oldest first; the state is all of them but the token's own.
#[derive(Clone, Copy)]
pub struct CausalConv1dStep {
    /// Rows of the state, one less than those of the weight.
    pub kept: usize,
    /// A row a token.
    pub x: Src,
    /// A row a tap.
    pub weight: Src,
    /// A number a channel.
    pub bias: Option<*const f32>,
}

impl RecurrenceStep for CausalConv1dStep {
    #[inline(always)]
    unsafe fn step<V: Lanes>(&self, token: usize, channels: Channels, states: ChannelStates) -> V {
        let (first, count) = (channels.first, channels.count);
        // SAFETY: what `RecurrenceStep::step` is promised; `StepTokens::place` has checked the blocks.
        unsafe {
            let mut y = self.bias.map_or(V::splat(0.0), |bias| load::<V>(bias.add(first), count, 0.0));
            for tap in 0..self.kept {
                let x = states.before::<V>(tap);
                y = load::<V>(self.weight.row(tap).add(first), count, 0.0).fma(x, y);
                // Row `tap` has been read, so that a state may be left where it was.
                if tap > 0 {
                    states.leave(tap - 1, x);
                }
            }
            let x = load::<V>(self.x.row(token).add(first), count, 0.0);
            states.leave(self.kept - 1, x);
            load::<V>(self.weight.row(self.kept).add(first), count, 0.0).fma(x, y)
        }
    }
}
