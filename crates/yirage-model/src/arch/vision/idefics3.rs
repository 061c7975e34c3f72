//! Idefics3 and SmolVLM (Laurençon et al., arXiv 2408.12637; Marafioti et al., arXiv 2504.05299): each square of a SigLIP
//! tower's rows becomes one row of the language model by one matrix. This module does not know how a picture becomes tiles.

use super::super::emit::ModelBuilder;
use super::encoder::VisionEncoder;
use super::{PatchGrid, PictureFamily, PictureMarkup};
use crate::config::RawConfig;
use crate::error::ModelError;
use yirage_ir::ValueId;
use yirage_ir::op::{Concat, Gather};

pub(super) const IDEFICS3: PictureFamily =
    PictureFamily { name: "idefics3", token: (&["image_token_id"], 128_257), markup: PictureMarkup::NamedTiles, emit };

pub(super) const SMOLVLM: PictureFamily = PictureFamily { name: "smolvlm", ..IDEFICS3 };

/// Where files keep a tower.
const ROOTS: [&str; 2] = ["model.vision_model", "vision_model"];

/// Patches along a side whose places the reference finds by comparing fractions in f32. Within this bound a patch's place is
/// its own but for these numbers, where a product is rounded below the bound of its place and the patch gets the embedding
/// of the one in front. Which ones those are hangs on the order in which the bounds are added up.
const MOST_PATCHES: u32 = 64;
const ROUNDED: [u32; 17] = [19, 25, 29, 31, 38, 40, 41, 43, 47, 49, 50, 54, 55, 58, 59, 61, 62];

/// Largest side of a square that becomes one row.
const MOST_MERGED: u32 = 8;

fn emit(e: &mut ModelBuilder<'_>, text: &RawConfig) -> Result<(PatchGrid, ValueId, u32), ModelError> {
    let merged = text.u32_or("scale_factor", 2)?;
    if !(1..=MOST_MERGED).contains(&merged) {
        return Err(text.invalid("scale_factor", "1 to 8"));
    }
    let grid = |side, patch| PatchGrid { side, patch, class_row: false, skipped: 0, merged };
    let tower = VisionEncoder::read(e, &ROOTS, grid)?;
    let across = tower.grid.across();
    if across % merged != 0 {
        return Err(text.invalid("scale_factor", &format!("a divisor of the {across} patches along a side")));
    }
    if across > MOST_PATCHES || ROUNDED.contains(&across) {
        return Err(ModelError::Unsupported {
            what: format!("a tower of {across} patches along a side"),
            why: format!("{}: rounding decides which of their positions are whose", e.config.file()),
        });
    }
    let states = tower.states(e, tower.layers)?;
    let x = tower.post_norm(e, states[states.len() - 1])?;
    let mut parts = Vec::new();
    for (slot, _) in tower.grid.read() {
        let rows = e.rows_input(&slot)?;
        parts.push(e.op(&format!("read.{slot}"), Gather { axis: 0 }, &[x, rows])?);
    }
    let squares = match parts[..] {
        [one] => one,
        ref all => e.op("squares", Concat { axis: 1 }, all)?,
    };
    let (from, to) = (
        e.product(tower.heads.hidden, merged * merged, "hidden_size times scale_factor twice")?,
        text.u32("hidden_size")?,
    );
    let root = ["model.connector", "connector"].map(|root| format!("{root}.modality_projection.proj"));
    let root = root.iter().find(|root| e.has(&format!("{root}.weight"))).unwrap_or(&root[0]);
    let x = e.linear("projector", root, squares, [to, from], false)?;
    Ok((tower.grid, x, to))
}
