//! The text form of plans; printing and parsing round-trip exactly.
//!
//! ```text
//! plan cpu x86_64/avx512 workers=2
//! precision fast
//! bucket tokens=512 seqs=16 blocks=64 rows=16
//! arena 1048576
//! weight %norm: f32[64] layout=rows groups=1 shard=-
//! kernel cpu/rows@1 avx512 static
//! placement 7 offset=0 bytes=4096
//! step node=0 kernel=0 phase=0
//! program steps counters=1
//! task step=0 stage=0 partition=0/1 signals=0
//! queue 0
//! graph llama {
//! ...
//! }
//! ```

use crate::fields::field;
use crate::plan::{BufferPlacement, KernelRef, Plan, PlanStep};
use crate::precision::Precision;
use crate::tasks;
use crate::weights::{WeightEntry, WeightPlan};
use std::fmt::Write;
use thiserror::Error;
use yirage_ir::text::outdated_word;
use yirage_ir::{Dims, ValueId};

/// Why a text is not a plan.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("plan, line {line}: {what}")]
pub struct PlanTextError {
    /// Line, from 1.
    pub line: usize,
    /// What is wrong.
    pub what: String,
}

/// The text form.
pub fn print(plan: &Plan) -> String {
    let mut out = String::new();
    let b = &plan.bucket;
    // Writing to a String cannot fail.
    let _ = writeln!(out, "plan {}", plan.target);
    let _ = writeln!(out, "precision {}", plan.precision);
    let _ = writeln!(out, "bucket tokens={} seqs={} blocks={} rows={}", b.tokens, b.seqs, b.blocks, b.rows);
    let _ = writeln!(out, "arena {}", plan.arena);
    out.push_str(&plan.weights.print());
    for k in &plan.kernels {
        let _ = write!(out, "kernel {} {}", k.name, k.variant);
        for stage in &k.stages {
            let _ = write!(out, " {}", tasks::text::print_stage(stage));
        }
        out.push_str(if k.scratch { " scratch\n" } else { "\n" });
    }
    for p in &plan.placements {
        let _ = writeln!(out, "placement {} offset={} bytes={}", p.value.0, p.offset, p.bytes);
    }
    for s in &plan.steps {
        let _ = writeln!(out, "step node={} kernel={} phase={}", s.node, s.kernel, s.phase);
    }
    plan.programs.iter().for_each(|p| tasks::text::print(p, &mut out));
    out.push_str(&yirage_ir::text::print(&plan.graph));
    out
}

/// Parses a plan. The result still has to be proved ([`crate::VerifiedPlan`]).
pub fn parse(text: &str) -> Result<Plan, PlanTextError> {
    let graph_at = text.find("\ngraph ").map(|i| i + 1).ok_or(PlanTextError { line: 1, what: "no graph".into() })?;
    let head_lines = text[..graph_at].lines().count();
    let graph = yirage_ir::text::parse(&text[graph_at..])
        .map_err(|e| PlanTextError { line: head_lines + e.line, what: e.what })?;
    let mut plan = Plan {
        target: String::new(),
        precision: Precision::default(),
        bucket: Dims::default(),
        graph,
        weights: WeightPlan::default(),
        kernels: Vec::new(),
        arena: 0,
        placements: Vec::new(),
        steps: Vec::new(),
        programs: Vec::new(),
    };
    for (i, line) in text[..graph_at].lines().enumerate() {
        head_line(&mut plan, line).ok_or_else(|| PlanTextError { line: i + 1, what: unread(line) })?;
    }
    for word in ["plan", "precision", "bucket", "arena"] {
        let lines = text[..graph_at].lines().filter(|l| l.split(' ').next() == Some(word)).count();
        if lines != 1 {
            return Err(PlanTextError { line: 1, what: format!("{lines} lines begin with `{word}`, one is wanted") });
        }
    }
    Ok(plan)
}

/// Words of text form 1 in the lines before the graph, and what stands in their place.
const OUTDATED: [(&str, &str); 6] = [
    ("place", "placement"),
    ("share", "partition"),
    ("drain", "work_queue"),
    ("shares", "static"),
    ("drained", "work_queue"),
    ("nostate", "no_kv_cache"),
];

/// Why a line cannot be read.
fn unread(line: &str) -> String {
    let mut words = line.split([' ', '?']).map(|word| word.split_once('=').map_or(word, |(name, _)| name));
    words.find_map(|word| outdated_word(&OUTDATED, word)).unwrap_or_else(|| format!("cannot read `{line}`"))
}

fn head_line(plan: &mut Plan, line: &str) -> Option<()> {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let mut words = rest.split(' ');
    match word {
        "plan" => plan.target = rest.to_string(),
        "precision" => plan.precision = rest.parse().ok()?,
        "weight" => plan.weights.entries.push(WeightEntry::parse(line).ok()?),
        "arena" => plan.arena = rest.parse().ok()?,
        "bucket" => {
            plan.bucket = Dims {
                tokens: field(words.next()?, "tokens")?,
                seqs: field(words.next()?, "seqs")?,
                blocks: field(words.next()?, "blocks")?,
                rows: field(words.next()?, "rows")?,
            };
        }
        "kernel" => {
            let (name, variant) = (words.next()?, words.next()?);
            let mut kernel = KernelRef::new(name, variant, Vec::new());
            for word in words.by_ref() {
                match word {
                    "scratch" => kernel.scratch = true,
                    stage => kernel.stages.push(tasks::text::stage(stage)?),
                }
            }
            plan.kernels.push(kernel);
        }
        "program" => {
            plan.programs.push(tasks::text::head(rest)?);
            return Some(());
        }
        "task" | "queue" => return tasks::text::line(plan.programs.last_mut()?, word, rest),
        "placement" => {
            plan.placements.push(BufferPlacement {
                value: ValueId(words.next()?.parse().ok()?),
                offset: field(words.next()?, "offset")?,
                bytes: field(words.next()?, "bytes")?,
            });
        }
        "step" => plan.steps.push(PlanStep {
            node: field(words.next()?, "node")?,
            kernel: field(words.next()?, "kernel")?,
            phase: field(words.next()?, "phase")?,
        }),
        _ => return None,
    }
    let taken_whole = matches!(word, "plan" | "precision" | "arena" | "weight");
    (taken_whole || words.next().is_none()).then_some(())
}
