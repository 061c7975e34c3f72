//! The layers that the towers of CLIP and SigLIP share. This module does not know what joins a tower to a language model, nor
//! which layers that reads.

use super::super::attention::AttentionHeads;
use super::super::emit::{ModelBuilder, chosen};
use super::{CHANNELS, PatchGrid};
use crate::config::RawConfig;
use crate::error::ModelError;
use yirage_ir::expr::{Expr, Func};
use yirage_ir::op::{Embed, Map};
use yirage_ir::{Dim, F32, Sym, ValueId};

/// What is read of a tower's configuration.
pub(super) struct VisionEncoder {
    root: &'static str,
    pub(super) heads: AttentionHeads,
    inner: u32,
    pub(super) eps: f32,
    activation: Map,
    pub(super) grid: PatchGrid,
    /// How many layers it has.
    pub(super) layers: u32,
}

impl VisionEncoder {
    /// The tower of the builder's configuration, whose tensors begin with the first of `roots` that the file has. `grid`
    /// gets the pixels of a picture's and of a patch's side.
    pub(super) fn read(
        e: &ModelBuilder<'_>,
        roots: &[&'static str],
        grid: impl Fn(u32, u32) -> PatchGrid,
    ) -> Result<VisionEncoder, ModelError> {
        let (side, patch) = (e.size("image_size")?, e.size("patch_size")?);
        if patch > side || side / patch > 1 << 10 {
            return Err(e.config.invalid("patch_size", "1 to 1024 patches along the side of a picture"));
        }
        if e.config.u32_or("num_channels", CHANNELS)? != CHANNELS {
            return Err(e.config.invalid("num_channels", "3"));
        }
        let grid = grid(side, patch);
        if grid.embeddings() == 0 {
            return Err(e.config.invalid("patch_size", "a row for the language model at least"));
        }
        e.product(CHANNELS * patch, patch, "patch_size times itself, in three channels,")?;
        let (hidden, heads) = (e.size("hidden_size")?, e.size("num_attention_heads")?);
        let width = hidden / heads;
        if width * heads != hidden {
            return Err(e.config.invalid("num_attention_heads", "a divisor of hidden_size"));
        }
        let place = roots.iter().find(|root| e.has(&format!("{root}.embeddings.patch_embedding.weight")));
        Ok(VisionEncoder {
            root: place.unwrap_or(&roots[0]),
            heads: AttentionHeads { hidden, heads, kv_heads: heads, width, v_width: width },
            inner: e.size("intermediate_size")?,
            eps: e.eps("layer_norm_eps")?,
            activation: activation(e.config, "hidden_act")?,
            grid,
            layers: e.config.layers()?,
        })
    }

    /// What the first layer reads, and what each of the first `last` layers gives.
    pub(super) fn states(&self, e: &mut ModelBuilder<'_>, last: u32) -> Result<Vec<ValueId>, ModelError> {
        let mut x = self.embeddings(e)?;
        let mut states = vec![x];
        for l in 0..last {
            x = self.layer(e, l, x)?;
            states.push(x);
        }
        Ok(states)
    }

    /// The norm behind the last layer.
    pub(super) fn post_norm(&self, e: &mut ModelBuilder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        e.layer_norm("post_norm", &format!("{}.post_layernorm", self.root), x, self.heads.hidden, self.eps)
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
        h.attend_both_ways(e, &format!("{name}.attn"), [q, k, v], None)
    }
}

/// The function that a key names; gelu where it names none.
pub(super) fn activation(config: &RawConfig, key: &str) -> Result<Map, ModelError> {
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
