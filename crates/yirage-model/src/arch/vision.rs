//! Vision towers (Radford et al., arXiv 2103.00020; Zhai et al., arXiv 2303.15343) and what joins them to a language model
//! (Liu et al., arXiv 2310.03744): from the patches of pictures to rows that take the place of tokens' embeddings.
//!
//! # The graph's interface
//! Slots: `patches` of f32 `[Tokens, 3 * patch * patch]`, a patch's numbers in the order channel, row, column; where the
//! tower has a row for the whole of a picture `class` of f32 `[Tokens, 1]`, 1 for that row and else 0; `positions` of i32
//! `[Tokens]`, the row's place in its picture; `seqs` of i32 `[Tokens]`, which picture it is of; and `rows` of i32
//! `[Rows]`, the rows that the language model reads. Output: f32 `[Rows, width]`.
//!
//! This module does not know how pictures become patches.

use super::attention::AttentionHeads;
use super::emit::{ModelBuilder, chosen};
use super::{Model, ModelOutput};
use crate::checkpoint::Checkpoint;
use crate::config::RawConfig;
use crate::error::ModelError;
use serde_json::Value;
use yirage_ir::expr::{Expr, Func};
use yirage_ir::op::{Attention, Concat, Embed, Map};
use yirage_ir::{Dim, F32, Sym, ValueId};

/// Red, green and blue.
const CHANNELS: u32 = 3;

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
        self.rows() - self.skipped
    }

    /// Numbers of a patch.
    pub fn patch_numbers(&self) -> u32 {
        CHANNELS * self.patch * self.patch
    }
}

/// A tower with what joins it to its language model, ready to be compiled and loaded.
#[derive(Clone, PartialEq, Debug)]
pub struct VisionModel {
    /// The graph and its weights.
    pub model: Model,
    /// How pictures are cut.
    pub grid: PatchGrid,
    /// Width of its rows: that of the language model's embeddings.
    pub width: u32,
}

/// The token of a prompt that stands for a row of a picture, where the model of `config` reads pictures.
///
/// # Errors
/// [`ModelError::Config`] for a token that is none.
pub fn picture_token(config: &RawConfig) -> Result<Option<u32>, ModelError> {
    if config.family() != Some("llava") {
        return Ok(None);
    }
    let token = match config.opt_u32("image_token_index")? {
        None => config.u32_or("image_token_id", 32000)?,
        Some(token) => token,
    };
    if token >= config.u32("vocab_size")? {
        return Err(config.invalid("image_token_index", "a token of the vocabulary"));
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
    if picture_token(config)?.is_none() {
        let family = config.family().unwrap_or("a family without a name").to_owned();
        return Err(ModelError::Unsupported {
            what: "a picture in the prompt".into(),
            why: format!("{}: of models with vision towers llava is known, this is {family}", config.file()),
        });
    }
    let mut e = ModelBuilder::of_tower(checkpoint, &vision)?;
    let tower = Tower::read(&e, config)?;
    let (x, width) = tower.emit(&mut e, config)?;
    e.output(x, ModelOutput::Hidden { width });
    Ok(VisionModel { model: e.finish_tower(tower.grid.rows())?, grid: tower.grid, width })
}

/// What is read of a tower's configuration.
struct Tower {
    root: &'static str,
    heads: AttentionHeads,
    inner: u32,
    eps: f32,
    activation: Map,
    grid: PatchGrid,
    /// Layers behind which the rows are taken, each counted from 1; 0 is what the first one reads.
    taken: Vec<u32>,
}

/// Where files keep a tower.
const ROOTS: [&str; 4] =
    ["vision_tower.vision_model", "model.vision_tower.vision_model", "vision_tower", "model.vision_tower"];

impl Tower {
    fn read(e: &ModelBuilder<'_>, text: &RawConfig) -> Result<Tower, ModelError> {
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
        let (side, patch) = (e.size("image_size")?, e.size("patch_size")?);
        if patch > side || side / patch > 1 << 10 {
            return Err(e.config.invalid("patch_size", "1 to 1024 patches along the side of a picture"));
        }
        if e.config.u32_or("num_channels", CHANNELS)? != CHANNELS {
            return Err(e.config.invalid("num_channels", "3"));
        }
        let skipped = match text.opt_str("vision_feature_select_strategy")?.unwrap_or("default") {
            "default" => 1,
            "full" => 0,
            _ => return Err(text.invalid("vision_feature_select_strategy", "default or full")),
        };
        let grid = PatchGrid { side, patch, class_row, skipped };
        if grid.embeddings() == 0 {
            return Err(e.config.invalid("patch_size", "a row for the language model at least"));
        }
        e.product(CHANNELS * patch, patch, "patch_size times itself, in three channels,")?;
        let (hidden, heads) = (e.size("hidden_size")?, e.size("num_attention_heads")?);
        let width = hidden / heads;
        if width * heads != hidden {
            return Err(e.config.invalid("num_attention_heads", "a divisor of hidden_size"));
        }
        let layers = e.config.layers()?;
        let place = ROOTS.into_iter().find(|root| e.has(&format!("{root}.embeddings.patch_embedding.weight")));
        Ok(Tower {
            root: place.unwrap_or(ROOTS[0]),
            heads: AttentionHeads { hidden, heads, kv_heads: heads, width, v_width: width },
            inner: e.size("intermediate_size")?,
            eps: e.eps("layer_norm_eps")?,
            activation: activation(e.config, "hidden_act")?,
            grid,
            taken: taken_layers(text, layers)?,
        })
    }

    /// The rows that the language model reads, and their width.
    fn emit(&self, e: &mut ModelBuilder<'_>, text: &RawConfig) -> Result<(ValueId, u32), ModelError> {
        let mut x = self.embeddings(e)?;
        let mut states = vec![x];
        let last = self.taken.iter().copied().max().unwrap_or(0);
        for l in 0..last {
            x = self.layer(e, l, x)?;
            states.push(x);
        }
        let taken: Vec<ValueId> = self.taken.iter().map(|&layer| states[layer as usize]).collect();
        let joined = match taken[..] {
            [one] => one,
            ref all => e.op("features", Concat { axis: 1 }, all)?,
        };
        let read = e.wanted(joined)?;
        let from = e.product(self.heads.hidden, taken.len() as u32, "hidden_size times vision_feature_layer")?;
        projector(e, text, read, from)
    }

    /// What the first layer reads.
    fn embeddings(&self, e: &mut ModelBuilder<'_>) -> Result<ValueId, ModelError> {
        let (hidden, grid) = (self.heads.hidden, self.grid);
        let root = format!("{}.embeddings", self.root);
        let patches = e.float_input("patches", [Dim::Sym(Sym::Tokens), Dim::Const(grid.patch_numbers())])?;
        let stored = e.whole(&format!("{root}.patch_embedding.weight"), &[hidden, CHANNELS, grid.patch, grid.patch])?;
        let bias = match grid.class_row {
            true => None,
            false => Some(e.whole(&format!("{root}.patch_embedding.bias"), &[hidden])?),
        };
        let mut x = e.project("patch", patches, [hidden, grid.patch_numbers()], stored, bias)?;
        if grid.class_row {
            let class = e.float_input("class", [Dim::Sym(Sym::Tokens), Dim::Const(1)])?;
            let of_class = e.tensor("class.w", &format!("{root}.class_embedding"), &[hidden])?;
            x = e.op("classed", chosen(), &[class, of_class, x])?;
        }
        let table = e.tensor("positions.w", &format!("{root}.position_embedding.weight"), &[grid.rows(), hidden])?;
        let at = e.op("position", Embed { scale: F32(1.0) }, &[table, e.inputs.positions])?;
        let x = e.add("positioned", x, at)?;
        match grid.class_row {
            // The name is misspelt in every file.
            true => e.layer_norm("pre_norm", &format!("{}.pre_layrnorm", self.root), x, hidden, self.eps),
            false => Ok(x),
        }
    }

    fn layer(&self, e: &mut ModelBuilder<'_>, l: u32, x: ValueId) -> Result<ValueId, ModelError> {
        let (name, hf, hidden) = (format!("v{l}"), format!("{}.encoder.layers.{l}", self.root), self.heads.hidden);
        let n = e.layer_norm(&format!("{name}.attn_norm"), &format!("{hf}.layer_norm1"), x, hidden, self.eps)?;
        let a = self.attention(e, &name, &hf, n)?;
        let a = e.linear(&format!("{name}.o"), &format!("{hf}.self_attn.out_proj"), a, [hidden, hidden], true)?;
        let x = e.add(&format!("{name}.mid"), x, a)?;
        let n = e.layer_norm(&format!("{name}.ffn_norm"), &format!("{hf}.layer_norm2"), x, hidden, self.eps)?;
        let f = e.linear(&format!("{name}.ffn.up"), &format!("{hf}.mlp.fc1"), n, [self.inner, hidden], true)?;
        let f = e.op(&format!("{name}.ffn.act"), self.activation.clone(), &[f])?;
        let f = e.linear(&format!("{name}.ffn.down"), &format!("{hf}.mlp.fc2"), f, [hidden, self.inner], true)?;
        e.add(&format!("{name}.res"), x, f)
    }

    /// Attention to all of the picture.
    fn attention(&self, e: &mut ModelBuilder<'_>, name: &str, hf: &str, x: ValueId) -> Result<ValueId, ModelError> {
        let h = &self.heads;
        let mut one = |part: &str| {
            let hf = format!("{hf}.self_attn.{part}_proj");
            e.linear(&format!("{name}.{part}"), &hf, x, [h.hidden, h.hidden], true)
        };
        let (q, k, v) = (one("q")?, one("k")?, one("v")?);
        let op = Attention {
            heads: h.heads,
            kv_heads: h.kv_heads,
            k_width: h.width,
            v_width: h.v_width,
            scale: F32(h.scale()),
            softcap: F32(0.0),
            window: 0,
            causal: false,
            cached: false,
            v_in_k: false,
        };
        e.op(&format!("{name}.attn"), op, &[q, k, v, e.inputs.positions, e.inputs.seqs])
    }
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

/// The function that a key names; gelu where it names none.
fn activation(config: &RawConfig, key: &str) -> Result<Map, ModelError> {
    match config.opt_str(key)?.unwrap_or("gelu") {
        "gelu" => Ok(Map::of(Func::GeluErf)),
        "gelu_pytorch_tanh" | "gelu_new" => Ok(Map::of(Func::GeluTanh)),
        "quick_gelu" => {
            let open = Expr::call(Func::Mul, &[Expr::input(0), Expr::constant(1.702)]);
            Ok(Map { expr: Expr::call(Func::Mul, &[Expr::input(0), Expr::call(Func::Sigmoid, &[open])]) })
        }
        _ => Err(config.invalid(key, "gelu, gelu_pytorch_tanh, gelu_new or quick_gelu")),
    }
}

/// The layers that `vision_feature_layer` names: one or several, negative ones counted from the end.
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
