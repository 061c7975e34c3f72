//! Which tensors a GGUF file gets, and which stored elements each is made of: views, so that permuted rows, fused tensors
//! and stacked experts are read as they are written.

use super::family::TensorFamily;
use crate::error::ConvertError;
use crate::gguf_writer::TensorEntry;
use crate::tensor_role::is_quantized;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use yirage_ir::Format;
use yirage_model::gguf::GgmlType;
use yirage_model::tensor_names::{ExpertMatrixName, expert_matrix, gguf, hugging_face, stacked_experts};
use yirage_model::weights::{WeightBinding, WeightSource, WeightView};
use yirage_model::{Checkpoint, RawConfig, StoredType, TensorInfo};

/// A tensor of the new file, and what it is made of.
#[derive(Clone, PartialEq, Debug)]
pub struct ConvertedTensor {
    /// Dimensions, outermost first.
    pub shape: Vec<u64>,
    /// The format that it gets.
    pub to: GgmlType,
    pub(crate) binding: WeightBinding,
    /// What is added to each number.
    pub(crate) offset: f32,
}

impl ConvertedTensor {
    /// Its name in the new file.
    pub fn name(&self) -> &str {
        &self.binding.name
    }

    /// The names of the tensors that it is made of.
    pub fn sources(&self) -> Vec<&str> {
        self.binding.tensors()
    }

    /// The format that is read: the stored one, or the one that a packed weight is decoded into.
    pub fn from(&self) -> Format {
        self.binding.format
    }

    /// Bytes of its data in the new file.
    pub fn bytes(&self) -> u64 {
        let (block, bytes) = self.to.block().unwrap_or((1, 1));
        self.shape.iter().product::<u64>() / block * bytes
    }

    /// What the new file's table says of it.
    pub(crate) fn entry(&self) -> TensorEntry<'_> {
        TensorEntry { name: self.name(), shape: &self.shape, ty: self.to, bytes: self.bytes() }
    }
}

/// What tensors are planned from.
pub(crate) struct TensorPlanner<'a> {
    pub(crate) checkpoint: &'a Checkpoint,
    pub(crate) config: &'a RawConfig,
    pub(crate) family: TensorFamily,
    /// The format of matrices.
    pub(crate) matrices: GgmlType,
    /// Names of the tensors that the model reads; others have no place in the file.
    pub(crate) read: BTreeSet<&'a str>,
}

/// Which outputs of a stored matrix are taken: from the first on, every so many. Gates and ups take turns in a fused one.
#[derive(Clone, Copy)]
struct TakenOutputs {
    first: usize,
    step: usize,
}

impl TakenOutputs {
    const ALL: TakenOutputs = TakenOutputs { first: 0, step: 1 };
    const EVEN: TakenOutputs = TakenOutputs { first: 0, step: 2 };
    const ODD: TakenOutputs = TakenOutputs { first: 1, step: 2 };
}

impl TensorPlanner<'_> {
    /// All tensors, in the order of the file: those of the configuration, then by shard and name.
    pub(crate) fn plan(&self, divisors: &[(&'static str, Vec<f32>)]) -> Result<Vec<ConvertedTensor>, ConvertError> {
        let mut out = Vec::new();
        for (name, values) in divisors {
            let (name, shape) = ((*name).to_owned(), vec![values.len()]);
            let source = WeightSource::Given(Arc::new(values.clone()));
            out.push(self.converted(WeightBinding { name, format: Format::F32, shape, source })?);
        }
        let mut stored: Vec<&TensorInfo> = self.checkpoint.tensors().collect();
        stored.retain(|tensor| self.read.contains(tensor.name.as_str()));
        stored.sort_by(|a, b| (self.path(a), &a.name).cmp(&(self.path(b), &b.name)));
        let mut experts: BTreeMap<u32, Vec<(ExpertMatrixName, &TensorInfo)>> = BTreeMap::new();
        for tensor in stored {
            let hf = hugging_face(&tensor.name);
            if let Some(matrix) = expert_matrix(&hf) {
                let of_layer = experts.entry(matrix.layer).or_default();
                of_layer.push((matrix, tensor));
                if of_layer.len() == 3 * self.config.u32("num_experts")? as usize {
                    self.stack(matrix.layer, of_layer, &mut out)?;
                    experts.remove(&matrix.layer);
                }
            } else if !self.fused_experts(&hf, tensor, &mut out)? {
                out.push(self.whole(&hf, tensor)?);
            }
        }
        match experts.into_iter().next() {
            None => Ok(out),
            Some((layer, found)) => Err(ConvertError::ExpertCount {
                file: self.checkpoint.label(),
                layer,
                found: found.len(),
                expected: 3 * u64::from(self.config.u32("num_experts")?),
            }),
        }
    }

    fn path(&self, tensor: &TensorInfo) -> &std::path::Path {
        &self.checkpoint.files()[tensor.file].path
    }

    /// A tensor that is one of the file.
    fn whole(&self, hf: &str, tensor: &TensorInfo) -> Result<ConvertedTensor, ConvertError> {
        let name = gguf(hf, self.family.post_norms);
        if name == hf {
            let (file, tensor) = (self.checkpoint.label(), tensor.name.clone());
            return Err(ConvertError::UnknownTensor { file, tensor });
        }
        let view = match self.heads(&name)? {
            Some(heads) => self.pairs(tensor, heads)?,
            None => WeightView::dense(tensor.name.clone(), 0, tensor.shape.clone()),
        };
        self.made(name, tensor, tensor.shape.clone(), vec![view])
    }

    /// The heads of a tensor of queries or keys, where their rows change places.
    fn heads(&self, name: &str) -> Result<Option<usize>, ConvertError> {
        let key = match name.rsplit_once('.').and_then(|(stem, _)| stem.rsplit_once('.')) {
            Some((_, "attn_q")) if self.family.pairs => "num_attention_heads",
            Some((_, "attn_k")) if self.family.pairs => "num_key_value_heads",
            _ => return Ok(None),
        };
        match self.config.u32(key)? {
            0 => Err(self.config.invalid(key, "an integer above 0").into()),
            heads => Ok(Some(heads as usize)),
        }
    }

    /// Rows i and i + half of each head as neighbours.
    fn pairs(&self, tensor: &TensorInfo, heads: usize) -> Result<WeightView, ConvertError> {
        let rows = tensor.shape.first().copied().unwrap_or(0);
        let columns: usize = tensor.shape.iter().skip(1).product();
        let width = rows / heads;
        if width * heads != rows || !width.is_multiple_of(2) {
            let (file, tensor) = (self.checkpoint.label(), tensor.name.clone());
            return Err(ConvertError::OddHeads { file, tensor, rows, heads });
        }
        let half = width / 2;
        Ok(WeightView {
            tensor: tensor.name.clone(),
            offset: 0,
            shape: vec![heads, half, 2, columns],
            strides: vec![width * columns, columns, half * columns, 1],
        })
    }

    /// A tensor from views of others, all of one's format.
    fn made(
        &self,
        name: String,
        of: &TensorInfo,
        shape: Vec<usize>,
        views: Vec<WeightView>,
    ) -> Result<ConvertedTensor, ConvertError> {
        let format = self.checkpoint.format(of)?;
        self.converted(WeightBinding { name, format, shape, source: WeightSource::Stored(views) })
    }

    fn converted(&self, binding: WeightBinding) -> Result<ConvertedTensor, ConvertError> {
        binding.check(self.checkpoint)?;
        let name = binding.name.as_str();
        let packed = matches!(binding.source, WeightSource::PackedMxfp4 { .. });
        // What computes with such files wants routers in f32 as well.
        let kept = !is_quantized(name, binding.shape.len()) || name.ends_with("ffn_gate_inp_shexp.weight");
        let to = match (packed, kept) {
            (true, _) => GgmlType(Format::MXFP4.info().ggml_type),
            (false, true) => GgmlType(Format::F32.info().ggml_type),
            (false, false) => self.matrices,
        };
        let offset = if self.family.whole_norms && name.ends_with("_norm.weight") { 1.0 } else { 0.0 };
        let shape = binding.shape.iter().map(|&n| n as u64).collect();
        Ok(ConvertedTensor { shape, to, binding, offset })
    }

    /// The three tensors of all experts of a layer, by the names of their own: down, gate, up, or as the family orders
    /// its letters.
    fn stack(
        &self,
        layer: u32,
        of_layer: &[(ExpertMatrixName, &TensorInfo)],
        out: &mut Vec<ConvertedTensor>,
    ) -> Result<(), ConvertError> {
        let mut parts: Vec<&'static str> = Vec::new();
        of_layer.iter().map(|(matrix, _)| matrix.part).for_each(|part| {
            if !parts.contains(&part) {
                parts.push(part);
            }
        });
        for part in parts {
            let mut of_part: Vec<_> = of_layer.iter().filter(|(matrix, _)| matrix.part == part).collect();
            of_part.sort_by_key(|(matrix, _)| matrix.expert);
            let first = of_part[0].1;
            let odd = of_part
                .iter()
                .zip(0u32..)
                .find(|((matrix, tensor), expert)| matrix.expert != *expert || tensor.shape != first.shape);
            if let Some(((_, tensor), _)) = odd {
                let (file, tensor) = (self.checkpoint.label(), tensor.name.clone());
                return Err(ConvertError::OddExpert { file, tensor });
            }
            let shape = [&[of_part.len()], first.shape.as_slice()].concat();
            let view = |tensor: &TensorInfo| WeightView::dense(tensor.name.clone(), 0, tensor.shape.clone());
            let views = of_part.iter().map(|(_, tensor)| view(tensor)).collect();
            out.push(self.made(stacked_experts(layer, part, "weight"), first, shape, views)?);
        }
        Ok(())
    }

    /// The tensors of gates, ups and downs of gpt-oss, whose experts are stacked and transposed or packed already; whether
    /// `hf` is one of theirs.
    fn fused_experts(
        &self,
        hf: &str,
        tensor: &TensorInfo,
        out: &mut Vec<ConvertedTensor>,
    ) -> Result<bool, ConvertError> {
        let name = hf.strip_prefix("model.layers.").and_then(|rest| rest.split_once(".mlp.experts."));
        let Some((layer, name)) = name.and_then(|(layer, name)| Some((layer.parse::<u32>().ok()?, name))) else {
            return Ok(false);
        };
        let parts: &[(&str, TakenOutputs)] = match name {
            _ if name.starts_with("gate_up_proj") => &[("gate", TakenOutputs::EVEN), ("up", TakenOutputs::ODD)],
            _ if name.starts_with("down_proj") => &[("down", TakenOutputs::ALL)],
            _ => return Ok(false),
        };
        // Scales go with their codes.
        if name.ends_with("_scales") {
            return Ok(true);
        }
        for (part, taken) in parts {
            out.push(match name.rsplit_once('_').map_or("", |(_, end)| end) {
                "bias" => self.expert_bias(layer, part, tensor, *taken)?,
                "blocks" => self.packed_experts(layer, part, tensor, *taken)?,
                _ => self.transposed_experts(layer, part, tensor, *taken)?,
            });
        }
        Ok(true)
    }

    fn shaped<const N: usize>(&self, tensor: &TensorInfo) -> Result<[usize; N], ConvertError> {
        tensor.shape.as_slice().try_into().map_err(|_| ConvertError::Dimensions {
            file: self.checkpoint.label(),
            tensor: tensor.name.clone(),
            found: tensor.shape.len(),
            expected: N,
        })
    }

    fn expert_bias(
        &self,
        layer: u32,
        part: &str,
        tensor: &TensorInfo,
        TakenOutputs { first, step }: TakenOutputs,
    ) -> Result<ConvertedTensor, ConvertError> {
        let [experts, all] = self.shaped(tensor)?;
        let shape = vec![experts, all / step];
        let view =
            WeightView { tensor: tensor.name.clone(), offset: first, shape: shape.clone(), strides: vec![all, step] };
        self.made(stacked_experts(layer, part, "bias"), tensor, shape, vec![view])
    }

    /// Experts stored `[experts, in, out]`, of which the file has `[experts, out, in]`.
    fn transposed_experts(
        &self,
        layer: u32,
        part: &str,
        tensor: &TensorInfo,
        TakenOutputs { first, step }: TakenOutputs,
    ) -> Result<ConvertedTensor, ConvertError> {
        let [experts, inner, all] = self.shaped(tensor)?;
        let shape = vec![experts, all / step, inner];
        let strides = vec![inner * all, step, all];
        let view = WeightView { tensor: tensor.name.clone(), offset: first, shape: shape.clone(), strides };
        self.made(stacked_experts(layer, part, "weight"), tensor, shape, vec![view])
    }

    /// Experts whose codes and exponents are in two tensors of bytes.
    fn packed_experts(
        &self,
        layer: u32,
        part: &str,
        tensor: &TensorInfo,
        TakenOutputs { first, step }: TakenOutputs,
    ) -> Result<ConvertedTensor, ConvertError> {
        let [experts, all, blocks, bytes] = self.shaped(tensor)?;
        let scales = self.checkpoint.require(&format!("{}scales", tensor.name.trim_end_matches("blocks")))?;
        if bytes != 16 || scales.shape != [experts, all, blocks] || tensor.dtype != StoredType::U8 {
            let (file, tensor) = (self.checkpoint.label(), tensor.name.clone());
            return Err(ConvertError::OddExpert { file, tensor });
        }
        let view = |tensor: &TensorInfo, row: usize| WeightView {
            tensor: tensor.name.clone(),
            offset: first * row,
            shape: vec![experts, all / step, row],
            strides: vec![all * row, step * row, 1],
        };
        let (name, shape) = (stacked_experts(layer, part, "weight"), vec![experts, all / step, blocks * 32]);
        let source = WeightSource::PackedMxfp4 { blocks: view(tensor, blocks * 16), scales: view(scales, blocks) };
        self.converted(WeightBinding { name, format: Format::MXFP4, shape, source })
    }
}
