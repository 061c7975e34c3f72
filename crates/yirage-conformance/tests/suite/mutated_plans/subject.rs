//! Sound plans with everything they read, and what they give.

use std::collections::HashMap;
use std::sync::Arc;
use yirage_compile::{CompileOptions, compile, plan_weights};
use yirage_cpu::Cpu;
use yirage_hal::{Backend, Bindings, Device, Executor, HalError, OpenOptions};
use yirage_ir::op::Sample;
use yirage_ir::{DType, Dims, Format, Graph, GraphBuilder, Type, ValueSource, text};
use yirage_plan::{Plan, Precision, Target, VerifiedPlan, WeightEntry};

/// The sizes of the steps that are run.
const DIMS: Dims = Dims { tokens: 5, seqs: 1, blocks: 2, rows: 2 };
/// Blocks of each state.
const BLOCKS: usize = 4;

/// A sound plan.
pub(crate) struct Subject {
    pub(crate) name: String,
    pub(crate) target: Target,
    pub(crate) plan: Plan,
    pub(crate) text: String,
    /// The bits of the outputs of the sound plan.
    pub(crate) wanted: Vec<Vec<u32>>,
    device: Arc<dyn Device>,
    bindings: Bindings,
}

const GRAPHS: &[&str] = &[
    include_str!("../../../../yirage-plan/tests/work/layer.txt"),
    r#"graph experts { input %x: f32[Tokens, 64] weight %router: f32[4, 64] weight %shared: q4_0[96, 64]
     weight %gate: q4_0[4, 64, 64] weight %up: q8_0[4, 64, 64] weight %down: q8_0[4, 64, 64]
     %l = linear{groups=1}(%x, %router): f32[Tokens, 4] %s = linear{groups=1}(%x, %shared): f32[Tokens, 96]
     %w, %e = route{top_k=2, scoring=softmax, normalize=true, scale=1.0, groups=1, top_groups=1}(%l): f32[Tokens, 2], i32[Tokens, 2]
     %g = expert_linear{top_k=2, shared=true}(%x, %gate, %e): f32[Tokens, 128]
     %u = expert_linear{top_k=2, shared=true}(%x, %up, %e): f32[Tokens, 128] %h = map{expr="mul(silu(x0), x1)"}(%g, %u): f32[Tokens, 128]
     %d = expert_linear{top_k=2, shared=false}(%h, %down, %e): f32[Tokens, 128]
     %y = expert_sum{top_k=2}(%d, %w): f32[Tokens, 64] output %y, %s }"#,
    "graph fork { input %x: f32[Tokens, 64] weight %a: f32[64, 64] weight %b: bf16[64, 64] weight %n: f32[64]
     %s = softmax(%x): f32[Tokens, 64] %l = linear{groups=1}(%s, %a): f32[Tokens, 64]
     %m = linear{groups=1}(%x, %b): f32[Tokens, 64] %r = rms_norm{eps=1e-5, width=32, unit_offset=false}(%l): f32[Tokens, 64]
     %h = hadamard{part=32}(%m): f32[Tokens, 64] %v, %i = top_k{k=3, largest=true, sorted=true}(%h): f32[Tokens, 3], i32[Tokens, 3]
     output %r, %v, %i }",
    "graph own { input %q: f32[Tokens, 32] input %k: f32[Tokens, 32] input %positions: i32[Tokens] input %seqs: i32[Tokens]
     weight %sinks: f32[2]
     %a = attention{heads=2, kv_heads=2, k_width=16, v_width=16, scale=0.25, softcap=0.0, window=3, causal=true, cached=false, v_in_k=false}(%q, %k, %k, %positions, %seqs, %sinks): f32[Tokens, 32]
     output %a }",
];

/// All of them, in both precisions and with one worker and two.
pub(crate) fn subjects() -> Vec<Subject> {
    let mut graphs: Vec<Graph> = GRAPHS.iter().map(|g| text::parse(g).unwrap()).collect();
    graphs.push(sampling());
    let mut subjects = Vec::new();
    for threads in [1, 2] {
        let (device, _) =
            Cpu.open(0, &OpenOptions { threads: Some(threads), guarded: true, ..OpenOptions::default() }).unwrap();
        for (graph, precision) in graphs.iter().flat_map(|g| [(g, Precision::Exact), (g, Precision::Fast)]) {
            subjects.push(Subject::new(&device, graph, precision));
        }
    }
    subjects
}

fn sampling() -> Graph {
    let op = Sample { draw: true, mask: true, bias: false, penalties: false, logprobs: true, top: 2 };
    let mut b = GraphBuilder::new("sample");
    let ins: Vec<_> = op.inputs().into_iter().map(|s| b.step_input(s.name(), s.ty(40)).unwrap()).collect();
    let outs = b.op_multi(&["token", "fault", "logprob", "top", "top_logprob"], op, &ins).unwrap();
    outs.into_iter().for_each(|o| b.output(o));
    b.finish()
}

impl Subject {
    fn new(device: &Arc<dyn Device>, graph: &Graph, precision: Precision) -> Subject {
        let target = device.target();
        let weights = plan_weights(graph, &target).unwrap();
        let bucket = Dims { tokens: 8, seqs: 2, blocks: 3, rows: 4 };
        let plan = compile(graph, bucket, &target, &weights, &CompileOptions::new(precision)).unwrap();
        let mut bindings = Bindings::default();
        for entry in &weights.entries {
            let mut sink = device.weight(entry).unwrap();
            sink.write_rows(0, &bytes(entry)).unwrap();
            bindings.weights.insert(entry.name.clone(), sink.finish().unwrap());
        }
        let mut made = Subject {
            name: format!("{} {precision} {}", graph.name, target.workers),
            text: yirage_plan::text::print(&plan),
            plan: plan.clone().into_plan(),
            target,
            wanted: Vec::new(),
            device: device.clone(),
            bindings,
        };
        made.wanted = made.run(&plan).unwrap();
        made
    }

    /// Whether a plan says the same as the sound one of the step that is run: only where and in which order it is computed
    /// differs.
    pub(crate) fn says_the_same(&self, plan: &Plan) -> bool {
        let said = |p: &Plan| (p.graph.clone(), p.precision, p.weights.clone());
        DIMS.exceeds(&plan.bucket).is_none() && said(plan) == said(&self.plan)
    }

    /// One step by each of the plan's executors, from the same states; the bits of all outputs.
    pub(crate) fn run(&self, plan: &VerifiedPlan) -> Result<Vec<Vec<u32>>, HalError> {
        let mut first: Option<Vec<Vec<u32>>> = None;
        for program in &plan.programs {
            let bindings = Bindings { kv_caches: self.kv_caches(plan)?, ..self.bindings.clone() };
            let mut executor = Executor::new(&*self.device, plan, &bindings)?;
            executor.force(program.kind)?;
            let b = plan.bucket;
            let dims = Dims {
                tokens: DIMS.tokens.min(b.tokens),
                seqs: DIMS.seqs.min(b.seqs),
                blocks: DIMS.blocks.min(b.blocks),
                rows: DIMS.rows.min(b.rows),
            };
            for slot in plan.graph.inputs_of(ValueSource::StepInput).map(|id| plan.graph.value(id)) {
                executor.set(&slot.name, (0..slot.ty.elems(&dims)).map(|i| word(&slot.name, &slot.ty, i)));
            }
            executor.run(&dims)?;
            let made = plan.graph.outputs.iter().enumerate();
            let outputs = made.filter(|(_, id)| plan.graph.kv_cache_of(**id).is_none());
            let got: Vec<Vec<u32>> = outputs.map(|(i, _)| bits(&executor, i)).collect::<Result<_, _>>()?;
            assert!(first.as_ref().is_none_or(|first| *first == got), "{}: `{}` differs", self.name, program.kind);
            first.get_or_insert(got);
        }
        Ok(first.unwrap_or_default())
    }

    /// States of zeros.
    fn kv_caches(&self, plan: &Plan) -> Result<HashMap<String, yirage_hal::KvCacheHandle>, HalError> {
        let sound = &self.plan.graph;
        let states = plan.graph.inputs_of(ValueSource::KvCache).map(|id| plan.graph.value(id));
        let named =
            states.filter(|s| sound.find(&s.name).is_some_and(|id| sound.value(id).source == ValueSource::KvCache));
        let granted = named.map(|s| {
            let ty = sound.ty(sound.find(&s.name).unwrap());
            Ok((s.name.clone(), self.device.kv_cache(ty, ty.width().unwrap() as u32 / 2, BLOCKS)?))
        });
        granted.collect()
    }
}

fn bits(executor: &Executor, index: usize) -> Result<Vec<u32>, HalError> {
    let bytes = executor.outputs().bytes(index)?.1;
    Ok(bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect())
}

/// Element `i` of a slot: small numbers that are sound ids, positions, blocks and tokens.
fn word(name: &str, ty: &Type, i: usize) -> i32 {
    match (ty.dtype, name) {
        (DType::U32, _) => -1,
        (DType::I32, "seqs" | "row") => 0,
        (DType::I32, "rows") => i as i32 % 2,
        (DType::I32, _) => {
            i as i32 % BLOCKS as i32 + i as i32 / BLOCKS as i32 * i32::from(name != "table") * BLOCKS as i32
        }
        _ => (((i * 29 + 7) % 50) as f32 / 25.0 - 0.9).to_bits() as i32,
    }
}

/// A weight in its stored format.
fn bytes(entry: &WeightEntry) -> Vec<u8> {
    let DType::Stored(format) = entry.ty.dtype else { panic!("{}", entry.ty) };
    let n = entry.ty.elems(&Dims::default());
    let values: Vec<f32> = (0..n).map(|i| ((i * 31 + 5) % 64) as f32 / 64.0 - 0.5).collect();
    let mut bytes = vec![0; entry.ty.bytes(&Dims::default())];
    match format.info().encode {
        Some(encode) => encode(&values, &mut bytes),
        None => panic!("{} does not encode", Format::info(format).name),
    }
    bytes
}
