//! Filetests: text graph in, one pass, checked text out.
//!
//! A file is a graph, a line `--- PASS [exact|fast]`, and the graph that the pass must give. `YIRAGE_BLESS=1` writes the
//! second part anew; review the difference before committing it.

use crate::support::target;
use std::fs;
use std::path::{Path, PathBuf};
use yirage_compile::{CompileOptions, Decisions, PIPELINE, compile, plan_weights};
use yirage_ir::{Dims, text, verify};
use yirage_plan::{Precision, VerifiedPlan};

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/filetests");
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    files
}

/// The input, the pass's name, the precision and the wanted output of a file.
fn parts(content: &str) -> (&str, &str, Precision, &str) {
    let (input, rest) = content.split_once("--- ").unwrap();
    let (head, output) = rest.split_once('\n').unwrap_or((rest, ""));
    let mut words = head.split_whitespace();
    let pass = words.next().unwrap();
    (input, pass, words.next().unwrap_or("fast").parse().unwrap(), output)
}

#[test]
fn passes_give_the_checked_text() {
    let files = files();
    assert!(files.len() >= 5);
    for file in files {
        let content = fs::read_to_string(&file).unwrap();
        let (input, pass, precision, want) = parts(&content);
        let graph = text::parse(input).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        let pass = PIPELINE.iter().find(|p| p.name == pass).unwrap_or_else(|| panic!("no pass {pass}"));
        let out = (pass.run)(&graph, &target(), &CompileOptions::new(precision), &mut Decisions::unheard()).unwrap();
        verify(&out).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        let got = text::print(&out);
        if std::env::var_os("YIRAGE_BLESS").is_some() {
            let at = content.len() - want.len();
            fs::write(&file, format!("{}{got}", &content[..at])).unwrap();
        } else {
            assert_eq!(got, want, "{}", file.display());
        }
    }
}

#[test]
fn plans_round_trip_and_are_byte_identical() {
    for file in files() {
        let content = fs::read_to_string(&file).unwrap();
        let graph = text::parse(parts(&content).0).unwrap();
        let target = target();
        let weights = plan_weights(&graph, &target).unwrap();
        let bucket = Dims { tokens: 33, seqs: 2, blocks: 4, rows: 2 };
        let plan = compile(&graph, bucket, &target, &weights, &CompileOptions::default()).unwrap();
        let printed = yirage_plan::text::print(&plan);
        assert_eq!(
            yirage_plan::text::print(&compile(&graph, bucket, &target, &weights, &CompileOptions::default()).unwrap()),
            printed
        );
        let again = yirage_plan::text::parse(&printed).unwrap();
        let again = VerifiedPlan::new(again, &target).unwrap();
        assert_eq!(yirage_plan::text::print(&again), printed);
    }
}

#[test]
fn broken_plans_are_refused() {
    let file = files().into_iter().find(|f| f.ends_with("layer_fuse.txt")).unwrap();
    let content = fs::read_to_string(file).unwrap();
    let graph = text::parse(parts(&content).0).unwrap();
    let target = target();
    let weights = plan_weights(&graph, &target).unwrap();
    let plan =
        compile(&graph, Dims { tokens: 8, seqs: 1, blocks: 2, rows: 1 }, &target, &weights, &CompileOptions::default())
            .unwrap();
    let broken = |change: &dyn Fn(&mut yirage_plan::Plan)| {
        let mut plan = plan.clone().into_plan();
        change(&mut plan);
        VerifiedPlan::new(plan, &target).unwrap_err().to_string()
    };
    assert!(broken(&|p| p.steps.iter_mut().for_each(|s| s.phase = 0)).contains("before it is whole"));
    assert!(broken(&|p| p.steps.truncate(p.steps.len() - 1)).contains("never runs"));
    assert!(broken(&|p| p.placements.iter_mut().for_each(|x| x.offset = 0)).contains("share bytes"));
    assert!(broken(&|p| p.arena = 64).contains("outside the arena"));
    assert!(broken(&|p| p.placements.truncate(p.placements.len() - 1)).contains("has no place"));
    let twice = broken(&|p| {
        let again = p.steps[0].clone();
        p.steps.insert(0, again);
    });
    assert!(twice.contains("runs twice"));
}

#[test]
fn a_missing_kernel_names_op_types_and_target() {
    let graph = text::parse(
        "graph g { input %ids: i32[Tokens] weight %t: f32[8, 32] weight %w: iq4_nl[64, 32]
         %x = embed{scale=1.0}(%t, %ids): f32[Tokens, 32]
         %y = linear{groups=1}(%x, %w): f32[Tokens, 64] output %y }",
    )
    .unwrap();
    let target = target();
    let weights = plan_weights(&graph, &target).unwrap();
    let error =
        compile(&graph, Dims { tokens: 1, seqs: 1, blocks: 1, rows: 1 }, &target, &weights, &CompileOptions::default())
            .unwrap_err();
    let message = error.to_string();
    assert!(message.contains("linear") && message.contains("iq4_nl") && message.contains("test none"), "{message}");
    let other = yirage_plan::WeightPlan::default();
    assert!(
        compile(&graph, Dims::default(), &target, &other, &CompileOptions::default())
            .unwrap_err()
            .to_string()
            .contains("does not fit")
    );
}
