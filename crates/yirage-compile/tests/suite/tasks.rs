//! Task programs of graphs of all shapes: proved by the verifier, walked in adversarial orders by the checking
//! interpreter, and spoilt in every way that the two must notice.

use yirage_compile::{CompileOptions, compile, plan_weights};
use yirage_ir::{ActivationFormat, DType, Dims, Format, RegionKind, text};
use yirage_plan::rules::{OpRule, OperandConstraint};
use yirage_plan::tasks::access::{Extent, predecessors};
use yirage_plan::tasks::vm::{ArenaRaceChecker, WalkError, walk};
use yirage_plan::{
    ActivationFormatFacts, DeviceLimits, ExecutorKind, ExpertDivision, KernelCapabilities, KernelFacts, KernelOrigin,
    KernelRef, KvCacheLayout, KvCacheLayoutFacts, Partitioning, Plan, PlanError, Precision, Stage, StageCondition,
    Target, Task, TaskPartition, TaskProgram, VerifiedPlan, Wait, WeightLayout, WeightLayoutFacts, WeightRole,
};
use yirage_testkit::rng::Rng;

/// The layout of products' weights.
const TILES: WeightLayout = WeightLayout::named("tiles");

/// A device whose kernels have stages of every kind.
fn target(workers: u32) -> Target {
    let kernel = |name: &str, regions: &[RegionKind], ops: &[&str], stages: &[Stage]| KernelFacts {
        kernel: KernelRef::new(format!("test/{name}@1"), "test", stages.to_vec()),
        origin: KernelOrigin::Library,
        regions: regions.to_vec(),
        rules: ops
            .iter()
            .map(|op| {
                OpRule::new(op, vec![OperandConstraint::any(&[WeightLayout::ROWS, TILES], &[KvCacheLayout::ROWS])])
            })
            .collect(),
    };
    let rows = Stage::always(Partitioning::Rows);
    let (shares, drained) = (Stage::always(Partitioning::Static), Stage::always(Partitioning::WorkQueue));
    let staging = Stage { partitioning: Partitioning::Rows, when: StageCondition::FloatInput };
    let filling = Stage { partitioning: Partitioning::Static, when: StageCondition::NoKvCache };
    Target {
        family: "test".into(),
        arch: "none".into(),
        capabilities: KernelCapabilities::LEAST,
        workers,
        ranks: 1,
        experts: ExpertDivision::default(),
        weight_layouts: vec![
            WeightLayoutFacts::new(TILES, &[WeightRole::Matmul], Format::ALL),
            WeightLayoutFacts::rows(&[WeightRole::Factor, WeightRole::Plain]),
        ],
        kv_cache_layouts: vec![KvCacheLayoutFacts::rows(&[32])],
        activation_formats: vec![ActivationFormatFacts {
            format: ActivationFormat::Q8A,
            block_bytes: 72,
            row_multiple: 32,
        }],
        activation_dtype: DType::F32,
        limits: DeviceLimits::aligned(64),
        executors: ExecutorKind::ALL.to_vec(),
        kernels: vec![
            kernel("rows", &[RegionKind::Rows], &["embed", "rms_norm", "map"], &[rows]),
            kernel("matmul_group", &[RegionKind::MatmulGroup], &["linear"], &[staging, drained]),
            kernel("attention", &[], &["attention"], &[filling, drained, shares]),
            kernel("gather", &[], &["gather"], &[shares]),
        ],
    }
}

const HEAD: &str = "graph g {
  input %ids: i32[Tokens]
  input %positions: i32[Tokens]
  input %seqs: i32[Tokens]
  weight %t: f32[8, 64]
  weight %s: f32[64]
  weight %wa: f32[64, 64]
  weight %wb: f32[64, 64]
  weight %wc: f32[64, 64]
  %x = embed{scale=1.0}(%t, %ids): f32[Tokens, 64]
  %n = rms_norm{eps=1e-5, width=64, unit_offset=false}(%x, %s): f32[Tokens, 64]
";

/// Graphs by name. `%x` and `%n` are there; products of different inputs do not merge.
const SHAPES: &[(&str, &str)] = &[
    (
        "fork",
        "%a = linear{groups=1}(%x, %wa): f32[Tokens, 64]
         %b = linear{groups=1}(%n, %wb): f32[Tokens, 64]
         output %a, %b",
    ),
    (
        "join",
        r#"%a = linear{groups=1}(%x, %wa): f32[Tokens, 64]
         %b = linear{groups=1}(%n, %wb): f32[Tokens, 64]
         %y = map{expr="add(x0, x1)"}(%a, %b): f32[Tokens, 64]
         output %y"#,
    ),
    (
        "diamond",
        r#"%o = linear{groups=1}(%n, %wc): f32[Tokens, 64]
         %m = rms_norm{eps=1e-5, width=64, unit_offset=false}(%o, %s): f32[Tokens, 64]
         %a = linear{groups=1}(%o, %wa): f32[Tokens, 64]
         %b = linear{groups=1}(%m, %wb): f32[Tokens, 64]
         %y = map{expr="mul(x0, x1)"}(%a, %b): f32[Tokens, 64]
         output %y"#,
    ),
    (
        "residual strip",
        r#"%a = linear{groups=1}(%n, %wa): f32[Tokens, 64]
         %x1 = map{expr="add(x0, x1)"}(%x, %a): f32[Tokens, 64]
         %n1 = rms_norm{eps=1e-5, width=64, unit_offset=false}(%x1, %s): f32[Tokens, 64]
         %b = linear{groups=1}(%n1, %wb): f32[Tokens, 64]
         %x2 = map{expr="add(x0, x1)"}(%x1, %b): f32[Tokens, 64]
         %n2 = rms_norm{eps=1e-5, width=64, unit_offset=false}(%x2, %s): f32[Tokens, 64]
         %c = linear{groups=1}(%n2, %wc): f32[Tokens, 64]
         %y = map{expr="add(x0, x1)"}(%x2, %c): f32[Tokens, 64]
         output %y"#,
    ),
    // A consumer that joins two producers, one of which also forks to another consumer.
    (
        "a join that shares a fork",
        r#"%a = linear{groups=1}(%x, %wa): f32[Tokens, 64]
         %b = linear{groups=1}(%n, %wb): f32[Tokens, 64]
         %y = map{expr="add(x0, x1)"}(%a, %b): f32[Tokens, 64]
         %z = linear{groups=1}(%a, %wc): f32[Tokens, 64]
         output %y, %z"#,
    ),
    // Producers that each fork to two consumers, both of which join them.
    (
        "two joins of two forks",
        r#"%a = linear{groups=1}(%x, %wa): f32[Tokens, 64]
         %b = linear{groups=1}(%n, %wb): f32[Tokens, 64]
         %y = map{expr="add(x0, x1)"}(%a, %b): f32[Tokens, 64]
         %z = attention{heads=4, kv_heads=4, k_width=16, v_width=16, scale=0.25, softcap=0.0, window=0, causal=true, cached=false, v_in_k=false}(%a, %b, %b, %positions, %seqs): f32[Tokens, 64]
         %c = linear{groups=1}(%z, %wc): f32[Tokens, 64]
         %w = map{expr="add(x0, x1)"}(%c, %y): f32[Tokens, 64]
         output %w, %y, %z"#,
    ),
];

fn plan(shape: &str, workers: u32, tokens: u32) -> Plan {
    plan_by(shape, workers, tokens, true)
}

fn plan_by(shape: &str, workers: u32, tokens: u32, fused: bool) -> Plan {
    let graph = text::parse(&format!("{HEAD}{shape}\n}}")).unwrap();
    let target = target(workers);
    let weights = plan_weights(&graph, &target).unwrap();
    let options = CompileOptions::new(Precision::Exact);
    let options = if fused { options } else { options.unfused() };
    let plan = compile(&graph, Dims { tokens, seqs: 1, blocks: 1, rows: 1 }, &target, &weights, &options);
    plan.unwrap().into_plan()
}

/// Proves a plan for the target that it says it is for.
fn verify(plan: &Plan) -> Result<VerifiedPlan, PlanError> {
    let workers = plan.target.rsplit('=').next().unwrap().parse().unwrap();
    VerifiedPlan::new(plan.clone(), &target(workers))
}

/// Every shape on every grid.
fn plans() -> impl Iterator<Item = (String, Plan)> {
    let grids = [(1, 1), (2, 1), (2, 64), (3, 5), (7, 64), (16, 3)];
    SHAPES.iter().flat_map(move |(name, shape)| {
        grids.map(|(workers, tokens)| (format!("{name}, {workers} workers"), plan(shape, workers, tokens)))
    })
}

/// Orders in which the workers take turns: by seed, and always the first, the last, or one of them as late as possible.
fn walk_in_order(plan: &Plan, program: &TaskProgram, order: u64) -> Result<Vec<u32>, WalkError> {
    let mut watch = ArenaRaceChecker::new(plan, program)?;
    let mut rng = Rng::new(order);
    let choose = |ready: &[usize]| match order {
        0 => 0,
        1 => ready.len() - 1,
        2..18 => ready.iter().position(|&w| w as u64 != order - 2).unwrap_or(0),
        _ => rng.index(ready.len()),
    };
    let mut ran = Vec::new();
    walk(program, choose, |task, _| {
        ran.push(task);
        watch.run(task)
    })?;
    Ok(ran)
}

#[test]
fn all_shapes_run_in_all_orders() {
    for (name, plan) in plans() {
        verify(&plan).unwrap();
        assert_eq!(plan.programs.len(), 2, "{name}");
        for program in &plan.programs {
            for order in 0..200 {
                let mut ran = walk_in_order(&plan, program, order).unwrap_or_else(|e| panic!("{name}: {e}"));
                ran.sort_unstable();
                assert_eq!(ran, (0..program.tasks.len() as u32).collect::<Vec<_>>(), "{name}");
            }
        }
    }
}

#[test]
fn a_task_may_wait_for_several_and_be_waited_for_by_several() {
    let plan = plan(SHAPES[5].1, 3, 5);
    let persistent = plan.program(ExecutorKind::Persistent).unwrap();
    // For the two other workers: what follows from its own queue is not waited for.
    assert_eq!(persistent.tasks.iter().map(|t| t.waits.len()).max(), Some(2));
    let waits = persistent.tasks.iter().flat_map(|t| &t.waits);
    let first = waits.clone().find(|w| w.at_least > 0).unwrap();
    assert!(waits.filter(|w| *w == first).count() > 1);
    assert!(plan.program(ExecutorKind::Replay).is_none());
}

/// Without any one of its waits a program is refused, and some order shows the race.
#[test]
fn a_missing_wait_is_found_twice() {
    let mut spoilt = 0;
    for (name, plan) in plans() {
        for (p, program) in plan.programs.iter().enumerate() {
            for (t, task) in program.tasks.iter().enumerate() {
                for w in 0..task.waits.len() {
                    let mut bad = plan.clone();
                    bad.programs[p].tasks[t].waits.remove(w);
                    let why = verify(&bad).map_err(|e| e.to_string());
                    // A barrier may be stronger than what the steps need; then nothing can go wrong.
                    let seen = (0..400).any(|order| walk_in_order(&bad, &bad.programs[p], order).is_err());
                    assert_eq!(why.is_err(), seen, "{name}, task {t}: {why:?}");
                    let needed = program.kind == ExecutorKind::Persistent;
                    assert!(seen || !needed, "{name}, task {t} of {} waits for nothing", program.kind);
                    spoilt += usize::from(seen);
                }
            }
        }
    }
    assert!(spoilt > 500, "{spoilt}");
}

/// Of a program, each task that begins a step whose share of rows follows one of an earlier step, and that one.
fn shares_of_the_same_rows(plan: &Plan, program: &TaskProgram) -> Vec<(usize, usize)> {
    let stage =
        |step: usize, last: bool| if last { plan.stages(step).last() } else { plan.stages(step).next() }.unwrap().0;
    let find = |step: usize, last: bool, partition: TaskPartition| {
        let wanted = |t: &Task| (t.step as usize, t.stage, t.partition) == (step, stage(step, last), partition);
        program.tasks.iter().position(wanted).unwrap()
    };
    let mut pairs = Vec::new();
    for (step, before) in predecessors(plan).unwrap().iter().enumerate() {
        for earlier in before.iter().filter(|earlier| earlier.extent == Extent::SameRows) {
            for index in 0..program.queues.len() as u32 {
                let partition = TaskPartition::Static { index, of: program.queues.len() as u32 };
                pairs.push((find(step, false, partition), find(earlier.step as usize, true, partition)));
            }
        }
    }
    pairs
}

/// Where all workers exchange their shares of a step, its tasks wait for single shares of others, and each of these waits is
/// needed.
#[test]
fn a_share_waits_for_the_share_of_its_rows() {
    let (mut moved, mut spoilt) = (0, 0);
    for (name, mut plan) in plans() {
        let at = plan.programs.iter().position(|p| p.kind == ExecutorKind::Persistent).unwrap();
        let pairs = shares_of_the_same_rows(&plan, &plan.programs[at]);
        let workers = plan.programs[at].queues.len();
        let Some(step) = pairs.first().map(|(later, _)| plan.programs[at].tasks[*later].step) else { continue };
        if workers == 1 {
            continue;
        }
        // Without a wait, other rows are other shares.
        let stage = plan.stages(step as usize).next().unwrap().0;
        for task in plan.programs[at].tasks.iter_mut().filter(|t| (t.step, t.stage) == (step, stage)) {
            if let TaskPartition::Static { index, of } = &mut task.partition {
                *index = (*index + 1) % *of;
            }
        }
        let refused = verify(&plan).unwrap_err().to_string();
        assert!(refused.contains("does not wait for"), "{name}: {refused}");
        let tokens = plan.bucket.tokens as usize;
        let caught = (0..200).any(|order| walk_in_order(&plan, &plan.programs[at], order).is_err());
        assert!(caught || tokens < workers, "{name}");
        // With them all is well.
        let program = plan.programs[at].clone();
        let mut added = Vec::new();
        for (later, earlier) in shares_of_the_same_rows(&plan, &program) {
            let queue_of = |task: usize| program.queues.iter().position(|q| q.contains(&(task as u32))).unwrap();
            let queue = queue_of(earlier);
            if queue != queue_of(later) {
                let position = program.queues[queue].iter().position(|&t| t as usize == earlier).unwrap();
                let wait = Wait { counter: queue as u32, at_least: position as u32 + 1 };
                plan.programs[at].tasks[later].waits.push(wait);
                added.push(later);
            }
        }
        verify(&plan).unwrap_or_else(|e| panic!("{name}: {e}"));
        for order in 0..200 {
            walk_in_order(&plan, &plan.programs[at], order).unwrap_or_else(|e| panic!("{name}: {e}"));
        }
        moved += 1;
        for &later in &added {
            let mut bad = plan.clone();
            bad.programs[at].tasks[later].waits.pop();
            spoilt += usize::from(verify(&bad).is_err());
        }
    }
    assert!(moved > 10 && spoilt > 20, "{moved} programs, {spoilt} waits that are needed");
}

/// A graph of norms, products and sums over rows.
fn random_shape(rng: &mut Rng) -> String {
    let (mut lines, mut values) = (String::new(), vec!["x".to_owned(), "n".to_owned()]);
    for i in 0..2 + rng.index(10) {
        let [a, b] = [0, 1].map(|_| values[rng.index(values.len())].clone());
        let weight = ["wa", "wb", "wc"][rng.index(3)];
        let made = match rng.index(4) {
            0 => format!("rms_norm{{eps=1e-5, width=64, unit_offset=false}}(%{a}, %s)"),
            1 => format!("linear{{groups=1}}(%{a}, %{weight})"),
            2 => format!("map{{expr=\"silu(x0)\"}}(%{a})"),
            _ => format!("map{{expr=\"add(x0, mul(x0, x1))\"}}(%{a}, %{b})"),
        };
        lines.push_str(&format!("%v{i} = {made}: f32[Tokens, 64]\n"));
        values.push(format!("v{i}"));
    }
    lines + &format!("output %{}, %{}", values[values.len() - 1], values[values.len() - 2])
}

/// Programs of random graphs for all numbers of workers have no race at any size of the bucket; the same without one of
/// their waits are refused.
#[test]
fn random_programs_have_no_race_and_no_wait_too_many() {
    let count = |name: &str, few: u64| std::env::var(name).map_or(few, |n| n.parse().unwrap());
    let (programs, orders) = (count("YIRAGE_TASK_PROGRAMS", 200), count("YIRAGE_TASK_ORDERS", 20));
    let (mut by_rows, mut dropped, mut seen) = (0, 0, 0);
    for seed in 0..programs {
        let mut rng = Rng::new(seed);
        let (workers, most) = (2 + rng.index(7) as u32, 1 + rng.index(40) as u32);
        let shape = random_shape(&mut rng);
        let plan = plan_by(&shape, workers, most, rng.index(2) == 0);
        let at = plan.programs.iter().position(|p| p.kind == ExecutorKind::Persistent).unwrap();
        let same = |needed: &&yirage_plan::tasks::access::Predecessor| needed.extent == Extent::SameRows;
        by_rows += predecessors(&plan).unwrap().iter().flatten().filter(same).count();
        let walked = |plan: &Plan, tokens: u32, order: u64| {
            let (program, sizes) = (&plan.programs[at], Dims { tokens, ..plan.bucket });
            let (mut watch, mut turns) = (ArenaRaceChecker::at(plan, program, sizes).unwrap(), Rng::new(order));
            walk(program, |ready| turns.index(ready.len()), |task, _| watch.run(task))
        };
        for order in 0..orders {
            let tokens = 1 + rng.index(most as usize) as u32;
            walked(&plan, tokens, order).unwrap_or_else(|e| panic!("{seed}, {tokens} of {most}: {e}\n{shape}"));
        }
        let tasks = &plan.programs[at].tasks;
        let waiting: Vec<usize> = (0..tasks.len()).filter(|&t| !tasks[t].waits.is_empty()).collect();
        if waiting.is_empty() {
            continue;
        }
        let mut bad = plan.clone();
        let waits = &mut bad.programs[at].tasks[waiting[rng.index(waiting.len())]].waits;
        waits.remove(rng.index(waits.len()));
        assert!(verify(&bad).is_err(), "{seed}: a wait is not needed\n{shape}");
        (dropped, seen) = (dropped + 1, seen + usize::from((0..orders).any(|o| walked(&bad, most, o).is_err())));
    }
    println!("{programs} programs in {orders} orders, {by_rows} times a share waits for its own rows alone");
    println!("{dropped} waits dropped, all refused by the proof, {seen} seen by the machine");
    assert!(by_rows as u64 > programs / 2 && seen * 4 > dropped * 3, "{by_rows}; {seen} of {dropped}");
}

#[test]
fn unsound_programs_are_refused_with_the_facts() {
    let plan = plan(SHAPES[2].1, 2, 5);
    let at = plan.programs.iter().position(|p| p.kind == ExecutorKind::Persistent).unwrap();
    let refused = |change: &dyn Fn(&mut TaskProgram)| {
        let mut bad = plan.clone();
        change(&mut bad.programs[at]);
        verify(&bad).unwrap_err().to_string()
    };
    let last = plan.programs[at].tasks.len() as u32 - 1;
    type Spoil<'a> = &'a dyn Fn(&mut TaskProgram);
    let cases: [(Spoil<'_>, &str); 11] = [
        (&|p| p.queues[0].swap(0, 1), "has task"),
        (&|p| p.queues[1].push(0), "queued twice"),
        (&|p| p.queues[0].truncate(1), "is in no queue"),
        (&|p| p.queues.clear(), "0 workers"),
        (&|p| p.tasks[2].waits.push(Wait { counter: 9, at_least: 1 }), "waits for counter 9 of 2"),
        (&|p| p.tasks[2].waits.push(Wait { counter: 0, at_least: 99 }), "until counter 0 is 99; it gets"),
        (&|p| p.tasks[0].waits.push(Wait { counter: 1, at_least: 2 }), "which is listed after it"),
        (&|p| p.tasks[0].signals = 7, "signals counter 7 of 2"),
        (&|p| p.tasks[0].stage = 5, "none such"),
        (&|p| p.tasks[0].partition = TaskPartition::WorkQueue, "is not done once"),
        (&|p| p.tasks[0].partition = TaskPartition::Static { index: 1, of: 2 }, "is not done once"),
    ];
    for (change, want) in cases {
        let got = refused(change);
        assert!(got.contains(want), "`{got}`, wanted `{want}`");
    }
    // A threshold below all signals of several queues does not say whose.
    let vague = refused(&|p| {
        p.tasks.iter_mut().for_each(|t| (t.signals, t.waits) = (0, Vec::new()));
        p.tasks[last as usize].waits = vec![Wait { counter: 0, at_least: 3 }];
    });
    assert!(vague.contains("it is not known of which tasks"), "{vague}");
}

#[test]
fn a_deadlocked_program_says_where() {
    let mut plan = plan(SHAPES[0].1, 2, 5);
    let program = &mut plan.programs[0];
    let last = program.tasks.len() - 1;
    program.tasks[last].waits = vec![Wait { counter: 0, at_least: 50 }];
    let deadlock = walk(program, |_| 0, |_, _| Ok(())).unwrap_err();
    let WalkError::Deadlock(blocked) = &deadlock else { panic!("{deadlock}") };
    assert_eq!((blocked.len(), blocked[0].task, blocked[0].at_least), (1, last as u32, 50));
    assert!(deadlock.to_string().contains("until counter 0 is 50"), "{deadlock}");
}

#[test]
fn programs_round_trip_as_text() {
    for (name, plan) in plans() {
        let printed = yirage_plan::text::print(&plan);
        let again = yirage_plan::text::parse(&printed).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(again.programs, plan.programs, "{name}");
        assert_eq!(again.kernels, plan.kernels, "{name}");
    }
}
