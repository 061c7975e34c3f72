//! A block's own memory: words that its threads share, and where those are used up, words of the workspace.

use super::operand::{TILES, TileOperand, TilePlace};
use crate::elements::{Elements, elements_per_word};
use std::ops::Range;
use yirage_hal::HalError;
use yirage_ir::Type;
use yirage_kir::KernelMemory;
use yirage_plan::MemoryStack;

/// Lives as long as the block does.
pub(super) const ALWAYS: usize = usize::MAX;

/// What is taken of both, in words.
#[derive(Clone, Debug)]
pub(super) struct BlockMemory {
    shared: MemoryStack,
    workspace: MemoryStack,
    /// The workspace as a buffer of the kernel.
    buffer: Option<KernelMemory>,
    /// Words that may be shared.
    most_shared: u64,
}

impl BlockMemory {
    pub(super) fn new(most_shared: u64) -> BlockMemory {
        BlockMemory { shared: MemoryStack::default(), workspace: MemoryStack::default(), buffer: None, most_shared }
    }

    /// Gives back what was wanted up to a step before this one.
    pub(super) fn begin(&mut self, step: usize) {
        self.shared.begin(step);
        self.workspace.begin(step);
    }

    /// How many pieces are held.
    pub(super) fn held(&self) -> [usize; 2] {
        [self.shared.held(), self.workspace.held()]
    }

    /// Gives back all but the first pieces.
    pub(super) fn give_back(&mut self, [shared, workspace]: [usize; 2]) {
        self.shared.give_back(shared);
        self.workspace.give_back(workspace);
    }

    /// Words that are shared, of so many that are wanted up to a step; none where there is no room.
    fn take_shared(&mut self, words: u64, last: usize) -> Option<Range<u64>> {
        let mut tried = self.shared.clone();
        let range = tried.take(words, 1, last).filter(|range| range.end <= self.most_shared)?;
        self.shared = tried;
        Some(range)
    }

    /// Memory for a dense tile of this type up to a step: shared, as long as there is room.
    pub(super) fn take(
        &mut self,
        ty: &Type,
        last: usize,
        workspace: impl FnOnce() -> KernelMemory,
    ) -> Result<TileOperand, HalError> {
        if let Some(shared) = self.take_if_shared(ty, last)? {
            return Ok(shared);
        }
        let range = self.workspace.take(words(ty)?, 1, last).ok_or_else(|| too_large(ty))?;
        let memory = *self.buffer.get_or_insert_with(workspace);
        placed(memory, &range, ty, TilePlace::Workspace)
    }

    /// The same, where it can be shared.
    pub(super) fn take_if_shared(&mut self, ty: &Type, last: usize) -> Result<Option<TileOperand>, HalError> {
        let range = self.take_shared(words(ty)?, last);
        range.map(|range| placed(TILES, &range, ty, TilePlace::Shared)).transpose()
    }

    /// The memory of a tile for another one of its type, up to a step; none where it is not the block's own.
    pub(super) fn pass_on(&mut self, from: &TileOperand, last: usize) -> Option<TileOperand> {
        let range = from.own_words()?;
        let range = u64::from(range.start)..u64::from(range.end);
        let stack = if from.place == TilePlace::Shared { &mut self.shared } else { &mut self.workspace };
        stack.keep(&range, last).then(|| from.clone())
    }

    /// Words that the threads of a block share.
    pub(super) fn shared_words(&self) -> u32 {
        self.shared.end() as u32
    }

    /// Words of the workspace that a block takes.
    pub(super) fn workspace_words(&self) -> u32 {
        self.workspace.end() as u32
    }
}

fn words(ty: &Type) -> Result<u64, HalError> {
    let elements = ty.checked_elems(&yirage_ir::Dims::default()).ok_or_else(|| too_large(ty))? as u64;
    // Tiles of no elements have a place too.
    Ok(elements.div_ceil(u64::from(elements_per_word(ty.dtype))).max(1))
}

fn placed(memory: KernelMemory, range: &Range<u64>, ty: &Type, place: TilePlace) -> Result<TileOperand, HalError> {
    let (Ok(first_word), Ok(_)) = (u32::try_from(range.start), u32::try_from(range.end)) else {
        return Err(too_large(ty));
    };
    TileOperand::dense(Elements { memory, dtype: ty.dtype, first_word }, ty, place)
}

fn too_large(ty: &Type) -> HalError {
    HalError::Load(format!("a tile of {ty} does not fit a block's memory"))
}
