//! Where the elements of a tile lie.

use crate::elements::{Elements, elements_per_word};
use crate::op::placed_chain::PlacedRead;
use crate::strided_index::{DenseShape, element};
use std::ops::Range;
use yirage_hal::HalError;
use yirage_ir::region::TileIn;
use yirage_ir::{DType, Dim, Dims, Strided, Type};
use yirage_kir::{KernelMemory, KernelWriter, Register, ScalarType};

/// What a block's threads share: one array, of which each tile is a part.
pub(super) const TILES: KernelMemory = KernelMemory::Shared(0);

/// Which block it is, and where in its loop.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockPosition {
    /// Along each axis of the grid.
    pub(super) block: [Register; 3],
    pub(super) iteration: Register,
    /// Whether it is the first iteration; none where there is but one.
    pub(super) is_first: Option<Register>,
    /// The first word of the block's part of the workspace.
    pub(super) workspace: Register,
}

/// Elements between the first one of a tile and that of another block's or of the next iteration's, where it is a part of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct TileMoves {
    grid: [u32; 3],
    by_loop: u32,
}

/// Which memory a tile lies in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TilePlace {
    /// A value of the plan, of which the tile is a part.
    Value(TileMoves),
    /// What the block's threads share.
    Shared,
    /// The block's part of the workspace.
    Workspace,
}

/// A tile as a step reads or writes it.
#[derive(Clone, Debug)]
pub(super) struct TileOperand {
    pub(super) elements: Elements,
    /// What its elements are, with strides where they do not lie dense.
    pub(super) ty: Type,
    pub(super) place: TilePlace,
    strided: Strided,
}

/// The elements that a tile has.
pub(super) fn count(ty: &Type) -> u32 {
    sizes(&ty.shape).into_iter().product()
}

/// The sizes of a fixed shape.
pub(super) fn sizes(shape: &[Dim]) -> Vec<u32> {
    shape.iter().map(|dim| dim.get(&Dims::default()) as u32).collect()
}

impl TileOperand {
    /// A dense tile in memory of the block's own.
    pub(super) fn dense(elements: Elements, ty: &Type, place: TilePlace) -> Result<TileOperand, HalError> {
        let strided = Strided::dense(&ty.shape).ok_or_else(|| too_far(ty))?;
        Ok(TileOperand { elements, ty: ty.clone(), place, strided })
    }

    /// The same elements, rounded to another type when they are read.
    pub(super) fn read_as(&self, ty: &Type) -> TileOperand {
        TileOperand { ty: ty.clone(), ..self.clone() }
    }

    /// A tile of a value whose elements lie so.
    pub(super) fn of_value(
        elements: Elements,
        whole: &Strided,
        tile: &Type,
        cut: &TileIn,
        loops: u32,
    ) -> Result<TileOperand, HalError> {
        let far = || too_far(tile);
        let sizes: Vec<usize> = tile.shape.iter().map(|dim| dim.get(&Dims::default())).collect();
        let along = |block: [usize; 3], iteration: usize| {
            let origin = cut.origin(&sizes, loops, block, iteration);
            let each = origin.iter().zip(&whole.strides).map(|(&o, &s)| i64::try_from(o).ok()?.checked_mul(s));
            let sum = each.sum::<Option<i64>>();
            sum.and_then(|n| u32::try_from(n).ok()).ok_or_else(far)
        };
        let grid = [along([1, 0, 0], 0)?, along([0, 1, 0], 0)?, along([0, 0, 1], 0)?];
        let moves = TileMoves { grid, by_loop: along([0; 3], 1)? };
        let strides =
            whole.strides.iter().map(|&s| u32::try_from(s).map_err(|_| far())).collect::<Result<Vec<_>, _>>()?;
        let strided = Strided { shape: tile.shape.clone(), ..whole.clone() };
        let ty = Type { strides: (!strided.is_dense()).then_some(strides), ..tile.clone() };
        Ok(TileOperand { elements, ty, place: TilePlace::Value(moves), strided })
    }

    /// The same elements, of which a step reads those that lie at `strided`.
    pub(super) fn read_at(&self, w: &mut KernelWriter, at: &BlockPosition, strided: Strided) -> PlacedRead {
        let first = match self.place {
            TilePlace::Value(moves) => Some(moves.first(w, at)),
            TilePlace::Shared => None,
            TilePlace::Workspace => {
                let per_word = w.u32(elements_per_word(self.elements.dtype));
                Some(w.mul(at.workspace, per_word))
            }
        };
        let is_wider = elements_per_word(self.ty.dtype) == 2 && self.elements.dtype != self.ty.dtype;
        PlacedRead { elements: self.elements, at: strided, first, rounded: is_wider.then_some(self.ty.dtype) }
    }

    /// All its elements, at their coordinates.
    pub(super) fn read(&self, w: &mut KernelWriter, at: &BlockPosition) -> PlacedRead {
        self.read_at(w, at, self.strided.clone())
    }

    /// Writes as many elements as share a word; `word` is counted in the order of the tile's elements.
    pub(super) fn store_word(&self, w: &mut KernelWriter, at: &BlockPosition, word: Register, made: &[Register]) {
        let word = match self.place {
            TilePlace::Shared => word,
            TilePlace::Workspace => w.add(at.workspace, word),
            TilePlace::Value(moves) => {
                let per_word = w.u32(elements_per_word(self.elements.dtype));
                let linear = w.mul(word, per_word);
                let own = if self.strided.is_dense() { linear } else { self.element_of(w, linear) };
                let first = moves.first(w, at);
                let element = w.add(first, own);
                w.div(element, per_word)
            }
        };
        let is_widened_bool = self.ty.dtype == DType::Bool && self.elements.dtype != DType::Bool;
        if is_widened_bool {
            let made: Vec<Register> = made.iter().map(|&x| w.convert(ScalarType::U32, x)).collect();
            self.elements.store_word(w, word, &made);
        } else {
            self.elements.store_word(w, word, made);
        }
    }

    /// Where an element lies whose number among the tile's is this.
    fn element_of(&self, w: &mut KernelWriter, linear: Register) -> Register {
        let coordinates = DenseShape::fixed(&sizes(&self.strided.shape)).coordinates(w, linear);
        element(w, &self.strided, &coordinates)
    }

    /// Words that its elements take.
    pub(super) fn word_count(&self) -> u32 {
        count(&self.ty).div_ceil(elements_per_word(self.elements.dtype))
    }

    /// The words of the block's memory that it takes; none of a value.
    pub(super) fn own_words(&self) -> Option<Range<u32>> {
        let first = self.elements.first_word;
        (!matches!(self.place, TilePlace::Value(_))).then(|| first..first + self.word_count())
    }
}

impl TileMoves {
    /// Elements of the value before the tile's first.
    fn first(self, w: &mut KernelWriter, at: &BlockPosition) -> Register {
        let mut first = w.u32(0);
        let along = at.block.into_iter().zip(self.grid).chain([(at.iteration, self.by_loop)]);
        for (place, step) in along {
            let step = w.u32(step);
            let moved = w.mul(place, step);
            first = w.add(first, moved);
        }
        first
    }
}

fn too_far(ty: &Type) -> HalError {
    HalError::Load(format!("tiles of {ty} lie too far apart"))
}
