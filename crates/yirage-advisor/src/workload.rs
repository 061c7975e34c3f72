//! The ops that are timed, each as a graph of its own with everything it reads.
//!
//! Knows no device: what a target makes of these graphs is the compiler's matter.

use crate::error::AdvisorError;
use std::sync::Arc;
use yirage_compile::CompileOptions;
use yirage_hal::Record;
use yirage_ir::cost::SequenceSpan;
use yirage_ir::op::{Attention, Contract, Linear, RmsNorm, Softmax};
use yirage_ir::rng::Rng;
use yirage_ir::{DType, Dims, F32, Format, GraphBuilder, Op, Sym, Type, ValueId};
use yirage_plan::Precision;
use yirage_tune::{CacheInput, PreparedGraph};

/// How large the ops are: sizes of a model's layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BenchmarkSizes {
    /// Elements of a token between layers.
    pub hidden: u32,
    /// Elements of a token inside a layer.
    pub inner: u32,
    /// Tokens of a prompt's step.
    pub tokens: u32,
    /// Positions that one token attends to.
    pub positions: u32,
    /// Query heads.
    pub heads: u32,
    /// Key and value heads.
    pub kv_heads: u32,
    /// Elements of a head.
    pub head: u32,
}

impl BenchmarkSizes {
    /// Those of Qwen2.5 1.5B.
    pub const MODEL: BenchmarkSizes =
        BenchmarkSizes { hidden: 1536, inner: 8960, tokens: 128, positions: 1024, heads: 12, kv_heads: 2, head: 128 };
}

/// Positions of a block of the cache that attention reads: every device has such.
const BLOCK: u32 = 32;

/// An op, and everything it reads.
pub(crate) struct OpWorkload {
    /// The op.
    pub(crate) op: Op,
    /// Its sizes in words.
    pub(crate) shape: String,
    /// The op alone, with everything that it reads.
    pub(crate) prepared: PreparedGraph,
    /// The sequence of a step.
    pub(crate) span: SequenceSpan,
}

/// An op of these sizes.
pub(crate) type Make = fn(&BenchmarkSizes) -> Result<OpWorkload, AdvisorError>;

/// The ops that a benchmark times, by name.
pub(crate) const ALL: [(&str, Make); 6] = [
    ("linear", |sizes| linear(sizes, 1)),
    ("linear", |sizes| linear(sizes, sizes.tokens)),
    ("contract", contract),
    ("rms_norm", rms_norm),
    ("softmax", softmax),
    ("attention", attention),
];

/// The smallest step there is: a softmax of a few elements.
pub(crate) fn smallest() -> Result<OpWorkload, AdvisorError> {
    softmax_of(1, 32)
}

/// A product with 8-bit weights, as decoding (one token) and prefill have it.
fn linear(sizes: &BenchmarkSizes, tokens: u32) -> Result<OpWorkload, AdvisorError> {
    let (n, k) = (sizes.inner, sizes.hidden);
    let format = Format::Q8_0;
    let encode = format.info().encode.ok_or(AdvisorError::NoEncoder(format))?;
    let mut making = OpWorkloadBuilder::new(tokens, Precision::Fast);
    let x = making.floats("x", Type::rows(Sym::Tokens, k))?;
    let ty = Type::new(format.into(), [n, k]);
    let mut blocks = vec![0; ty.bytes(&making.dims)];
    encode(&making.numbers(ty.elems(&making.dims)), &mut blocks);
    let w = making.weight("w", ty, blocks)?;
    making.finish(Linear { groups: 1 }, &[x, w], format!("{tokens} x {k} by {n} x {k} q8_0"))
}

/// A product of two computed matrices.
fn contract(sizes: &BenchmarkSizes) -> Result<OpWorkload, AdvisorError> {
    let (m, k) = (sizes.tokens, sizes.hidden);
    let mut making = OpWorkloadBuilder::new(m, Precision::Exact);
    let a = making.floats("a", Type::rows(Sym::Tokens, k))?;
    let b = making.floats("b", Type::rows(k, k))?;
    making.finish(Contract {}, &[a, b], format!("{m} x {k} by {k} x {k} f32"))
}

fn rms_norm(sizes: &BenchmarkSizes) -> Result<OpWorkload, AdvisorError> {
    let (tokens, width) = (sizes.tokens, sizes.hidden);
    let mut making = OpWorkloadBuilder::new(tokens, Precision::Exact);
    let x = making.floats("x", Type::rows(Sym::Tokens, width))?;
    let ty = Type::new(DType::F32, [width]);
    let ones = vec![1.0f32; width as usize].into_iter().flat_map(f32::to_le_bytes).collect();
    let w = making.weight("w", ty, ones)?;
    let op = RmsNorm { eps: F32(1e-6), width, unit_offset: false };
    making.finish(op, &[x, w], format!("{tokens} x {width} f32"))
}

fn softmax(sizes: &BenchmarkSizes) -> Result<OpWorkload, AdvisorError> {
    softmax_of(sizes.tokens, sizes.positions)
}

fn softmax_of(rows: u32, width: u32) -> Result<OpWorkload, AdvisorError> {
    let mut making = OpWorkloadBuilder::new(rows, Precision::Exact);
    let x = making.floats("x", Type::rows(Sym::Tokens, width))?;
    making.finish(Softmax {}, &[x], format!("{rows} x {width} f32"))
}

/// One token over what is cached, as decoding has it.
fn attention(sizes: &BenchmarkSizes) -> Result<OpWorkload, AdvisorError> {
    let (heads, kv_heads, head) = (sizes.heads, sizes.kv_heads, sizes.head);
    let last = sizes.positions.saturating_sub(1);
    let blocks = sizes.positions.div_ceil(BLOCK);
    let mut making = OpWorkloadBuilder::new(1, Precision::Exact);
    making.dims.blocks = blocks;
    making.span.start = last;
    let q = making.floats("q", Type::rows(Sym::Tokens, heads * head))?;
    let block = Type::new(Format::BF16.into(), [BLOCK, kv_heads, 2 * head]);
    let state = making.cache("cache", CacheInput { block, k_width: head, blocks })?;
    let per_token = || Type::new(DType::I32, [Sym::Tokens]);
    let positions = making.step_input("positions", per_token(), Record::of(&[last]))?;
    let seqs = making.step_input("seqs", per_token(), Record::of(&[0u32]))?;
    let table: Vec<u32> = (0..blocks).collect();
    let table = making.step_input("table", Type::new(DType::I32, [Sym::Seqs, Sym::Blocks]), Record::of(&table))?;
    let op = Attention {
        heads,
        kv_heads,
        k_width: head,
        v_width: head,
        scale: F32((head as f32).sqrt().recip()),
        softcap: F32(0.0),
        window: 0,
        causal: true,
        cached: true,
        v_in_k: false,
    };
    let shape = format!("1 token, {} positions, {heads} heads of {head}, {kv_heads} cached in bf16", sizes.positions);
    making.finish(op, &[q, state, positions, seqs, table], shape)
}

/// A workload in the making.
struct OpWorkloadBuilder {
    builder: GraphBuilder,
    random: Rng,
    weights: Vec<(String, Vec<u8>)>,
    step_inputs: Vec<(String, Arc<Record>)>,
    cache: Option<(String, CacheInput)>,
    dims: Dims,
    span: SequenceSpan,
    precision: Precision,
}

impl OpWorkloadBuilder {
    /// Of one sequence with so many tokens.
    fn new(tokens: u32, precision: Precision) -> OpWorkloadBuilder {
        OpWorkloadBuilder {
            builder: GraphBuilder::new("timed"),
            random: Rng::new(1),
            weights: Vec::new(),
            step_inputs: Vec::new(),
            cache: None,
            dims: Dims { tokens, seqs: 1, blocks: 1, rows: 1 },
            span: SequenceSpan { start: 0, tokens, rows: 1 },
            precision,
        }
    }

    /// Numbers from -1 to 1.
    fn numbers(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.random.signed_f32()).collect()
    }

    /// A slot of random floats.
    fn floats(&mut self, name: &str, ty: Type) -> Result<ValueId, AdvisorError> {
        let record = Record::of(&self.numbers(ty.elems(&self.dims)));
        self.step_input(name, ty, record)
    }

    fn step_input(&mut self, name: &str, ty: Type, record: Record) -> Result<ValueId, AdvisorError> {
        self.step_inputs.push((name.to_owned(), Arc::new(record)));
        Ok(self.builder.step_input(name, ty)?)
    }

    fn weight(&mut self, name: &str, ty: Type, bytes: Vec<u8>) -> Result<ValueId, AdvisorError> {
        self.weights.push((name.to_owned(), bytes));
        Ok(self.builder.weight(name, ty)?)
    }

    fn cache(&mut self, name: &str, cache: CacheInput) -> Result<ValueId, AdvisorError> {
        let id = self.builder.kv_cache(name, cache.block.clone())?;
        self.cache = Some((name.to_owned(), cache));
        Ok(id)
    }

    fn finish(mut self, op: impl Into<Op>, ins: &[ValueId], shape: String) -> Result<OpWorkload, AdvisorError> {
        let op = op.into();
        let made = self.builder.op("y", op.clone(), ins)?;
        self.builder.output(made);
        Ok(OpWorkload {
            op,
            shape,
            prepared: PreparedGraph {
                graph: self.builder.finish(),
                weights: self.weights,
                step_inputs: self.step_inputs,
                cache: self.cache,
                dims: self.dims,
                options: CompileOptions::new(self.precision),
            },
            span: self.span,
        })
    }
}
