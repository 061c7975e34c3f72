//! Plans kept on disk: the second start compiles nothing and computes the same; whatever is wrong with a file, the plan is
//! compiled again and the owner is told.

use crate::golden_support::{all_logits, engine, options};
use std::path::Path;
use tempfile::{TempDir, tempdir};
use yirage_engine::{Engine, EngineOptions, Notice, PlanCounts, Request};
use yirage_plan::Precision;
use yirage_plancache::PlanFolder;
use yirage_testkit::tiny;

fn keeping() -> (TempDir, EngineOptions) {
    let folder = tempdir().unwrap();
    let plans = Some(PlanFolder::new(folder.path().join("plans"), 1 << 24));
    (folder, EngineOptions { plans, context: Some(256), ..options(Precision::Fast) })
}

fn logits(engine: &mut Engine) -> Vec<Vec<u32>> {
    let rows = all_logits(engine, &[1, 17, 3, 40, 9]);
    rows.into_iter().map(|row| row.into_iter().map(f32::to_bits).collect()).collect()
}

fn counts(engine: &Engine) -> (u64, u64) {
    let PlanCounts { compiled, read } = engine.plan_counts();
    (compiled, read)
}

#[test]
fn the_second_start_compiles_nothing_and_computes_the_same() {
    for name in ["llama", "qwen3", "gemma2", "qwen3moe"] {
        let (_folder, options) = keeping();
        let model = tiny::model(name);
        let mut first = engine(&model, &options);
        let (compiled, read) = counts(&first);
        assert!(compiled >= 2 && read == 0, "{name}: {compiled} {read}");
        let want = logits(&mut first);
        assert_eq!(first.notices(), [], "{name}");
        let all = counts(&first).0;
        let mut second = engine(&model, &options);
        assert_eq!(logits(&mut second), want, "{name}");
        assert_eq!((counts(&second), second.notices()), ((0, all), vec![]), "{name}");
        let mut plain = engine(&model, &EngineOptions { plans: None, ..options });
        assert_eq!(logits(&mut plain), want, "{name}");
    }
}

#[test]
fn another_precision_or_size_has_plans_of_its_own() {
    let (_folder, options) = keeping();
    let model = tiny::model("llama");
    let all = counts(&engine(&model, &options)).0;
    let exact = EngineOptions { precision: Precision::Exact, ..options.clone() };
    let longer = EngineOptions { context: Some(512), ..options.clone() };
    for other in [exact, longer] {
        let (compiled, read) = counts(&engine(&model, &other));
        // Greedy sampling is exact in both, and knows no context.
        assert_eq!((compiled, read), (all - 1, 1));
    }
}

#[test]
fn a_file_that_is_damaged_is_told_and_made_again() {
    let (folder, options) = keeping();
    let model = tiny::model("llama");
    let mut first = engine(&model, &options);
    let want = logits(&mut first);
    let all = counts(&first).0;
    for file in std::fs::read_dir(folder.path().join("plans")).unwrap() {
        let path = file.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(&path, bytes).unwrap();
    }
    let mut second = engine(&model, &options);
    assert_eq!(logits(&mut second), want);
    assert_eq!(counts(&second), (all, 0));
    let notices = second.notices();
    assert_eq!(notices.len() as u64, all, "{notices:?}");
    assert!(notices.iter().all(|n| matches!(n, Notice::Plan(why) if why.contains("damaged") && why.contains(".plan"))));
    assert_eq!(counts(&engine(&model, &options)), (0, all), "made again");
}

#[test]
fn a_folder_that_cannot_be_written_is_told() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let (_kept, options) = keeping();
    let options = EngineOptions { plans: Some(PlanFolder::new(file.join("below"), 1 << 20)), ..options };
    let mut engine = engine(Path::new(&tiny::model("llama")), &options);
    let told = engine.notices();
    assert!(told.iter().any(|n| n.to_string().contains("not kept on disk")), "{told:?}");
    engine.add(Request::greedy(vec![1, 2, 3], 2)).unwrap();
    while !engine.is_idle() {
        engine.step().unwrap();
    }
}
