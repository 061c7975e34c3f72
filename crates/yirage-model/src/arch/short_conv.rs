//! A causal convolution over the latest positions, whose state is kept from step to step.

use super::emit::ModelBuilder;
use super::recurrent_parts::TiledHeads;
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
    /// Where the channels are heads in another order: which, and channels of a head.
    pub(super) tiled: Option<(TiledHeads, u32)>,
}

impl CausalConv {
    /// Of so many channels, with the number of taps under `key`.
    pub(super) fn read(e: &ModelBuilder<'_>, key: &str, channels: u32, bias: bool) -> Result<CausalConv, ModelError> {
        match e.size(key)? {
            1 => Err(e.config.invalid(key, "an integer above 1")),
            taps => {
                e.product(taps, channels, key)?;
                Ok(CausalConv { of: channels, first: 0, channels, taps, bias, tiled: None })
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
        let stored: &[u32] = if e.is_gguf() { &[of, taps] } else { &[of, 1, taps] };
        let (shape, strides) = self.order(taps);
        let by_tap = |tap: u32, list: Vec<u32>| [vec![tap], list].concat();
        let (by_taps, steps) = (by_tap(taps, shape), by_tap(1, strides));
        let view = e.part(&format!("{hf}.weight"), stored, offset, &by_taps, &steps)?;
        let weight = e.weight(&format!("{name}.w"), &[taps, channels], vec![view])?;
        let [state, table] = e.recurrent_state(state, [taps - 1, channels])?;
        let mut ins = vec![state, x, weight, e.inputs.positions, e.inputs.seqs, table];
        if e.biased(self.bias, &format!("{hf}.bias")) {
            let (shape, strides) = self.order(1);
            let bias = e.part(&format!("{hf}.bias"), &[of], first, &shape, &strides)?;
            ins.push(e.weight(&format!("{name}.b"), &[channels], vec![bias])?);
        }
        let op = CausalConv1d { block_positions: e.kv_block() };
        let made = e.ops(&[&format!("{name}.y"), &format!("{name}.state")], op, &ins)?;
        Ok(made[0])
    }

    /// Sizes and strides of the channels in their own order, each of which has so many elements in the file.
    fn order(&self, elements: u32) -> (Vec<u32>, Vec<u32>) {
        match self.tiled {
            Some((tiled, width)) => {
                let (shape, strides) = tiled.view(width, elements);
                (shape.to_vec(), strides.to_vec())
            }
            None => (vec![self.channels], vec![elements]),
        }
    }
}
