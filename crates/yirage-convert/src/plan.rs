//! Which format each tensor gets: the choices of llama.cpp's `llama-quant`, tensor by tensor in the order in which it writes
//! them.

use crate::encode::{encoder, named};
use crate::error::ConvertError;
use crate::gguf_writer::TensorEntry;
use crate::importances::Importances;
use crate::mix::Mix;
use crate::tensor_role::{TensorRole, is_quantized, layer};
use yirage_model::gguf::{GgmlType, Gguf, GgufArray, GgufTensor, GgufValue};

/// What may be said beside a mix.
#[derive(Clone, Debug, Default)]
pub struct QuantizeOptions {
    /// Tensors that are quantised already may be quantised again.
    pub allow_requantize: bool,
    /// All tensors that are quantised get the mix's own format.
    pub pure: bool,
    /// The matrix of the logits stays as it is.
    pub leave_output: bool,
    /// The format of the matrix of the logits.
    pub output_format: Option<String>,
    /// The format of the token embeddings.
    pub embedding_format: Option<String>,
}

/// A tensor and what becomes of it.
#[derive(Clone, PartialEq, Debug)]
pub struct TensorPlan {
    /// Its name.
    pub name: String,
    /// Dimensions, outermost first, without outer ones.
    pub shape: Vec<u64>,
    /// The format that it has.
    pub from: GgmlType,
    /// The format that it gets.
    pub to: GgmlType,
    /// The format that its columns could not be divided for.
    pub fell_back_from: Option<GgmlType>,
    /// Whether importances choose its scales.
    pub important: bool,
    pub(crate) source: std::ops::Range<u64>,
}

impl TensorPlan {
    /// Numbers in a row.
    pub fn columns(&self) -> u64 {
        self.shape.last().copied().unwrap_or(1)
    }

    /// Number of rows.
    pub fn rows(&self) -> u64 {
        self.shape.iter().rev().skip(1).product()
    }

    /// What the new file's table says of it.
    pub(crate) fn entry(&self) -> TensorEntry<'_> {
        TensorEntry { name: &self.name, shape: &self.shape, ty: self.to, bytes: self.bytes() }
    }

    /// How many importances it has: one for each column of each expert.
    pub(crate) fn importances(&self) -> u64 {
        let experts = self.shape.iter().rev().nth(2).copied().unwrap_or(1);
        self.columns() * experts
    }

    /// Bytes of its data in the file that is read.
    pub fn bytes_before(&self) -> u64 {
        self.source.end - self.source.start
    }

    /// Bytes of its data in the new file.
    pub fn bytes(&self) -> u64 {
        match self.to.block() {
            Some((block, bytes)) if self.from != self.to => self.rows() * (self.columns() / block * bytes),
            _ => self.bytes_before(),
        }
    }
}

/// What becomes of a file.
#[derive(Clone, Debug)]
pub struct QuantizePlan {
    /// The mix.
    pub mix: Mix,
    /// Tensors, in the order of the new file.
    pub tensors: Vec<TensorPlan>,
}

impl QuantizePlan {
    /// Chooses a format for every tensor.
    ///
    /// # Errors
    /// A part of a file in several; tensors that are quantised already; formats that are not read or written; a mix that
    /// needs importances without them.
    pub fn new(
        gguf: &Gguf,
        mix: Mix,
        options: &QuantizeOptions,
        importances: Option<&Importances>,
    ) -> Result<QuantizePlan, ConvertError> {
        whole(gguf)?;
        let mut tensors: Vec<&GgufTensor> = gguf.tensors().iter().collect();
        tensors.sort_by(|a, b| (layer(&a.name), &a.name).cmp(&(layer(&b.name), &b.name)));
        let mut chooser = Chooser::new(gguf, mix, options, importances.is_some())?;
        let plan = |tensor: &&GgufTensor| chooser.plan(tensor, importances);
        Ok(QuantizePlan { mix, tensors: tensors.iter().map(plan).collect::<Result<_, _>>()? })
    }

    /// Bytes of all tensors before.
    pub fn bytes_before(&self) -> u64 {
        self.tensors.iter().map(TensorPlan::bytes_before).sum()
    }

    /// Bytes of all tensors after.
    pub fn bytes_after(&self) -> u64 {
        self.tensors.iter().map(TensorPlan::bytes).sum()
    }
}

fn whole(gguf: &Gguf) -> Result<(), ConvertError> {
    let of = gguf.get("split.count").and_then(GgufValue::as_int).unwrap_or(1);
    if of <= 1 {
        return Ok(());
    }
    let part = gguf.get("split.no").and_then(GgufValue::as_int).unwrap_or(0) + 1;
    Err(ConvertError::Split { file: gguf.name().to_owned(), part, of })
}

/// What the choice depends on beside a tensor, and how far it has come.
struct Chooser<'a> {
    file: &'a str,
    mix: Mix,
    options: &'a QuantizeOptions,
    output_format: Option<GgmlType>,
    embedding_format: Option<GgmlType>,
    has_importances: bool,
    is_falcon: bool,
    /// A Llama of 80 layers whose queries share keys: its values are small, and get more bits.
    values_are_small: bool,
    /// Whether token embeddings are the matrix of the logits as well.
    tied: bool,
    experts: u64,
    queries_a_key: u64,
    layers: u32,
    values: u32,
    values_seen: u32,
    downs_seen: u32,
}

impl<'a> Chooser<'a> {
    fn new(
        gguf: &'a Gguf,
        mix: Mix,
        options: &'a QuantizeOptions,
        has_importances: bool,
    ) -> Result<Chooser<'a>, ConvertError> {
        let number = |key: &str| gguf.arch_key(key).and_then(first_number);
        let (heads, kv_heads) = (number("attention.head_count"), number("attention.head_count_kv"));
        let queries_a_key = match (heads, kv_heads.or(heads)) {
            (Some(heads), Some(kv_heads)) if kv_heads > 0 => heads / kv_heads,
            _ => 0,
        };
        let layers = number("block_count").and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
        let architecture = gguf.architecture().unwrap_or_default();
        let values = gguf.tensors().iter().filter(|t| TensorRole::of(&t.name).is_like_values()).count();
        Ok(Chooser {
            file: gguf.name(),
            mix,
            options,
            output_format: options.output_format.as_deref().map(format_named).transpose()?,
            embedding_format: options.embedding_format.as_deref().map(format_named).transpose()?,
            has_importances,
            is_falcon: architecture == "falcon",
            values_are_small: layers == 80
                && (architecture == "llama" && queries_a_key > 1 || matches!(architecture, "qwen2" | "deci" | "olmo")),
            tied: !gguf.tensors().iter().any(|t| t.name == "output.weight"),
            experts: number("expert_count").unwrap_or(0),
            queries_a_key,
            layers,
            values: values as u32,
            values_seen: 0,
            downs_seen: 0,
        })
    }

    fn plan(&mut self, tensor: &GgufTensor, importances: Option<&Importances>) -> Result<TensorPlan, ConvertError> {
        let shape: Vec<u64> = tensor.shape.iter().copied().skip_while(|&dim| dim == 1).collect();
        let kept =
            !is_quantized(&tensor.name, shape.len()) || self.options.leave_output && tensor.name == "output.weight";
        let wanted = if kept { tensor.ty } else { self.choose(tensor, &shape) };
        let mut plan = TensorPlan {
            name: tensor.name.clone(),
            shape: if shape.is_empty() { vec![1] } else { shape },
            from: tensor.ty,
            to: wanted,
            fell_back_from: None,
            important: false,
            source: tensor.range.clone(),
        };
        if !kept && self.mix.ggml_type().format().is_none_or(|f| f.info().block > 1) {
            plan.to = fitting(wanted, plan.columns());
            plan.fell_back_from = (plan.to != wanted).then_some(wanted);
        }
        if plan.from != plan.to {
            self.check(&plan)?;
            plan.important = self.has_importances_of(&plan, importances)?;
        }
        Ok(plan)
    }

    /// Whether it can be read, may be quantised, and can be written.
    fn check(&self, plan: &TensorPlan) -> Result<(), ConvertError> {
        let (file, tensor, found) = (self.file.to_owned(), plan.name.clone(), plan.from.to_string());
        let Some(format) = plan.from.format() else {
            return Err(ConvertError::Unreadable { file, tensor, found });
        };
        if format.info().block > 1 && !self.options.allow_requantize {
            return Err(ConvertError::Requantized { file, tensor, found, wanted: plan.to.to_string() });
        }
        Ok(())
    }

    fn has_importances_of(&self, plan: &TensorPlan, all: Option<&Importances>) -> Result<bool, ConvertError> {
        let found = match all.map(|all| all.of(&plan.name, plan.importances())) {
            // Those of token embeddings are of what they are chosen by, not multiplied with.
            Some(Err(ConvertError::ImportanceCount { .. })) if is_embedding(&plan.name) => false,
            Some(found) => found?.is_some(),
            None => false,
        };
        let needs = self.mix.is(&["Q2_K_S"])
            && plan.to.name() == Some("Q2_K")
            && !matches!(TensorRole::of(&plan.name), TensorRole::Output | TensorRole::TokenEmbedding);
        if needs && !found {
            let (tensor, format) = (plan.name.clone(), plan.to.to_string());
            return Err(ConvertError::NeedsImportances { mix: self.mix.name, tensor, format });
        }
        Ok(found)
    }

    fn choose(&mut self, tensor: &GgufTensor, shape: &[u64]) -> GgmlType {
        let role = TensorRole::of(&tensor.name);
        match (role, self.output_format, self.embedding_format) {
            (TensorRole::TokenEmbedding, _, Some(format)) | (TensorRole::Output, Some(format), _) => return format,
            _ => {}
        }
        let usual = self.mix.ggml_type();
        let is_float = usual.format().is_some_and(|f| f.info().block == 1);
        if is_float || self.options.pure {
            return usual;
        }
        let name = self.mixed(role, &tensor.name, shape);
        name.and_then(named).unwrap_or(usual)
    }

    /// The format that a mix gives a tensor of this role, where that is not its usual one.
    fn mixed(&mut self, role: TensorRole, name: &str, shape: &[u64]) -> Option<&'static str> {
        let columns = shape.last().copied().unwrap_or(1);
        if role == TensorRole::Output || self.tied && role == TensorRole::TokenEmbedding {
            if let Some(format) = self.output_format {
                return format.name();
            }
            return self.logits(columns);
        }
        if self.mix.is(&["MXFP4_MOE"]) {
            return Some(if shape.len() > 2 { "MXFP4" } else { "Q8_0" });
        }
        match role {
            role if role.is_like_values() => Some(self.values()),
            TensorRole::AttentionKey if self.experts == 8 => Some("Q8_0"),
            TensorRole::FeedForwardDown => self.down(name),
            TensorRole::AttentionOutput => self.attention_output(),
            _ => None,
        }
    }

    fn logits(&self, columns: u64) -> Option<&'static str> {
        let block = self.mix.ggml_type().block().map_or(1, |(block, _)| block);
        let eight = self.mix.is(&["MXFP4_MOE", "Q8_0"]) || self.is_falcon || !columns.is_multiple_of(block);
        Some(if eight { "Q8_0" } else { "Q6_K" })
    }

    fn values(&mut self) -> &'static str {
        let at = self.values_seen;
        self.values_seen += 1;
        let shared = self.queries_a_key >= 4;
        let usual = self.mix.format;
        let mut format = match self.mix.name {
            "Q2_K" => {
                if shared {
                    "Q4_K"
                } else {
                    "Q3_K"
                }
            }
            "Q2_K_S" if shared => "Q4_K",
            "Q3_K_M" => {
                if at < 2 {
                    "Q5_K"
                } else {
                    "Q4_K"
                }
            }
            "Q3_K_L" => "Q5_K",
            "IQ4_NL" | "IQ4_XS" if shared => "Q5_K",
            "Q4_K_M" | "Q5_K_M" if more_bits(at, self.values) => "Q6_K",
            "Q4_K_S" if at < 4 => "Q5_K",
            _ => usual,
        };
        if self.values_are_small && matches!(format, "Q3_K" | "Q4_K") {
            format = "Q5_K";
        }
        if self.experts == 8 { "Q8_0" } else { format }
    }

    fn down(&mut self, name: &str) -> Option<&'static str> {
        let seen = self.downs_seen;
        self.downs_seen += 1;
        // Layers of experts do not follow each other in the file.
        let at = if self.experts > 1 { layer(name)? } else { seen };
        let layers = self.layers;
        match self.mix.name {
            "Q2_K" => Some("Q3_K"),
            "Q2_K_S" if at < layers / 8 => Some("Q4_K"),
            "Q3_K_M" if at < layers / 16 => Some("Q5_K"),
            "Q3_K_M" if !self.is_falcon || more_bits(at, layers) => Some("Q4_K"),
            "Q3_K_L" => Some(if self.is_falcon { "Q4_K" } else { "Q5_K" }),
            "Q4_K_M" if self.is_falcon && at < layers / 16 => Some("Q6_K"),
            "Q4_K_M" if self.is_falcon => more_bits(at, layers).then_some("Q5_K"),
            "Q4_K_M" | "Q5_K_M" => more_bits(at, layers).then_some("Q6_K"),
            "IQ4_NL" | "IQ4_XS" if at < layers / 8 && !self.has_importances => Some("Q5_K"),
            "Q4_K_S" if !self.is_falcon && at < layers / 8 => Some("Q5_K"),
            // Importances can make these scales much too large in the first layers.
            "Q4_0" if self.has_importances && at < layers / 8 => Some("Q4_1"),
            "Q5_0" if self.has_importances && at < layers / 8 => Some("Q5_1"),
            _ => None,
        }
    }

    fn attention_output(&self) -> Option<&'static str> {
        if self.is_falcon {
            return self.mix.is(&["Q3_K_L"]).then_some("Q4_K");
        }
        if self.experts == 8 {
            let few = ["Q2_K", "Q3_K_S", "Q3_K_M", "IQ4_NL", "Q4_K_S", "Q4_K_M", "IQ4_XS"];
            return self.mix.is(&few).then_some("Q5_K");
        }
        match self.mix.name {
            "Q2_K" => Some("Q3_K"),
            "Q3_K_M" => Some("Q4_K"),
            "Q3_K_L" => Some("Q5_K"),
            _ => None,
        }
    }
}

fn is_embedding(name: &str) -> bool {
    TensorRole::of(name) == TensorRole::TokenEmbedding
}

/// The layers that get more bits: the first and last eighth, and every third between.
fn more_bits(at: u32, layers: u32) -> bool {
    at < layers / 8 || at >= 7 * layers / 8 || (at - layers / 8) % 3 == 2
}

/// The format itself, or one whose blocks divide the columns.
fn fitting(format: GgmlType, columns: u64) -> GgmlType {
    let divides = |format: GgmlType| format.block().is_some_and(|(block, _)| columns.is_multiple_of(block));
    if divides(format) {
        return format;
    }
    let shorter = match format.name() {
        Some("IQ4_XS") => "IQ4_NL",
        Some("Q2_K" | "Q3_K") => "Q4_0",
        Some("Q4_K") => "Q5_0",
        Some("Q5_K") => "Q5_1",
        Some("Q6_K") => "Q8_0",
        _ => "F16",
    };
    let f16 = GgmlType(1);
    named(shorter).filter(|&format| divides(format)).unwrap_or(f16)
}

/// A format by the name that options give it, in any case.
fn format_named(name: &str) -> Result<GgmlType, ConvertError> {
    let upper = name.to_ascii_uppercase();
    named(&upper).filter(|ty| encoder(*ty).is_some()).ok_or_else(|| {
        let known = (0..64).map(GgmlType).filter(|ty| encoder(*ty).is_some()).filter_map(GgmlType::name);
        ConvertError::UnknownFormat { name: name.to_owned(), known: known.collect::<Vec<_>>().join(", ") }
    })
}

/// A number, or the first of an array of one for each layer.
fn first_number(value: &GgufValue) -> Option<u64> {
    let number = value.as_array().and_then(|array: &GgufArray| array.get(0));
    number.as_ref().unwrap_or(value).as_int().and_then(|n| u64::try_from(n).ok())
}
