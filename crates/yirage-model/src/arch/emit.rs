//! What every architecture file builds with: step inputs, weights, caches, rotary tables, the head.
//!
//! It knows how a graph is put together, not how any model is.

use super::frequencies::ScaledFrequencies;
use super::key_bias::biased_keys;
use super::low_rank::{self, LORA_SCALES, LowRankBranches};
use super::step_graph::{KvCacheInputs, StepGraph, StepGraphBuilder};
use super::{BuildOptions, KvCacheSpec, Model, ModelOutput, unused_tensors};
use crate::checkpoint::Checkpoint;
use crate::config::{ConfigSource, LayerType, Quantization, QueryGrowth, RawConfig, RopeConfig};
use crate::error::ModelError;
use crate::lora::LoraAdapter;
use crate::rope;
use crate::tensor_names;
use crate::weights::{WeightBinding, WeightSource, WeightView};
use yirage_ir::expr::{Expr, Func};
use yirage_ir::op::{Embed, Gather, Hadamard, LayerNorm, Linear, Map, RmsNorm, Rope};
use yirage_ir::{BuildError, DType, Dim, F32, Format, Op, Sym, Type, ValueId};

/// Largest size of any single dimension that a configuration may state; products of two stay within u32.
pub(super) const LARGEST: u32 = 1 << 24;

/// Largest number of elements of a table of cosines: 16 times what a million positions of usual heads take.
const LARGEST_TABLE: u64 = 1 << 30;

/// The step inputs that every model has.
#[derive(Clone, Copy)]
pub(super) struct StepInputs {
    /// None in a vision tower.
    ids: Option<ValueId>,
    pub(super) positions: ValueId,
    pub(super) seqs: ValueId,
    pub(super) rows: ValueId,
}

/// A rotary embedding: its tables and what they are applied to.
#[derive(Clone, Copy)]
pub(super) struct Rotation {
    cos: ValueId,
    sin: ValueId,
    rotary: u32,
    interleaved: bool,
    per_row: bool,
}

/// Tables that are declared: their configuration and the rotating width.
struct RopeTableInputs {
    config: RopeConfig,
    rotary: u32,
    cos: ValueId,
    sin: ValueId,
}

/// A model under construction.
pub(super) struct ModelBuilder<'a> {
    pub(super) config: &'a RawConfig,
    pub(super) checkpoint: &'a Checkpoint,
    pub(super) inputs: StepInputs,
    options: BuildOptions,
    post_norms: bool,
    step: StepGraphBuilder,
    output: Option<ModelOutput>,
    passed_over: Vec<String>,
    token_types: u32,
    embedded: Option<u32>,
    weights: Vec<WeightBinding>,
    tables: Vec<RopeTableInputs>,
    /// Tensors of divisors of frequencies.
    divisors: Vec<String>,
    dynamic: Option<rope::Dynamic>,
    low_rank: Option<LowRankBranches>,
    /// The layer whose MTP head is built in the place of the model.
    mtp_layer: Option<u32>,
    /// Whether the output that an MTP head has, or that one reads, was made.
    mtp_output: bool,
}

impl<'a> ModelBuilder<'a> {
    pub(super) fn new(
        checkpoint: &'a Checkpoint,
        config: &'a RawConfig,
        options: BuildOptions,
    ) -> Result<ModelBuilder<'a>, ModelError> {
        let mut e = ModelBuilder::empty(checkpoint, config, options)?;
        e.inputs.ids = Some(e.step.ids().map_err(|e| misfit(config, &e))?);
        Ok(e)
    }

    /// A vision tower under construction, whose `config` says nothing of a cache.
    pub(super) fn of_tower(checkpoint: &'a Checkpoint, config: &'a RawConfig) -> Result<ModelBuilder<'a>, ModelError> {
        let options = BuildOptions::plain(1);
        ModelBuilder::empty(checkpoint, config, options)
    }

    fn empty(
        checkpoint: &'a Checkpoint,
        config: &'a RawConfig,
        options: BuildOptions,
    ) -> Result<ModelBuilder<'a>, ModelError> {
        if !matches!(options.kv, Format::F32 | Format::F16 | Format::BF16 | Format::Q8_0) {
            return Err(ModelError::Unsupported {
                what: format!("a cache of {}", options.kv.info().name),
                why: "keys and values are kept as f32, f16, bf16 or q8_0".into(),
            });
        }
        let mut step = StepGraphBuilder::new(config.model_type()?.replace(|c: char| !c.is_ascii_alphanumeric(), "_"));
        let mut three = || -> Result<StepInputs, BuildError> {
            Ok(StepInputs { ids: None, positions: step.positions()?, seqs: step.seqs()?, rows: step.rows()? })
        };
        let inputs = three().map_err(|e| misfit(config, &e))?;
        Ok(ModelBuilder {
            config,
            checkpoint,
            inputs,
            options,
            post_norms: false,
            step,
            output: None,
            passed_over: Vec::new(),
            token_types: 0,
            embedded: None,
            weights: Vec::new(),
            tables: Vec::new(),
            divisors: Vec::new(),
            dynamic: None,
            low_rank: None,
            mtp_layer: None,
            mtp_output: false,
        })
    }

    /// Has adapters stand beside the products that they are for.
    pub(super) fn stand_beside(&mut self, adapters: &[LoraAdapter]) -> Result<(), ModelError> {
        self.low_rank = Some(LowRankBranches::new(self.checkpoint, adapters)?);
        Ok(())
    }

    /// Says that `post_attention_layernorm` is applied to the output of attention, not before the feed-forward part.
    pub(super) fn with_post_norms(&mut self) {
        self.post_norms = true;
    }

    /// Says that the MTP head which layer `l` is gets built, and nothing else.
    pub(super) fn only_mtp_head(&mut self, l: u32) {
        self.mtp_layer = Some(l);
    }

    /// The layer whose MTP head is built in the place of the model, if that is what is built.
    pub(super) fn mtp_layer(&self) -> Option<u32> {
        self.mtp_layer
    }

    pub(super) fn is_gguf(&self) -> bool {
        self.config.source() == ConfigSource::Gguf
    }

    /// A size that the configuration states: 1 to [`LARGEST`].
    pub(super) fn size(&self, key: &str) -> Result<u32, ModelError> {
        match self.config.u32(key)? {
            n @ 1..=LARGEST => Ok(n),
            _ => Err(self.config.invalid(key, &format!("an integer from 1 to {LARGEST}"))),
        }
    }

    /// A number that is not negative, or `default` where absent.
    pub(super) fn positive(&self, key: &str, default: f64) -> Result<f64, ModelError> {
        let value = self.config.f64_or(key, default)?;
        if value.is_finite() && value >= 0.0 { Ok(value) } else { Err(self.config.invalid(key, "a number from 0 on")) }
    }

    /// The epsilon of norms.
    pub(super) fn eps(&self, key: &str) -> Result<f32, ModelError> {
        let value = self.config.f64(key)?;
        if (0.0..=1.0).contains(&value) {
            Ok(value as f32)
        } else {
            Err(self.config.invalid(key, "a number from 0 to 1"))
        }
    }

    /// The longest context the model was made for.
    fn positions(&self) -> Result<u32, ModelError> {
        match self.config.u32("max_position_embeddings")? {
            0 => Err(self.config.invalid("max_position_embeddings", "an integer above 0")),
            n => Ok(n),
        }
    }

    /// Positions that a sequence may have.
    pub(super) fn most_positions(&self) -> u32 {
        self.options.context
    }

    /// Refuses positions that are not computed of the architecture.
    pub(super) fn check_positions(&self) -> Result<(), ModelError> {
        match self.config.computed_positions()? {
            Some((most, key)) if self.most_positions() > most => Err(ModelError::Unsupported {
                what: format!("a context of {} positions", self.most_positions()),
                why: format!(
                    "{}: {key}, and attention behind that is not computed yet; take at most {most}",
                    self.config.file()
                ),
            }),
            _ => Ok(()),
        }
    }

    /// The product of two sizes.
    pub(super) fn product(&self, a: u32, b: u32, what: &str) -> Result<u32, ModelError> {
        a.checked_mul(b).filter(|&n| n <= LARGEST).ok_or_else(|| ModelError::Config {
            file: self.config.file().to_owned(),
            key: self.config.in_its_names(what),
            expected: format!("a product of at most {LARGEST}"),
            found: format!("{a} times {b}"),
        })
    }

    /// The file's name for a tensor named as in Hugging Face checkpoints.
    pub(super) fn stored_name(&self, hf: &str) -> String {
        if self.is_gguf() {
            tensor_names::gguf(hf, self.post_norms)
        } else {
            tensor_names::safetensors(hf, self.checkpoint)
        }
    }

    /// Whether the checkpoint has the tensor.
    pub(super) fn has(&self, hf: &str) -> bool {
        self.checkpoint.tensor(&self.stored_name(hf)).is_some()
    }

    /// Whether a bias exists: safetensors models say so in their configuration, GGUF files by having it.
    pub(super) fn biased(&self, stated: bool, hf: &str) -> bool {
        if self.is_gguf() { self.has(hf) } else { stated }
    }

    /// The whole of a tensor, which must have this shape.
    pub(super) fn whole(&self, hf: &str, shape: &[u32]) -> Result<WeightView, ModelError> {
        let tensor = self.checkpoint.require(&self.stored_name(hf))?;
        let want: Vec<usize> = shape.iter().map(|&n| n as usize).collect();
        if tensor.shape == want {
            return Ok(WeightView::dense(tensor.name.clone(), 0, want));
        }
        Err(ModelError::Config {
            file: self.checkpoint.label(),
            key: format!("tensor {:?}", tensor.name),
            expected: format!("the shape {want:?}, as {} implies", self.config.file()),
            found: format!("{:?}", tensor.shape),
        })
    }

    /// A strided part of a tensor, which must have the shape `of`.
    pub(super) fn part(
        &self,
        hf: &str,
        of: &[u32],
        offset: u32,
        shape: &[u32],
        strides: &[u32],
    ) -> Result<WeightView, ModelError> {
        let whole = self.whole(hf, of)?;
        let wide = |list: &[u32]| list.iter().map(|&n| n as usize).collect();
        Ok(WeightView { offset: offset as usize, shape: wide(shape), strides: wide(strides), ..whole })
    }

    /// Rows `first` to `first + rows` of a matrix (or elements of a vector) of shape `of`.
    pub(super) fn rows_of(&self, hf: &str, of: &[u32], first: u32, rows: u32) -> Result<WeightView, ModelError> {
        let mut view = self.whole(hf, of)?;
        view.offset = first as usize * view.strides[0];
        view.shape[0] = rows as usize;
        Ok(view)
    }

    /// Declares a weight of `shape` made of `views`. A name that is bound already gives the same weight.
    pub(super) fn weight(&mut self, name: &str, shape: &[u32], views: Vec<WeightView>) -> Result<ValueId, ModelError> {
        let Some(first) = views.first() else { return Err(self.config.invalid(name, "at least one tensor")) };
        let mut format = self.checkpoint.format(self.checkpoint.require(&first.tensor)?)?;
        for view in &views[1..] {
            if !self.checkpoint.gives(self.checkpoint.require(&view.tensor)?, format)? {
                format = Format::F32;
            }
        }
        self.bind(name, format, shape, WeightSource::Stored(views))
    }

    /// Declares a weight of any source.
    pub(super) fn bind(
        &mut self,
        name: &str,
        format: Format,
        shape: &[u32],
        source: WeightSource,
    ) -> Result<ValueId, ModelError> {
        if let Some(id) = self.step.bound_weight(name) {
            return Ok(id);
        }
        let ty = Type::new(DType::Stored(format), shape.iter().copied());
        let shape = shape.iter().map(|&n| n as usize).collect();
        let binding = WeightBinding { name: name.to_owned(), format, shape, source };
        binding.check(self.checkpoint)?;
        let id = self.step.weight(name, ty).map_err(|e| misfit(self.config, &e))?;
        self.weights.push(binding);
        Ok(id)
    }

    /// Declares the whole of one tensor as a weight.
    pub(super) fn tensor(&mut self, name: &str, hf: &str, shape: &[u32]) -> Result<ValueId, ModelError> {
        let view = self.whole(hf, shape)?;
        self.weight(name, shape, vec![view])
    }

    /// Adds an op with one output.
    pub(super) fn op(&mut self, name: &str, op: impl Into<Op>, ins: &[ValueId]) -> Result<ValueId, ModelError> {
        self.step.graph.op(name, op, ins).map_err(|e| misfit(self.config, &e))
    }

    /// Adds an op with several outputs.
    pub(super) fn ops(
        &mut self,
        names: &[&str],
        op: impl Into<Op>,
        ins: &[ValueId],
    ) -> Result<Vec<ValueId>, ModelError> {
        self.step.graph.op_multi(names, op, ins).map_err(|e| misfit(self.config, &e))
    }

    /// `a + b`, where `b` may be one row.
    pub(super) fn add(&mut self, name: &str, a: ValueId, b: ValueId) -> Result<ValueId, ModelError> {
        self.op(name, Map::of(Func::Add), &[a, b])
    }

    /// `x` times the transpose of a weight in `groups` groups, and what adapters add to that.
    pub(super) fn matmul(&mut self, name: &str, x: ValueId, w: ValueId, groups: u32) -> Result<ValueId, ModelError> {
        let Some(branches) = self.low_rank.as_mut().filter(|_| groups == 1) else {
            return self.op(name, Linear { groups }, &[x, w]);
        };
        let weight = self.weights.iter().find(|binding| self.step.bound_weight(&binding.name) == Some(w));
        let Some(weight) = weight else { return self.op(name, Linear { groups }, &[x, w]) };
        let (n, k) = (weight.rows() as u32, weight.width() as u32);
        let Some(matrices) = branches.beside(weight)? else {
            return self.op(name, Linear { groups }, &[x, w]);
        };
        let product = self.op(&format!("{name}.base"), Linear { groups }, &[x, w])?;
        let width = matrices.width;
        let a = self.bind(&format!("{name}.lora_a"), Format::F32, &[width, k], low_rank::given(matrices.a))?;
        let b = self.bind(&format!("{name}.lora_b"), Format::F32, &[n, width], low_rank::given(matrices.b))?;
        let inner = self.op(&format!("{name}.lora_inner"), Linear { groups: 1 }, &[x, a])?;
        let scales = self.lora_scales(x, width)?;
        let scaled = self.op(&format!("{name}.lora_scaled"), Map::of(Func::Mul), &[inner, scales])?;
        let added = self.op(&format!("{name}.lora"), Linear { groups: 1 }, &[scaled, b])?;
        self.add(name, product, added)
    }

    /// The scales of the rows of `x`: all tokens, or those whose logits are wanted.
    fn lora_scales(&mut self, x: ValueId, width: u32) -> Result<ValueId, ModelError> {
        let all = self.float_input(LORA_SCALES, [Dim::Sym(Sym::Tokens), Dim::Const(width)])?;
        if self.step.graph.ty(x).shape.first() != Some(&Dim::Sym(Sym::Rows)) {
            return Ok(all);
        }
        if let Some(wanted) = self.low_rank.as_ref().and_then(|branches| branches.wanted_scales) {
            return Ok(wanted);
        }
        let wanted = self.op("lora.wanted_scales", Gather { axis: 0 }, &[all, self.inputs.rows])?;
        if let Some(branches) = &mut self.low_rank {
            branches.wanted_scales = Some(wanted);
        }
        Ok(wanted)
    }

    /// `name = x * w^T (+ b)` with the weights `name.w` and `name.b`, each from one view.
    pub(super) fn project(
        &mut self,
        name: &str,
        x: ValueId,
        [n, k]: [u32; 2],
        w: WeightView,
        b: Option<WeightView>,
    ) -> Result<ValueId, ModelError> {
        let w = self.weight(&format!("{name}.w"), &[n, k], vec![w])?;
        let Some(b) = b else { return self.matmul(name, x, w, 1) };
        let b = self.weight(&format!("{name}.b"), &[n], vec![b])?;
        let product = self.matmul(&format!("{name}.product"), x, w, 1)?;
        self.add(name, product, b)
    }

    /// [`ModelBuilder::project`] by the tensors `hf.weight` and, if `bias`, `hf.bias`.
    pub(super) fn linear(
        &mut self,
        name: &str,
        hf: &str,
        x: ValueId,
        shape: [u32; 2],
        bias: bool,
    ) -> Result<ValueId, ModelError> {
        let w = self.whole(&format!("{hf}.weight"), &shape)?;
        let b = if bias { Some(self.whole(&format!("{hf}.bias"), &shape[..1])?) } else { None };
        self.project(name, x, shape, w, b)
    }

    /// RMS norm of groups of `width` elements by the tensor `hf.weight`.
    pub(super) fn rms_norm(&mut self, name: &str, hf: &str, x: ValueId, norm: &RmsNorm) -> Result<ValueId, ModelError> {
        let w = self.tensor(&format!("{name}.w"), &format!("{hf}.weight"), &[norm.width])?;
        self.op(name, norm.clone(), &[x, w])
    }

    /// `x` times a constant.
    pub(super) fn scale(&mut self, name: &str, x: ValueId, factor: f32) -> Result<ValueId, ModelError> {
        self.op(name, Map::scale(factor), &[x])
    }

    /// Layer norm by the tensor `hf.weight` alone.
    pub(super) fn layer_norm_unbiased(
        &mut self,
        name: &str,
        hf: &str,
        x: ValueId,
        width: u32,
        eps: f32,
    ) -> Result<ValueId, ModelError> {
        let w = self.tensor(&format!("{name}.w"), &format!("{hf}.weight"), &[width])?;
        self.op(name, LayerNorm { eps: F32(eps) }, &[x, w])
    }

    /// Layer norm by the tensors `hf.weight` and `hf.bias`.
    pub(super) fn layer_norm(
        &mut self,
        name: &str,
        hf: &str,
        x: ValueId,
        width: u32,
        eps: f32,
    ) -> Result<ValueId, ModelError> {
        let w = self.tensor(&format!("{name}.w"), &format!("{hf}.weight"), &[width])?;
        let b = self.tensor(&format!("{name}.b"), &format!("{hf}.bias"), &[width])?;
        self.op(name, LayerNorm { eps: F32(eps) }, &[x, w, b])
    }

    /// Rows of the token embedding.
    pub(super) fn embed(&mut self, hf: &str, hidden: u32, scale: f32) -> Result<ValueId, ModelError> {
        self.embed_from("embed.w", hf, hidden, scale)
    }

    /// The same by the weight `weight`, which is the tensor `hf`.
    pub(super) fn embed_from(
        &mut self,
        weight: &str,
        hf: &str,
        hidden: u32,
        scale: f32,
    ) -> Result<ValueId, ModelError> {
        let vocab = self.size("vocab_size")?;
        let table = self.tensor(weight, hf, &[vocab, hidden])?;
        let embedded = self.op("embed", Embed { scale: F32(scale) }, &[table, self.ids()?])?;
        if !self.options.embedded {
            return Ok(embedded);
        }
        self.embedded = Some(hidden);
        let is_given = self.float_input("is_given", [Dim::Sym(Sym::Tokens), Dim::Const(1)])?;
        let given = self.float_input("given", [Dim::Sym(Sym::Tokens), Dim::Const(hidden)])?;
        self.op("embed_or_given", chosen(), &[is_given, given, embedded])
    }

    /// The step input of tokens' numbers.
    pub(super) fn ids(&self) -> Result<ValueId, ModelError> {
        let none = || ModelError::Unsupported { what: "tokens".into(), why: "a vision tower reads none".into() };
        self.inputs.ids.ok_or_else(none)
    }

    /// The step input of this name, of f32.
    pub(super) fn float_input(&mut self, name: &str, shape: [Dim; 2]) -> Result<ValueId, ModelError> {
        self.step.step_input(name, Type::new(DType::F32, shape)).map_err(|e| misfit(self.config, &e))
    }

    /// The step input of this name that picks rows, as `rows` does.
    pub(super) fn rows_input(&mut self, name: &str) -> Result<ValueId, ModelError> {
        if name == "rows" {
            return Ok(self.inputs.rows);
        }
        let ty = Type::new(DType::I32, [Dim::Sym(Sym::Rows)]);
        self.step.step_input(name, ty).map_err(|e| misfit(self.config, &e))
    }

    /// The step input of tokens' types, of which there are `count`.
    pub(super) fn token_types(&mut self, count: u32) -> Result<ValueId, ModelError> {
        self.token_types = count;
        self.step.per_token("types").map_err(|e| misfit(self.config, &e))
    }

    /// Says that the model has no use for a tensor that files may have.
    pub(super) fn pass_over(&mut self, hf: &str) {
        self.passed_over.push(self.stored_name(hf));
    }

    /// Makes `x` what the model gives.
    pub(super) fn output(&mut self, x: ValueId, what: ModelOutput) {
        self.step.graph.output(x);
        self.output = Some(what);
    }

    /// The wanted rows.
    pub(super) fn wanted(&mut self, x: ValueId) -> Result<ValueId, ModelError> {
        self.op("wanted", Gather { axis: 0 }, &[x, self.inputs.rows])
    }

    /// The logits of already normalised rows, by the embedding where the configuration ties them, and the output. A head
    /// of its own counts where the file has one, whatever the configuration says: that is what the reference does.
    /// `after` is applied to each logit.
    pub(super) fn logits(&mut self, head: &str, x: ValueId, hidden: u32, after: Option<Map>) -> Result<(), ModelError> {
        let vocab = self.size("vocab_size")?;
        let tied = self.config.bool_or("tie_word_embeddings", false)?;
        let w = match self.step.bound_weight("embed.w") {
            // Files of embedders have no head. Logits of a model that is loaded for its hidden states are read by nobody.
            Some(table) if (tied || self.options.hidden) && !self.has_own_head(head)? => table,
            _ => self.tensor("head.w", &format!("{head}.weight"), &[vocab, hidden])?,
        };
        self.logits_by(w, x, after)?;
        if self.options.hidden {
            self.step.graph.output(x);
        }
        Ok(())
    }

    /// The logits by `w` of already normalised rows, `after` applied to each, and the output.
    pub(super) fn logits_by(&mut self, w: ValueId, x: ValueId, after: Option<Map>) -> Result<(), ModelError> {
        let logits = match after {
            Some(map) => {
                let raw = self.matmul("raw_logits", x, w, 1)?;
                self.op("logits", map, &[raw])?
            }
            None => self.matmul("logits", x, w, 1)?,
        };
        self.output(logits, ModelOutput::Logits);
        Ok(())
    }

    /// Whether the file has a head that is not the embedding once more.
    fn has_own_head(&self, head: &str) -> Result<bool, ModelError> {
        let Some(stored) = self.checkpoint.tensor(&self.stored_name(&format!("{head}.weight"))) else {
            return Ok(false);
        };
        let embedding = self.weights.iter().find(|w| w.name == "embed.w");
        let name = embedding.and_then(|w| w.tensors().first().copied()).unwrap_or_default();
        Ok(!self.checkpoint.is_copy(stored, self.checkpoint.require(name)?))
    }

    /// Whether the hidden rows of all tokens are wanted.
    pub(super) fn wants_all_hidden(&self) -> bool {
        self.options.all_hidden
    }

    /// Makes `x` the output that an MTP head reads, or has.
    pub(super) fn mtp_output(&mut self, x: ValueId) {
        self.step.graph.output(x);
        self.mtp_output = true;
    }

    /// The rotation of layers of a type for heads of `width`; layers of equal rotations share tables.
    pub(super) fn rotation(&mut self, layer: LayerType, width: u32, interleaved: bool) -> Result<Rotation, ModelError> {
        let config = self.config.rope(layer)?;
        let rotary = config.rotary_dim(width);
        if rotary < 2 || !rotary.is_multiple_of(2) {
            return Err(ModelError::Config {
                file: self.config.file().to_owned(),
                key: self.config.called("partial_rotary_factor"),
                expected: "whole pairs of a head that rotate, one at least".into(),
                found: format!("{rotary} of {width} elements"),
            });
        }
        let (fixed, longer) = ScaledFrequencies { checkpoint: self.checkpoint, file: self.config.file(), rotary }
            .read(&config, self.options.context)?;
        self.divisors.extend(config.scaling.divisor_tensors().map(ToOwned::to_owned));
        if let Some(dynamic) = longer {
            return self.dynamic_rotation(dynamic, rotary, interleaved);
        }
        if let Some(t) = self.tables.iter().find(|t| t.config == config && t.rotary == rotary) {
            return Ok(Rotation { cos: t.cos, sin: t.sin, rotary, interleaved, per_row: false });
        }
        if u64::from(self.options.context) * u64::from(rotary / 2) > LARGEST_TABLE {
            return Err(ModelError::Unsupported {
                what: format!("a context of {} positions", self.options.context),
                why: format!("its rotary tables would hold more than {LARGEST_TABLE} elements; choose a smaller one"),
            });
        }
        let (positions, at) = (self.options.context.max(1), self.tables.len());
        let [cosines, sines] = rope::RopeTable::both(fixed, positions);
        let mut table =
            |name: &str, table| self.bind(name, Format::F32, &[positions, rotary / 2], WeightSource::Computed(table));
        let cos = table(&format!("rope.{at}.cos"), cosines)?;
        let sin = table(&format!("rope.{at}.sin"), sines)?;
        self.tables.push(RopeTableInputs { config, rotary, cos, sin });
        Ok(Rotation { cos, sin, rotary, interleaved, per_row: false })
    }

    /// The rotation of queries that grow with their position, beside that of keys, where a position of the context does.
    pub(super) fn growing_rotation(
        &mut self,
        rotation: Rotation,
        width: u32,
        growth: QueryGrowth,
    ) -> Result<Rotation, ModelError> {
        if self.options.context <= growth.every {
            return Ok(rotation);
        }
        let config = self.config.rope(LayerType::Full)?;
        if rotation.rotary != width || rotation.per_row || config.scaling.is_divided() {
            return Err(ModelError::Unsupported {
                what: "queries that grow with their position".into(),
                why: format!(
                    "{}: they are computed with whole heads that rotate, by frequencies of the configuration; choose a \
                     context of at most {}",
                    self.config.file(),
                    growth.every
                ),
            });
        }
        let frequencies = rope::Frequencies { growth: Some(growth), ..rope::Frequencies::new(&config, width, None) };
        let positions = self.options.context;
        let [cosines, sines] = rope::RopeTable::both(frequencies, positions);
        let mut table =
            |name: &str, table| self.bind(name, Format::F32, &[positions, width / 2], WeightSource::Computed(table));
        Ok(Rotation { cos: table("rope.q.cos", cosines)?, sin: table("rope.q.sin", sines)?, ..rotation })
    }

    /// A rotation whose cosines and sines are given for each token.
    fn dynamic_rotation(
        &mut self,
        dynamic: rope::Dynamic,
        rotary: u32,
        interleaved: bool,
    ) -> Result<Rotation, ModelError> {
        if let Some(other) = self.dynamic.as_ref().filter(|&other| *other != dynamic) {
            return Err(ModelError::Unsupported {
                what: "layers with different dynamic rotary embeddings".into(),
                why: format!("{}: {other:?} and {dynamic:?}", self.config.file()),
            });
        }
        self.dynamic = Some(dynamic);
        let shape = [Dim::Sym(Sym::Tokens), Dim::Const(rotary / 2)];
        let (cos, sin) = (self.float_input("rope.cos", shape)?, self.float_input("rope.sin", shape)?);
        Ok(Rotation { cos, sin, rotary, interleaved, per_row: true })
    }

    /// Rotates heads of `width`.
    pub(super) fn rotate(&mut self, name: &str, x: ValueId, width: u32, r: Rotation) -> Result<ValueId, ModelError> {
        let Rotation { cos, sin, rotary, interleaved, per_row } = r;
        let ins = [x, cos, sin, self.inputs.positions];
        self.op(name, Rope { width, rotary, interleaved, per_row }, if per_row { &ins[..3] } else { &ins })
    }

    /// Whether the cache's format has scales that elements share.
    pub(super) fn caches_blocks(&self) -> bool {
        self.options.kv.info().block > 1
    }

    /// Spreads each element of heads of `width` over as much of its head as a power of two allows.
    pub(super) fn spread(&mut self, name: &str, x: ValueId, width: u32) -> Result<ValueId, ModelError> {
        self.op(name, Hadamard { part: 1 << width.trailing_zeros() }, &[x])
    }

    /// Layer `layer`'s cache in `group`, and the group's slot mapping and block table.
    pub(super) fn kv_cache(&mut self, layer: u32, group: KvCacheSpec) -> Result<[ValueId; 3], ModelError> {
        let none = || ModelError::Unsupported {
            what: format!("keys and values of layer {layer}"),
            why: "its cache group keeps recurrent states".to_owned(),
        };
        let (heads, width) = match group {
            KvCacheSpec::Paged { kv_heads, k_width, v_width, .. } => (kv_heads, k_width + v_width),
            KvCacheSpec::Latent { rank, rope } => (1, rank + rope),
            KvCacheSpec::Recurrent => return Err(none()),
        };
        self.check_blocks(layer, group)?;
        let ty = Type::new(DType::Stored(self.options.kv), [self.options.kv_block, heads, width]);
        let KvCacheInputs { cache, slot_mapping, block_table } = self.cache(format!("kv.{layer}"), ty, group)?;
        Ok([cache, slot_mapping.ok_or_else(none)?, block_table])
    }

    /// A recurrent state of `[rows, channels]` called `state.name`, and the table of the blocks that such states are in.
    pub(super) fn recurrent_state(&mut self, name: &str, shape: [u32; 2]) -> Result<[ValueId; 2], ModelError> {
        let state = self.cache(format!("state.{name}"), Type::new(DType::F32, shape), KvCacheSpec::Recurrent)?;
        Ok([state.cache, state.block_table])
    }

    /// Positions of a block of the caches.
    pub(super) fn kv_block(&self) -> u32 {
        self.options.kv_block
    }

    fn cache(&mut self, name: String, block: Type, group: KvCacheSpec) -> Result<KvCacheInputs, ModelError> {
        self.step.kv_cache(name, block, group).map_err(|e| misfit(self.config, &e))
    }

    /// Whether each head's key and value are whole blocks of the cache's format.
    fn check_blocks(&self, layer: u32, group: KvCacheSpec) -> Result<(), ModelError> {
        let parts = match group {
            KvCacheSpec::Paged { k_width, v_width, .. } => vec![("keys", k_width), ("values", v_width)],
            KvCacheSpec::Latent { rank, rope } => vec![("latent keys", rank + rope)],
            KvCacheSpec::Recurrent => Vec::new(),
        };
        let info = self.options.kv.info();
        match parts.into_iter().find(|(_, width)| !(*width as usize).is_multiple_of(info.block)) {
            None => Ok(()),
            Some((part, width)) => Err(ModelError::Unsupported {
                what: format!("a cache of {}", info.name),
                why: format!(
                    "layer {layer} has {part} of {width} elements a head, that format's blocks are of {}; use \
                     `--kv-type bf16`",
                    info.block
                ),
            }),
        }
    }

    /// Refuses a stored quantisation that the architecture does not read.
    pub(super) fn plain_storage(&self) -> Result<(), ModelError> {
        match self.config.quantization()? {
            Quantization::None | Quantization::Decoded => Ok(()),
            Quantization::Mxfp4 => Err(ModelError::Unsupported {
                what: "MXFP4 in safetensors".into(),
                why: format!("{}: only gpt_oss models are read so", self.config.file()),
            }),
        }
    }

    /// Checks that nothing of the file is left over.
    fn check_unread(&self) -> Result<(), ModelError> {
        let divisors = self.divisors.iter().map(String::as_str);
        let passed_over = self.passed_over.iter().map(String::as_str);
        let read = self.weights.iter().flat_map(WeightBinding::tensors).chain(divisors).chain(passed_over).collect();
        match self.mtp_layer {
            Some(l) => unused_tensors::check_mtp_layer(self.checkpoint, self.config, l, &read),
            None => unused_tensors::check(self.checkpoint, self.config, &read),
        }
    }

    /// Checks that the architecture made what multi-token prediction wants of it.
    fn check_mtp(&self) -> Result<(), ModelError> {
        if (self.mtp_layer.is_none() && !self.options.all_hidden) || self.mtp_output {
            return Ok(());
        }
        Err(ModelError::Unsupported {
            what: format!("multi-token prediction of {}", self.config.model_type()?),
            why: "its layers are not emitted one by one".into(),
        })
    }

    /// The finished model.
    pub(super) fn finish(self) -> Result<Model, ModelError> {
        self.check_mtp()?;
        self.check_unread()?;
        self.low_rank.as_ref().map_or(Ok(()), LowRankBranches::check_used)?;
        let (context, vocab_size) = (self.positions()?, self.size("vocab_size")?);
        self.finished(context, vocab_size)
    }

    /// The finished vision tower of pictures with so many rows. Tensors that it does not read are the language model's.
    pub(super) fn finish_tower(self, rows: u32) -> Result<Model, ModelError> {
        self.finished(rows, 0)
    }

    fn finished(self, context: u32, vocab_size: u32) -> Result<Model, ModelError> {
        let name = self.config.model_type()?.to_owned();
        let nothing = || ModelError::Unsupported { what: name.clone(), why: "its graph has no output".into() };
        let output = self.output.ok_or_else(nothing)?;
        let StepGraph { graph, groups, kv_cache_group } = self.step.finish();
        Ok(Model {
            name,
            vocab_size,
            context,
            biased_keys: biased_keys(&graph),
            graph,
            output,
            token_types: self.token_types,
            embedded: self.embedded,
            weights: self.weights,
            groups,
            kv_cache_group,
            dynamic_rope: self.dynamic,
        })
    }
}

/// The error for a graph whose parts do not fit: sizes in the configuration contradict each other.
fn misfit(config: &RawConfig, e: &BuildError) -> ModelError {
    ModelError::Config {
        file: config.file().to_owned(),
        key: "the model's sizes".into(),
        expected: "sizes that fit together".into(),
        found: e.to_string(),
    }
}

/// The second where the first is not 0, else the third.
pub(super) fn chosen() -> Map {
    let chosen = Expr::call(Func::NotEqual, &[Expr::input(0), Expr::constant(0.0)]);
    Map { expr: Expr::call(Func::Select, &[chosen, Expr::input(1), Expr::input(2)]) }
}
