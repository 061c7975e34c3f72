//! The outputs of a tiled region. A word is written by one thread: where neighbouring blocks share words of 16-bit floats or
//! bools, blocks leave an element a word in the workspace, and a kernel behind them packs these.

use super::operand::TileOperand;
use crate::elements::{Elements, elements_per_word};
use crate::expression::cast;
use crate::node_kernel::{NodeKernel, Operand};
use crate::op::NodeView;
use crate::op::output_words::words;
use crate::op::placed_chain::PlacedRead;
use crate::scope::KernelScope;
use crate::workspace::Workspace;
use yirage_hal::HalError;
use yirage_ir::region::{TileIn, TileOut, Tiled};
use yirage_ir::{DType, Dims, Format, Strided, Type};
use yirage_kir::{KernelWriter, Register};

/// An output of a region.
#[derive(Clone, Debug)]
pub(super) struct RegionOutput {
    number: usize,
    /// A block's tile of it, where blocks write it.
    pub(super) tile: TileOperand,
    /// Where its elements lie until they are packed; none where blocks write the output itself.
    unpacked: Option<Operand>,
}

impl RegionOutput {
    pub(super) fn new(
        view: &NodeView<'_>,
        scope: &mut KernelScope<'_>,
        tiled: &Tiled,
        number: usize,
        workspace: &mut Workspace,
    ) -> Result<RegionOutput, HalError> {
        let (out, whole) = (&tiled.outs[number], view.dense_output(number)?);
        let tile = tiled.block.ty(tiled.block.outputs[number]);
        let dtype = view.output(number).dtype;
        let (elements, unpacked): (Elements, _) = if shares_words(tiled, tile, out) {
            let wide = if dtype == DType::Bool { DType::U32 } else { Format::F32.into() };
            let place = workspace.take(&Type::new(wide, view.output(number).shape.clone()), &view.site.bucket)?;
            (scope.write(place), Some(place))
        } else {
            (scope.write(view.outs[number]), None)
        };
        let cut = TileIn { grid: out.grid, by_loop: None };
        let tile = TileOperand::of_value(elements, &whole, tile, &cut, 1)?;
        Ok(RegionOutput { number, tile, unpacked })
    }

    /// The kernel that packs it, where one has to.
    pub(super) fn packed(&self, view: &NodeView<'_>) -> Result<Option<NodeKernel>, HalError> {
        let Some(from) = self.unpacked else { return Ok(None) };
        let (places, dtype): (Strided, _) = (view.dense_output(self.number)?, view.output(self.number).dtype);
        let made = words(&view.site, "pack", &places, view.outs[self.number], |scope| {
            let read = PlacedRead::new(scope.read(from), places.clone());
            Ok(move |w: &mut KernelWriter, coordinates: &[Register]| {
                let x = read.load(w, coordinates);
                cast(w, dtype, x)
            })
        });
        made.map(Some)
    }
}

/// Whether elements of two blocks may lie in one word of an output: where the parts of a tile that lie one after the other are
/// no whole words.
fn shares_words(tiled: &Tiled, tile: &Type, out: &TileOut) -> bool {
    let cuts = out.grid.iter().zip(tiled.grid).filter(|(_, blocks)| *blocks > 1);
    let Some(innermost) = cuts.filter_map(|(dim, _)| *dim).max() else { return false };
    let run: usize = tile.shape[innermost as usize..].iter().map(|dim| dim.get(&Dims::default())).product();
    !run.is_multiple_of(elements_per_word(tile.dtype) as usize)
}
