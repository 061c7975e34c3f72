//! A causal convolution over the latest positions, whose state is kept from step to step.

use super::emit::ModelBuilder;
use crate::error::ModelError;
use yirage_ir::ValueId;
use yirage_ir::op::CausalConv1d;

/// The sizes of a convolution of each channel by itself, which may be some of a tensor's.
pub(super) struct CausalConv {
    /// Channels of the tensor.
    pub(super) of: u32,
    /// The first one that is convolved.
    pub(super) first: u32,
    pub(super) channels: u32,
    /// Positions that it sees, its own included.
    pub(super) taps: u32,
    pub(super) bias: bool,
}

impl CausalConv {
    /// Of so many channels, with the number of taps under `key`.
    pub(super) fn read(e: &ModelBuilder<'_>, key: &str, channels: u32, bias: bool) -> Result<CausalConv, ModelError> {
        match e.size(key)? {
            1 => Err(e.config.invalid(key, "an integer above 1")),
            taps => {
                e.product(taps, channels, key)?;
                Ok(CausalConv { of: channels, first: 0, channels, taps, bias })
            }
        }
    }

    /// Emits it under `name` from the tensors under `hf`, with the state `state`.
    pub(super) fn emit(
        &self,
        e: &mut ModelBuilder<'_>,
        name: &str,
        state: &str,
        hf: &str,
        x: ValueId,
    ) -> Result<ValueId, ModelError> {
        let CausalConv { of, first, channels, taps, .. } = *self;
        // Files have the taps of a channel side by side.
        let offset = e.product(first, taps, "taps of all channels")?;
        let view = e.part(&format!("{hf}.weight"), &[of, 1, taps], offset, &[taps, channels], &[1, taps])?;
        let weight = e.weight(&format!("{name}.w"), &[taps, channels], vec![view])?;
        let [state, table] = e.recurrent_state(state, [taps - 1, channels])?;
        let mut ins = vec![state, x, weight, e.inputs.positions, e.inputs.seqs, table];
        if self.bias {
            let bias = e.rows_of(&format!("{hf}.bias"), &[of], first, channels)?;
            ins.push(e.weight(&format!("{name}.b"), &[channels], vec![bias])?);
        }
        let made = e.ops(&[&format!("{name}.y"), &format!("{name}.state")], CausalConv1d {}, &ins)?;
        Ok(made[0])
    }
}
