//! LLaVA (Liu et al., arXiv 2310.03744): two layers between the rows of some layers of a CLIP or SigLIP tower and the language
//! model. This module does not know what is inside a tower's layer.

use super::super::emit::ModelBuilder;
use super::encoder::{VisionEncoder, activation};
use super::{PatchGrid, PictureFamily, PictureMarkup};
use crate::config::RawConfig;
use crate::error::ModelError;
use serde_json::Value;
use yirage_ir::ValueId;
use yirage_ir::op::Concat;

pub(super) const LLAVA: PictureFamily = PictureFamily {
    name: "llava",
    token: (&["image_token_index", "image_token_id"], 32000),
    markup: PictureMarkup::Rows,
    emit,
};

/// Where files keep a tower.
const ROOTS: [&str; 4] =
    ["vision_tower.vision_model", "model.vision_tower.vision_model", "vision_tower", "model.vision_tower"];

fn emit(e: &mut ModelBuilder<'_>, text: &RawConfig) -> Result<(PatchGrid, ValueId, u32), ModelError> {
    let class_row = match e.config.model_type()? {
        "clip_vision_model" => true,
        "siglip_vision_model" => false,
        other => {
            return Err(ModelError::Unsupported {
                what: format!("the vision tower {other:?}"),
                why: format!("{}: clip_vision_model and siglip_vision_model are known", e.config.file()),
            });
        }
    };
    let skipped = match text.opt_str("vision_feature_select_strategy")?.unwrap_or("default") {
        "default" => 1,
        "full" => 0,
        _ => return Err(text.invalid("vision_feature_select_strategy", "default or full")),
    };
    let grid = |side, patch| PatchGrid { side, patch, class_row, skipped, merged: 1 };
    let tower = VisionEncoder::read(e, &ROOTS, grid)?;
    let taken = taken_layers(text, tower.layers)?;
    let states = tower.states(e, taken.iter().copied().max().unwrap_or(0))?;
    let taken: Vec<ValueId> = taken.iter().map(|&layer| states[layer as usize]).collect();
    let joined = match taken[..] {
        [one] => one,
        ref all => e.op("features", Concat { axis: 1 }, all)?,
    };
    let read = e.wanted(joined)?;
    let from = e.product(tower.heads.hidden, taken.len() as u32, "hidden_size times vision_feature_layer")?;
    let (x, width) = projector(e, text, read, from)?;
    Ok((tower.grid, x, width))
}

/// Two layers between the tower's rows and the language model's.
fn projector(e: &mut ModelBuilder<'_>, text: &RawConfig, x: ValueId, from: u32) -> Result<(ValueId, u32), ModelError> {
    let to = text.u32("hidden_size")?;
    let bias = text.bool_or("multimodal_projector_bias", true)?;
    let root = ["multi_modal_projector", "model.multi_modal_projector"];
    let root = root.into_iter().find(|root| e.has(&format!("{root}.linear_1.weight"))).unwrap_or(root[0]);
    let x = e.linear("projector.first", &format!("{root}.linear_1"), x, [to, from], bias)?;
    let x = e.op("projector.act", activation(text, "projector_hidden_act")?, &[x])?;
    Ok((e.linear("projector.second", &format!("{root}.linear_2"), x, [to, to], bias)?, to))
}

/// The layers that `vision_feature_layer` names, each counted from 1, where 0 is what the first one reads: one or several,
/// negative ones counted from the end.
fn taken_layers(text: &RawConfig, layers: u32) -> Result<Vec<u32>, ModelError> {
    const KEY: &str = "vision_feature_layer";
    let wrong =
        || text.invalid(KEY, &format!("layers from {} to {layers}, one or a list of up to 8", -i64::from(layers) - 1));
    let place = |value: &Value| {
        let stated = value.as_i64()?;
        let at = if stated < 0 { stated + i64::from(layers) + 1 } else { stated };
        u32::try_from(at).ok().filter(|&at| at <= layers)
    };
    let found: Option<Vec<u32>> = match text.get(KEY) {
        None => place(&Value::from(-2)).map(|at| vec![at]),
        Some(Value::Array(list)) if (1..=8).contains(&list.len()) => list.iter().map(place).collect(),
        Some(one) => place(one).map(|at| vec![at]),
    };
    found.ok_or_else(wrong)
}
