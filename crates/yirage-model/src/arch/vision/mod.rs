//! Vision towers (Radford et al., arXiv 2103.00020; Zhai et al., arXiv 2303.15343) and what joins them to a language model:
//! from the patches of pictures to rows that take the place of tokens' embeddings. A family of models is one file that says
//! how its tower ends and is joined, and a line of `FAMILIES`.
//!
//! # The graph's interface
//! Slots: `patches` of f32 `[Tokens, 3 * patch * patch]`, a patch's numbers in the order channel, row, column; where the
//! tower has a row for the whole of a picture `class` of f32 `[Tokens, 1]`, 1 for that row and else 0; `positions` of i32
//! `[Tokens]`, the row's place in its picture; `seqs` of i32 `[Tokens]`, which picture it is of; and `rows` of i32
//! `[Rows]`, the rows that the language model reads. Where several patches become one row, `rows` is the first of them and
//! `rows1`, `rows2`, ... the others, as [`PatchGrid::read`] lists them. Output: f32 `[Rows, width]`.
//!
//! This module does not know how pictures become patches.

mod encoder;
mod idefics3;
mod llava;

use super::emit::ModelBuilder;
use super::{Model, ModelOutput};
use crate::checkpoint::Checkpoint;
use crate::config::RawConfig;
use crate::error::ModelError;
use yirage_ir::ValueId;

/// Red, green and blue.
const CHANNELS: u32 = 3;

/// All families that are known.
const FAMILIES: [PictureFamily; 3] = [llava::LLAVA, idefics3::IDEFICS3, idefics3::SMOLVLM];

/// What emits a tower with what joins it, by its own and the whole configuration: how it cuts pictures, and the language model's
/// rows with their width.
type EmitTowerFn = fn(&mut ModelBuilder<'_>, &RawConfig) -> Result<(PatchGrid, ValueId, u32), ModelError>;

/// A family of models that read pictures.
struct PictureFamily {
    /// Its `model_type`.
    name: &'static str,
    /// The keys that may have the token of a row, and that token where none does.
    token: (&'static [&'static str], u32),
    /// What a picture's place in a prompt becomes.
    markup: PictureMarkup,
    emit: EmitTowerFn,
}

/// What the token that a template writes for a picture becomes in a prompt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PictureMarkup {
    /// A token for each row.
    Rows,
    /// Each tile of the picture with its row and column in front, the whole picture last, as Idefics3 has it.
    NamedTiles,
}

/// How a picture is cut for a tower.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PatchGrid {
    /// Pixels of a picture's side: pictures are square.
    pub side: u32,
    /// Pixels of a patch's side.
    pub patch: u32,
    /// Whether a row for the whole picture stands in front of its patches.
    pub class_row: bool,
    /// First rows of a picture that the language model does not read.
    pub skipped: u32,
    /// Patches along the side of the square that becomes one row of the language model; above 1 there is no class row and
    /// none is skipped, and it divides the patches along a side.
    pub merged: u32,
}

impl PatchGrid {
    /// Patches along a side.
    pub fn across(&self) -> u32 {
        self.side / self.patch
    }

    /// Rows of a picture in the tower.
    pub fn rows(&self) -> u32 {
        self.across() * self.across() + u32::from(self.class_row)
    }

    /// Rows of a picture that the language model reads.
    pub fn embeddings(&self) -> u32 {
        (self.rows() - self.skipped) / self.merged / self.merged
    }

    /// Numbers of a patch.
    pub fn patch_numbers(&self) -> u32 {
        CHANNELS * self.patch * self.patch
    }

    /// The slots of the rows that are read, each with the tower's row for every row of the language model: the patches of a
    /// square row by row.
    pub fn read(&self) -> Vec<(String, Vec<i32>)> {
        if self.merged == 1 {
            return vec![(rows_slot(0), (self.skipped as i32..self.rows() as i32).collect())];
        }
        let (merged, across) = (self.merged, self.across());
        let squares = across / merged;
        let of = |part: u32| {
            let (y, x) = (part / merged, part % merged);
            let row = |square: u32| (square / squares * merged + y) * across + square % squares * merged + x;
            (rows_slot(part), (0..squares * squares).map(|square| row(square) as i32).collect())
        };
        (0..merged * merged).map(of).collect()
    }
}

/// The slot of the first, second, ... patches of squares.
fn rows_slot(part: u32) -> String {
    if part == 0 { "rows".to_owned() } else { format!("rows{part}") }
}

/// A tower with what joins it to its language model, ready to be compiled and loaded.
#[derive(Clone, PartialEq, Debug)]
pub struct VisionModel {
    /// The graph and its weights.
    pub model: Model,
    /// How pictures are cut.
    pub grid: PatchGrid,
    /// What a picture's place in a prompt becomes.
    pub markup: PictureMarkup,
    /// Width of its rows: that of the language model's embeddings.
    pub width: u32,
}

fn family(config: &RawConfig) -> Option<PictureFamily> {
    let name = config.family()?;
    FAMILIES.into_iter().find(|family| family.name == name)
}

/// The token of a prompt that stands for a row of a picture, where the model of `config` reads pictures.
///
/// # Errors
/// [`ModelError::Config`] for a token that is none.
pub fn picture_token(config: &RawConfig) -> Result<Option<u32>, ModelError> {
    let Some(family) = family(config) else { return Ok(None) };
    let (keys, usual) = family.token;
    let key = keys.iter().copied().find(|key| config.get(key).is_some()).unwrap_or(keys[0]);
    let token = config.u32_or(key, usual)?;
    if token >= config.u32("vocab_size")? {
        return Err(config.invalid(key, "a token of the vocabulary"));
    }
    Ok(Some(token))
}

/// The vision tower of a checkpoint's model.
///
/// # Errors
/// [`ModelError::Unsupported`] for a model without one that is known here; else as [`build`](super::build).
pub fn build_tower(checkpoint: &Checkpoint, config: &RawConfig) -> Result<VisionModel, ModelError> {
    let Some(vision) = config.vision()? else {
        return Err(ModelError::Unsupported {
            what: "a picture in the prompt".into(),
            why: format!("{}: the model has no vision tower", config.file()),
        });
    };
    let Some(family) = family(config) else {
        let known: Vec<&str> = FAMILIES.iter().map(|family| family.name).collect();
        let (known, this) = (known.join(", "), config.family().unwrap_or("a family without a name"));
        return Err(ModelError::Unsupported {
            what: "a picture in the prompt".into(),
            why: format!("{}: of models with vision towers {known} are known, this is {this}", config.file()),
        });
    };
    let mut e = ModelBuilder::of_tower(checkpoint, &vision)?;
    let (grid, x, width) = (family.emit)(&mut e, config)?;
    e.output(x, ModelOutput::Hidden { width });
    Ok(VisionModel { model: e.finish_tower(grid.rows())?, grid, markup: family.markup, width })
}
