//! One planner for the memory of whole plans: never more than the planner took that it replaced, and no byte of two values that
//! live at the same time.

use crate::support::target;
use std::cmp::Reverse;
use yirage_compile::{CompileOptions, compile, plan_weights};
use yirage_ir::{Dims, text};
use yirage_plan::{Lifetime, Plan, Precision, VerifiedPlan, lifetimes};
use yirage_testkit::rng::Rng;

const HEAD: &str = "graph g {
  input %ids: i32[Tokens]
  weight %t: f32[8, 64]
  weight %s: f32[64]
  weight %wa: f32[64, 64]
  weight %wb: f32[192, 64]
  weight %wc: f32[64, 192]
  %v0 = embed{scale=1.0}(%t, %ids): f32[Tokens, 64]
";

/// A graph of values of 64 and of 192 elements a token, of which some live long.
fn random_graph(rng: &mut Rng) -> String {
    let (mut lines, mut narrow, mut wide) = (String::from(HEAD), vec![0], Vec::new());
    for made in 1..4 + rng.index(16) {
        let x = narrow[rng.index(narrow.len())];
        let (line, width) = match rng.index(5) {
            0 => (format!("rms_norm{{eps=1e-5, width=64, unit_offset=false}}(%v{x}, %s)"), 64),
            1 => (format!("linear{{groups=1}}(%v{x}, %wb)"), 192),
            2 if !wide.is_empty() => (format!("linear{{groups=1}}(%v{}, %wc)", wide[rng.index(wide.len())]), 64),
            3 => (format!("map{{expr=\"add(x0, x1)\"}}(%v{x}, %v{})", narrow[rng.index(narrow.len())]), 64),
            _ => (format!("linear{{groups=1}}(%v{x}, %wa)"), 64),
        };
        lines.push_str(&format!("%v{made} = {line}: f32[Tokens, {width}]\n"));
        if width == 64 { narrow.push(made) } else { wide.push(made) }
    }
    let last = narrow.last().into_iter().chain(wide.last());
    lines + &last.map(|of| format!("output %v{of}\n")).collect::<String>() + "}"
}

/// The lives of a plan's values.
fn lives(plan: &Plan) -> Vec<Lifetime> {
    let mut phase = vec![0; plan.graph.nodes.len()];
    plan.steps.iter().for_each(|step| phase[step.node as usize] = step.phase);
    lifetimes(plan, &phase)
}

fn meet(a: &Lifetime, b: &Lifetime) -> bool {
    a.from <= b.to && b.from <= a.to
}

/// The arena by the planner of before: the largest value first, each at the lowest offset where it meets none of its life.
fn largest_first(plan: &Plan) -> u64 {
    let bytes = |life: &Lifetime| plan.placement(life.value).unwrap().bytes;
    let mut lives = lives(plan);
    lives.sort_by_key(|life| (Reverse(bytes(life)), life.from, life.value));
    let mut placed: Vec<(Lifetime, u64)> = Vec::new();
    for life in lives {
        let mut busy: Vec<_> = placed.iter().filter(|(other, _)| meet(other, &life)).collect();
        busy.sort_by_key(|(_, offset)| *offset);
        let mut at = 0;
        for (other, offset) in busy {
            if at + bytes(&life) <= *offset {
                break;
            }
            at = at.max(offset + bytes(other));
        }
        placed.push((life, at));
    }
    placed.iter().map(|(life, at)| at + bytes(life)).max().unwrap_or(0)
}

#[test]
fn two_thousand_plans_take_no_more_than_before_and_share_no_byte() {
    let (target, mut smaller, mut refused) = (target(), 0, 0);
    for seed in 0..2000 {
        let mut rng = Rng::new(seed);
        let source = random_graph(&mut rng);
        let graph = text::parse(&source).unwrap();
        let weights = plan_weights(&graph, &target).unwrap();
        let options = CompileOptions::new(Precision::Exact);
        let options = if rng.index(2) == 0 { options } else { options.unfused() };
        let bucket = Dims { tokens: 1 + rng.index(40) as u32, seqs: 1, blocks: 1, rows: 1 };
        // Compiling proves the plan, and that no two values share bytes while both live.
        let plan = compile(&graph, bucket, &target, &weights, &options).unwrap().into_plan();
        let before = largest_first(&plan);
        assert!(plan.arena <= before, "{seed}: {} bytes, {before} before\n{source}", plan.arena);
        smaller += u32::from(plan.arena < before);
        let lives = lives(&plan);
        let pairs = lives.iter().enumerate().flat_map(|(n, a)| lives[..n].iter().map(move |b| (a, b)));
        let pairs: Vec<_> = pairs.filter(|(a, b)| meet(a, b)).collect();
        if let Some((a, b)) = (!pairs.is_empty()).then(|| pairs[rng.index(pairs.len())]) {
            let mut bad = plan.clone();
            let onto = plan.placement(b.value).unwrap().offset;
            bad.placements.iter_mut().filter(|place| place.value == a.value).for_each(|place| place.offset = onto);
            assert!(VerifiedPlan::new(bad, &target).is_err(), "{seed}: shared bytes are taken\n{source}");
            refused += 1;
        }
    }
    assert!(smaller > 0 && refused > 1500, "{smaller} plans are smaller, {refused} overlaps are refused");
}
