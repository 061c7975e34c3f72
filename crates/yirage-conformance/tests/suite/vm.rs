//! The machine that computes: every program gives the reference's values in every order, and a mistake is named.
#![allow(clippy::panic, clippy::print_stdout)] // a test may stop at anything unexpected

use std::collections::HashMap;
use yirage_compile::{CompileOptions, compile, plan_weights};
use yirage_conformance::random::RandomGraph;
use yirage_conformance::vm::{Difference, VmError, VmOptions, run_program, run_tasks};
use yirage_conformance::{GraphSetup, KvCacheSetup};
use yirage_hal::reference::Reference;
use yirage_hal::{Backend, Device, OpenOptions, Record};
use yirage_ir::expr::Func;
use yirage_ir::op::{Attention, KvAppend, Linear, Map, RmsNorm, Rope};
use yirage_ir::rng::Rng;
use yirage_ir::{DType, Dims, F32, Graph, GraphBuilder, Op, Sym, Tensor, Type};
use yirage_plan::tasks::vm::{ArenaRaceChecker, WalkError, walk};
use yirage_plan::{ExecutorKind, Plan, Precision, Target, TaskProgram};

const WIDTH: u32 = 32;
const TOKENS: u32 = 6;

fn cpu(threads: usize) -> std::sync::Arc<dyn Device> {
    yirage_cpu::Cpu.open(0, &OpenOptions { threads: Some(threads), ..OpenOptions::default() }).unwrap().0
}

/// A layer of a model: norm, projections, rotation, cache, attention, residual, feed-forward part.
fn layer() -> GraphSetup {
    let mut rng = Rng::new(5);
    let mut values = |n: usize| (0..n).map(|_| (rng.below(2001) as f32 - 1000.0) / 1000.0).collect::<Vec<f32>>();
    let mut b = GraphBuilder::new("layer");
    let rows = || Type::rows(Sym::Tokens, WIDTH);
    let per_token = || Type::new(DType::I32, [Sym::Tokens]);
    let x = b.step_input("x", rows()).unwrap();
    let [positions, seqs, slots] = ["positions", "seqs", "slots"].map(|name| b.step_input(name, per_token()).unwrap());
    let table = b.step_input("table", Type::new(DType::I32, [Sym::Seqs, Sym::Blocks])).unwrap();
    let mut weights = HashMap::new();
    let mut weight = |b: &mut GraphBuilder, name: &str, shape: &[u32]| {
        let n = shape.iter().product::<u32>() as usize;
        weights.insert(name.to_owned(), Tensor::f32(shape.iter().map(|&n| n as usize).collect::<Vec<_>>(), values(n)));
        b.weight(name, Type::new(DType::F32, shape.iter().copied())).unwrap()
    };
    let norm = RmsNorm { eps: F32(1e-5), width: WIDTH, unit_offset: false };
    let w = weight(&mut b, "norm.w", &[WIDTH]);
    let n = b.op("norm", norm.clone(), &[x, w]).unwrap();
    let [q, k, v] = ["q", "k", "v"].map(|name| {
        let w = weight(&mut b, &format!("{name}.w"), &[WIDTH, WIDTH]);
        b.op(name, Linear { groups: 1 }, &[n, w]).unwrap()
    });
    let tables = ["cos", "sin"].map(|name| weight(&mut b, name, &[64, 8]));
    let rope = Rope { width: 16, rotary: 16, interleaved: false, per_row: false };
    let q = b.op("q.rope", rope.clone(), &[q, tables[0], tables[1], positions]).unwrap();
    let k = b.op("k.rope", rope, &[k, tables[0], tables[1], positions]).unwrap();
    let state = b.kv_cache("kv", Type::new(DType::F32, [32u32, 2, 32])).unwrap();
    let kv = b.op("kv.after", KvAppend { kv_heads: 2 }, &[state, k, v, slots]).unwrap();
    let attention = Attention {
        heads: 2,
        kv_heads: 2,
        k_width: 16,
        v_width: 16,
        scale: F32(0.25),
        softcap: F32(0.0),
        window: 0,
        causal: true,
        cached: true,
        v_in_k: false,
    };
    let a = b.op("attn", attention, &[q, kv, positions, seqs, table]).unwrap();
    let mid = b.op("mid", Map::of(Func::Add), &[x, a]).unwrap();
    let w = weight(&mut b, "norm2.w", &[WIDTH]);
    let n = b.op("norm2", norm, &[mid, w]).unwrap();
    let [gate, up] = ["gate", "up"].map(|name| {
        let w = weight(&mut b, &format!("{name}.w"), &[2 * WIDTH, WIDTH]);
        b.op(name, Linear { groups: 1 }, &[n, w]).unwrap()
    });
    let act = b.op("act", Map::gated(Func::Silu), &[gate, up]).unwrap();
    let w = weight(&mut b, "down.w", &[WIDTH, 2 * WIDTH]);
    let down = b.op("down", Linear { groups: 1 }, &[act, w]).unwrap();
    let out = b.op("out", Map::of(Func::Add), &[mid, down]).unwrap();
    b.output(out);
    let mut rng = Rng::new(6);
    let floats: Vec<f32> = (0..TOKENS * WIDTH).map(|_| (rng.below(2001) as f32 - 1000.0) / 1000.0).collect();
    let x = Record::of(&floats);
    let ints = |values: Vec<i32>| Record::of(&values);
    let slots = HashMap::from([
        ("x".to_owned(), x),
        ("positions".to_owned(), ints(vec![0, 1, 2, 3, 0, 1])),
        ("seqs".to_owned(), ints(vec![0, 0, 0, 0, 1, 1])),
        ("slots".to_owned(), ints(vec![0, 1, 2, 3, 32, 33])),
        ("table".to_owned(), ints(vec![0, 1])),
    ]);
    let values = Tensor::f32([2, 32, 2, 32], vec![0.0; 2 * 32 * 64]);
    let states = vec![KvCacheSetup { name: "kv".into(), values, k_width: 16 }];
    let dims = Dims { tokens: TOKENS, seqs: 2, blocks: 1, rows: 1 };
    GraphSetup { graph: b.finish(), weights, step_inputs: slots, kv_caches: states, dims, precision: Precision::Exact }
}

fn plan(graph: &Graph, dims: Dims, target: &Target, options: &CompileOptions) -> Option<Plan> {
    let weights = plan_weights(graph, target).ok()?;
    let bucket =
        Dims { tokens: dims.tokens.max(1), seqs: dims.seqs.max(1), blocks: dims.blocks.max(1), rows: dims.rows.max(1) };
    compile(graph, bucket, target, &weights, options).ok().map(|plan| (*plan).clone())
}

/// Orders of a seed.
fn any(seed: u64) -> impl FnMut(&[usize]) -> usize {
    let mut rng = Rng::new(seed);
    move |ready: &[usize]| rng.below(ready.len() as u64) as usize
}

fn run(
    setup: &GraphSetup,
    plan: &Plan,
    kind: ExecutorKind,
    eval: yirage_ir::interp::Eval,
    seed: u64,
) -> Result<usize, VmError> {
    let mut choose = any(seed);
    let mut options = VmOptions { kind, eval, stop_after: None, choose: &mut choose };
    run_program(setup, plan, &mut options).map(|report| report.steps.len())
}

const KINDS: [ExecutorKind; 2] = [ExecutorKind::Steps, ExecutorKind::Persistent];

#[test]
fn every_program_of_a_layer_gives_the_references_values_in_every_order() {
    let setup = layer();
    for threads in [1, 2] {
        let target = cpu(threads).target();
        for options in [CompileOptions::new(Precision::Exact), CompileOptions::new(Precision::Exact).unfused()] {
            let plan = plan(&setup.graph, setup.dims, &target, &options).unwrap();
            for kind in KINDS {
                for seed in 0..20 {
                    let steps =
                        run(&setup, &plan, kind, Op::eval, seed).unwrap_or_else(|e| panic!("{kind}, {seed}: {e}"));
                    assert_eq!(steps, plan.steps.len());
                }
            }
        }
    }
}

#[test]
fn random_graphs_run_in_any_order() {
    let target = cpu(2).target();
    let mut ran = 0;
    for seed in 0..150 {
        let drawn = RandomGraph::of_seed(seed);
        let Some(plan) = plan(&drawn.setup.graph, drawn.bucket, &target, &CompileOptions::new(drawn.setup.precision))
        else {
            continue;
        };
        for kind in KINDS {
            run(&drawn.setup, &plan, kind, Op::eval, seed)
                .unwrap_or_else(|e| panic!("seed {seed}, {kind}: {e}\n{drawn}"));
        }
        ran += 1;
    }
    assert!(ran > 100, "{ran}");
}

/// One element of each rotation is wrong.
fn wrong_rotation(op: &Op, ins: &[&Tensor]) -> Vec<Tensor> {
    let mut outs = op.eval(ins);
    if matches!(op, Op::Rope(_)) {
        let mut values = outs[0].floats().to_vec();
        values[37] += 0.5;
        outs[0] = Tensor::f32(outs[0].shape.clone(), values);
    }
    outs
}

#[test]
fn a_wrong_op_is_named_with_its_task_and_element_and_both_values() {
    let setup = layer();
    let plan =
        plan(&setup.graph, setup.dims, &cpu(2).target(), &CompileOptions::new(Precision::Exact).unfused()).unwrap();
    let right = {
        let rope = plan
            .steps
            .iter()
            .position(|s| plan.graph.value(plan.graph.nodes[s.node as usize].outs[0]).name == "q.rope");
        let mut choose = any(0);
        let mut options =
            VmOptions { kind: ExecutorKind::Steps, eval: Op::eval, stop_after: rope, choose: &mut choose };
        run_program(&setup, &plan, &mut options).unwrap().outputs
    };
    for kind in KINDS {
        let VmError::Differs(found) = run(&setup, &plan, kind, wrong_rotation, 1).unwrap_err() else { panic!() };
        let Difference { op, value, element, got, wanted, step, task } = &*found;
        assert_eq!((op.as_str(), *element), ("rope", 37), "{found}");
        assert!(value == "q.rope" || value == "k.rope", "{found}");
        assert_eq!(plan.program(kind).unwrap().tasks[*task as usize].step as usize, *step);
        let [got, wanted]: [f32; 2] = [got.parse().unwrap(), wanted.parse().unwrap()];
        assert!((got - wanted - 0.5).abs() < 1e-5, "{found}");
        if value == "q.rope" {
            let (name, tensor) = &right[0];
            assert_eq!((name.as_str(), tensor.floats()[37]), ("q.rope", wanted));
        }
        let text = found.to_string();
        assert!(
            ["task ", "rope", "element 37", "the reference gives"].iter().all(|part| text.contains(part)),
            "{text}"
        );
    }
}

/// The program without the waits of one step's tasks.
fn without_waits(program: &TaskProgram, step: u32) -> TaskProgram {
    let mut program = program.clone();
    program.tasks.iter_mut().filter(|t| t.step == step).for_each(|t| t.waits.clear());
    program
}

/// What it finds is a race that the machine sees which watches memory, in the same order of tasks.
#[test]
fn a_missing_wait_shows_as_the_first_value_that_it_spoils() {
    let setup = layer();
    let target = Target { workers: 4, ..cpu(2).target() };
    let plan = plan(&setup.graph, setup.dims, &target, &CompileOptions::new(Precision::Exact).unfused()).unwrap();
    let program = plan.program(ExecutorKind::Persistent).unwrap();
    let (mut planted, mut named) = (0, 0);
    for step in 1..plan.steps.len() as u32 {
        let fault = without_waits(program, step);
        if fault == *program {
            continue;
        }
        planted += 1;
        let spoilt = (0..60).find_map(|seed| {
            let mut choose = any(seed);
            let mut options =
                VmOptions { kind: ExecutorKind::Persistent, eval: Op::eval, stop_after: None, choose: &mut choose };
            let found = run_tasks(&setup, &plan, &fault, &mut options).err();
            if found.is_some() {
                let mut watch = ArenaRaceChecker::new(&plan, &fault).unwrap();
                let watched = walk(&fault, any(seed), |task, _| watch.run(task));
                assert!(matches!(watched, Err(WalkError::Race { .. })), "step {step}, order {seed}: {found:?}");
            }
            found
        });
        match spoilt {
            Some(VmError::Differs(first)) => named += usize::from(first.step == step as usize),
            // An order of one queue may say by itself what the wait said.
            Some(VmError::Fails { .. }) | None => {}
            Some(other) => panic!("{other}"),
        }
    }
    println!("{named} of {planted} planted faults are named by their step");
    assert!(planted > 10 && named >= 4, "{named} of {planted}");
}

#[test]
fn it_stops_after_the_op_that_is_asked_for() {
    let setup = layer();
    let plan =
        plan(&setup.graph, setup.dims, &cpu(2).target(), &CompileOptions::new(Precision::Exact).unfused()).unwrap();
    let mut before = 0;
    for step in 0..plan.steps.len() {
        let mut choose = |_: &[usize]| 0;
        let mut options =
            VmOptions { kind: ExecutorKind::Steps, eval: Op::eval, stop_after: Some(step), choose: &mut choose };
        let report = run_program(&setup, &plan, &mut options).unwrap();
        assert_eq!(report.steps.last(), Some(&step));
        assert!(report.tasks.len() >= before && report.tasks.len() <= plan.programs[0].tasks.len());
        before = report.tasks.len();
    }
}

/// A device with a wrong kernel is told apart op by op; what lies behind the op asked for is not looked at.
#[test]
fn the_first_wrong_kernel_of_a_device_is_named() {
    let setup = layer();
    let (wrong, _) = Reference::with(wrong_rotation).open(0, &OpenOptions::default()).unwrap();
    let found = setup.first_difference(&*wrong, None).unwrap().unwrap();
    assert_eq!((found.name.as_str(), found.value.as_str()), ("rope", "q.rope"), "{found}");
    assert!(found.why.contains("element 37"), "{found}");
    assert_eq!(setup.first_difference(&*wrong, Some(found.op)).unwrap(), Some(found.clone()));
    assert_eq!(setup.first_difference(&*wrong, Some(found.op - 1)).unwrap(), None);
    assert_eq!(setup.first_difference(&*cpu(2), None).unwrap(), None);
}

/// What a test that fails says: a plan that is sound is not to blame.
#[test]
fn a_sound_plan_leaves_the_blame_to_a_kernel() {
    let setup = layer();
    let (wrong, _) = Reference::with(wrong_rotation).open(0, &OpenOptions::default()).unwrap();
    let blame = setup.blame(&*wrong, setup.dims, &CompileOptions::new(Precision::Exact));
    assert!(blame.contains("so a kernel is wrong"), "{blame}");
}
