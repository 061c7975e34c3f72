//! Recurrent states: what a layer keeps of all earlier positions of a sequence together, in blocks of a cache.
//!
//! A block of a state stands for a block of positions, as a block of keys and values does, and holds one value: the state
//! after the last of those positions that is computed. So a sequence needs the block of its latest position alone, and the
//! state at the end of every full block is there for other sequences that begin alike. Whether several blocks of positions
//! have one block of the cache is left to who writes the tables.

use super::{Role, per_row};
use crate::cost::{Cost, Reads, StepSizes};
use crate::dim::{Dim, Sym};
use crate::dtype::DType;
use crate::tensor::Tensor;
use crate::types::{Type, TypeError};

/// The checked shape of a state's block: `(rows, width)`. It is of f32, as all that these ops compute with, so that no
/// result depends on where a step ended.
pub(super) fn block_shape(ty: &Type) -> Result<(u32, u32), TypeError> {
    match (ty.dtype, &ty.shape[..]) {
        (DType::F32, &[Dim::Const(rows), Dim::Const(width)]) if rows > 0 && width > 0 => Ok((rows, width)),
        _ => Err(TypeError::new(format!("state is {ty}, f32[rows, width] wanted"))),
    }
}

/// Checks positions, sequences and the table of blocks of so many positions, one position and sequence a row of `x`.
pub(super) fn check_steps(ins: &[Type], x: &Type, block_positions: u32) -> Result<(), TypeError> {
    if block_positions == 0 || i32::try_from(block_positions).is_err() {
        return Err(TypeError::new(format!("blocks of {block_positions} positions, from 1 to {} wanted", i32::MAX)));
    }
    let [positions, seqs, table] = ins else {
        return Err(TypeError::new(format!("{} inputs of positions, seqs and table, 3 wanted", ins.len())));
    };
    per_row(positions, x, "positions")?;
    per_row(seqs, x, "seqs")?;
    if table.dtype == DType::I32 && table.shape.len() == 2 {
        return Ok(());
    }
    Err(TypeError::new(format!("table is {table}, i32[Seqs, Blocks] wanted")))
}

/// The work of an op of a state, which is its first input, over rows of its second: a block of the state is read a
/// sequence, which stands for as many positions, and all else that is held.
pub(super) fn work(ins: &[Type], step: &StepSizes<'_>, block_positions: u32) -> Cost {
    let mut cost = Cost::reading(ins.len(), ins[1].shape[0].get(&step.dims));
    cost.reads[0] = Reads::Positions(step.spans.len() as f64 * f64::from(block_positions));
    cost
}

/// Where positions, sequences and the table come from.
pub(super) fn step_input(like: &Tensor) -> Role {
    if like.shape.len() == 2 { Role::StepInput(&[Sym::Seqs, Sym::Blocks]) } else { Role::StepInput(&[Sym::Tokens]) }
}

/// Which blocks of the cache a token reads its state from and leaves it in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct TokenState {
    /// That of the position before; none at the beginning of a sequence, where the state is 0.
    pub(super) before: Option<usize>,
    /// That of its own position.
    pub(super) after: usize,
}

/// Those of each token of a step, in the order in which the tokens are computed.
pub(super) fn token_states<'a>(
    [positions, seqs, table]: [&'a Tensor; 3],
    block_positions: u32,
) -> impl Iterator<Item = TokenState> + 'a {
    positions.ints().iter().zip(seqs.ints()).map(move |(&position, &seq)| {
        let block = |position: i32| {
            table.ints()[seq as usize * table.width() + position as usize / block_positions as usize] as usize
        };
        TokenState { before: (position > 0).then(|| block(position - 1)), after: block(position) }
    })
}

impl TokenState {
    /// The state before the token, of blocks of `size` elements.
    pub(super) fn read(&self, blocks: &[f32], size: usize) -> Vec<f64> {
        let block = |at: usize| blocks[at * size..][..size].iter().map(|&x| f64::from(x)).collect();
        self.before.map_or_else(|| vec![0.0; size], block)
    }

    /// Leaves the state, rounded to f32.
    pub(super) fn write(&self, blocks: &mut [f32], state: &[f64]) {
        let block = &mut blocks[self.after * state.len()..][..state.len()];
        block.iter_mut().zip(state).for_each(|(to, &x)| *to = x as f32);
    }
}

/// Positions, sequences and the table of a case: sequences that begin at a position and have so many tokens, and the
/// blocks of each.
pub(super) fn case_steps<const N: usize>(spans: &[(i32, i32)], table: &[[i32; N]]) -> [Tensor; 3] {
    let positions: Vec<i32> = spans.iter().flat_map(|&(start, tokens)| start..start + tokens).collect();
    let seqs: Vec<i32> = (0..).zip(spans).flat_map(|(s, &(_, tokens))| vec![s; tokens as usize]).collect();
    [
        Tensor::i32([positions.len()], positions),
        Tensor::i32([seqs.len()], seqs),
        Tensor::i32([table.len(), N], table.concat()),
    ]
}

/// Blocks that a case's table names.
pub(super) fn case_blocks(table: &Tensor) -> usize {
    table.ints().iter().max().map_or(1, |&most| most as usize + 1)
}

/// Steps that every op of a state is tried with: a sequence's beginning, several sequences at several positions, a prompt
/// over blocks, and one whose positions share a block of the cache.
pub(super) fn all_case_steps() -> [(&'static str, [Tensor; 3]); 4] {
    let spans = [(0, 2), (31, 3), (5, 1), (0, 1), (64, 1)];
    let table = [[4, -1, -1], [0, 6, -1], [2, -1, -1], [3, -1, -1], [-1, 1, 5]];
    [
        ("a beginning", case_steps(&[(0, 3)], &[[0, -1]])),
        ("sequences at several positions", case_steps(&spans, &table)),
        ("a prompt over blocks", case_steps(&[(30, 40)], &[[1, 0, 3]])),
        ("positions that share a block", case_steps(&[(3, 40)], &[[2, 2]])),
    ]
}
