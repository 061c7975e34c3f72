//! Plans on disk: read by others after they are proved, and otherwise refused, told and made again.

use crate::support::{self, bits, block, bound, cpu, devices, inputs, open, tokens};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use yirage_compile::{CompileOptions, compile, plan_weights};
use yirage_cpu::Cpu;
use yirage_hal::reference::Reference;
use yirage_hal::{Backend, Device, OpenOptions};
use yirage_ir::{Dims, Graph};
use yirage_packed::sealed;
use yirage_plancache::{
    CacheNotice, CacheOptions, CallOptions, Interface, Mode, PlanCache, PlanFile, PlanFileError, PlanFolder, PlanKey,
    planned,
};

fn with_folder(device: Arc<dyn Device>, folder: &Path) -> PlanCache {
    let folder = Some(PlanFolder::new(folder.into(), 1 << 20));
    PlanCache::new(device, CacheOptions { folder, ..CacheOptions::default() })
}

fn plans(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn what_one_cache_compiled_another_reads() {
    for device in devices() {
        let folder = tempfile::tempdir().unwrap();
        let graph = bound(block());
        let ins = inputs(graph.graph(), &tokens(5), 1);
        let first = with_folder(device.clone(), folder.path());
        let wanted =
            [Mode::Fusion, Mode::GraphReplay].map(|mode| bits(&first.call(&graph, &ins, mode).unwrap().outputs));
        assert_eq!((first.stats().compiled, first.stats().read, plans(folder.path()).len()), (2, 0, 2));
        let second = with_folder(device, folder.path());
        for (mode, wanted) in [Mode::Fusion, Mode::GraphReplay].into_iter().zip(&wanted) {
            let called = second.call(&graph, &ins, mode).unwrap();
            assert_eq!((bits(&called.outputs), called.mode, called.notices), (wanted.clone(), mode, vec![]));
        }
        let stats = second.stats();
        assert_eq!((stats.compiled, stats.read, stats.recordings, stats.cache_misses), (0, 2, 2, 2));
    }
}

/// The fused plan of the block, as a file.
fn file(device: &dyn Device, graph: &Graph) -> PlanFile {
    let options = CallOptions { dims: Dims { seqs: 2, blocks: 4, ..tokens(5) }, ..CallOptions::default() };
    let plan = planned(graph, &device.target(), &options).unwrap();
    let key = PlanKey::of(graph, plan.bucket, &device.target(), &options.compiling());
    PlanFile { key, interface: Interface::of(graph), plan: plan.into_plan() }
}

#[test]
fn a_file_reads_back_as_what_was_written() {
    for device in devices() {
        let written = file(&*device, &block());
        let text = written.print().unwrap();
        assert_eq!(PlanFile::parse(&text).unwrap(), written);
        let proved = PlanFile::parse(&text).unwrap().prove(&device.target()).unwrap();
        assert_eq!((*proved.plan).clone(), written.plan);
    }
}

#[test]
fn plans_with_caches_are_files_too() {
    let graph = yirage_ir::text::parse(include_str!("../../../yirage-plan/tests/work/layer.txt")).unwrap();
    let target = cpu().target();
    let bucket = Dims { tokens: 8, seqs: 2, blocks: 3, rows: 4 };
    let options = CompileOptions::default();
    let plan = compile(&graph, bucket, &target, &plan_weights(&graph, &target).unwrap(), &options).unwrap();
    let key = PlanKey::of(&graph, bucket, &target, &options);
    let file = PlanFile { key, interface: Interface::of(&graph), plan: plan.into_plan() };
    assert_eq!(file.interface.kv_caches.len(), 1);
    let read = PlanFile::parse(&file.print().unwrap()).unwrap();
    assert_eq!(read.prove(&target).unwrap().interface, file.interface);
}

/// A text with a checksum that fits.
fn resummed(text: &str) -> String {
    let (head, rest) = text.split_once('\n').unwrap();
    let (_, rest) = rest.split_once('\n').unwrap();
    format!("{head}\nsum {}\n{rest}", sealed::sum(rest))
}

/// The text with one thing replaced in the first section that has it, whole otherwise.
fn replaced(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "{from}");
    let names = ["key", "interface", "plan"];
    let bodies = sealed::open("yirage-plan 2", names, text).unwrap();
    let first = bodies.iter().position(|body| body.contains(from)).unwrap();
    let mut changed = bodies.map(str::to_owned);
    changed[first] = changed[first].replacen(from, to, 1);
    let sections: Vec<_> = names.into_iter().zip(changed.iter().map(String::as_str)).collect();
    sealed::seal("yirage-plan 2", &sections)
}

#[test]
fn foreign_stale_and_damaged_files_are_refused_with_their_reason() {
    let device = cpu();
    let written = file(&*device, &block());
    let text = written.print().unwrap();
    let refused = |text: &str| match PlanFile::parse(text).and_then(|file| file.prove(&device.target())) {
        Ok(_) => (String::new(), "it was taken".into()),
        Err(why) => (format!("{why:?}").split(['(', ' ']).next().unwrap().to_owned(), why.to_string()),
    };
    let compiler = format!("compiler {}", written.key.compiler);
    let sections = text.find("\nkey ").unwrap();
    for (changed, kind, words) in [
        (String::new(), "Seal", "it begins with ``"),
        (text.replacen("yirage-plan 2", "yirage-plan 3", 1), "Seal", "of another version"),
        (text.replacen("precision exact", "precision fast", 1), "Seal", "it was damaged"),
        (text[..text.len() / 2].to_owned(), "Seal", "it was damaged"),
        (format!("{text}x"), "Seal", "it was damaged"),
        (resummed(&format!("{text}x")), "Seal", "1 bytes follow its end"),
        (resummed(&text[..text.len() / 2]), "Seal", "its section `plan` is not whole"),
        (resummed(&text[..=sections]), "Seal", "its section `key` is not whole"),
        (replaced(&text, &compiler, "compiler 0.0.9 1"), "Other", "made for another compiler: `0.0.9 1`"),
        (replaced(&text, "\ntarget ", "\ntarget x"), "Other", "made for another target"),
        (replaced(&text, "\nfacts ", "\nfacts 0"), "Line", "hexadecimal digits"),
        (replaced(&text, "fuse true", "fuse maybe"), "Line", "true or false wanted"),
        (replaced(&text, "bucket 5", "bucket 6"), "Other", "made for another bucket"),
        (replaced(&text, "precision exact", "precision fast"), "Other", "made for another precision"),
        (replaced(&text, "input %x: f32[Tokens, 64]", "input %x: f32[Tokens, 65]"), "Other", "another interface"),
        (replaced(&text, "input %x", "weight %x"), "Line", "`input` stands behind `weight`"),
        (text.replacen("yirage-plan 2", "yirage-plan 1", 1), "Seal", "it begins with `yirage-plan 1`, `yirage-plan 2`"),
        (replaced(&text, "input %x", "slot %x"), "Line", "`slot` is a word of text form 1, form 2 says `input`"),
        (replaced(&text, "\nplacement ", "\nplace "), "Text", "`place` is a word of text form 1"),
        (replaced(&text, "%y = ", "%z = "), "Text", "line"),
        (replaced(&text, "step node=0", "step node=1"), "Plan", "its proof fails"),
        (replaced(&text, " offset=0 bytes", " offset=1 bytes"), "Plan", "its proof fails"),
    ] {
        let (found, why) = refused(&changed);
        assert_eq!((found.as_str(), why.contains(words)), (kind, true), "{words}: {why}");
    }
    // A key that fits the interface of another graph, whose plan this is not.
    let other = file(&*device, &support::small("other", 2.0));
    let key = PlanKey { interface: other.key.interface, ..written.key.clone() };
    let made = PlanFile { key, interface: other.interface, plan: written.plan.clone() };
    let why = made.prove(&device.target()).unwrap_err();
    assert!(matches!(why, PlanFileError::Interface(_)) && why.to_string().contains("it reads the step input"), "{why}");
    let here = open(&Reference::default()).target();
    let foreign = PlanFile::parse(&text).unwrap().prove(&here).unwrap_err();
    assert!(matches!(&foreign, PlanFileError::Other { field: "target", .. }), "{foreign}");
}

#[test]
fn a_plan_of_other_threads_is_foreign() {
    let threads = |n| Cpu.open(0, &OpenOptions { threads: Some(n), ..OpenOptions::default() }).unwrap().0;
    let written = file(&*threads(1), &block());
    let refused = written.prove(&threads(2).target()).unwrap_err();
    assert!(refused.to_string().contains("workers=1") && refused.to_string().contains("workers=2"), "{refused}");
}

#[test]
fn what_is_refused_is_told_and_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let graph = bound(block());
    let ins = inputs(graph.graph(), &tokens(5), 1);
    let call = || {
        let cache = with_folder(cpu(), folder.path());
        let called = cache.call(&graph, &ins, Mode::Fusion).unwrap();
        (called, cache.stats())
    };
    let wanted = bits(&call().0.outputs);
    let [path] = &plans(folder.path())[..] else { panic!() };
    let whole = std::fs::read_to_string(path).unwrap();
    let of_another_graph = {
        let other = support::bound(support::small("other", 2.0));
        let elsewhere = tempfile::tempdir().unwrap();
        let cache = with_folder(cpu(), elsewhere.path());
        cache.call(&other, &inputs(other.graph(), &tokens(5), 1), Mode::Fusion).unwrap();
        std::fs::read_to_string(&plans(elsewhere.path())[0]).unwrap()
    };
    let damaged: [(Vec<u8>, &str); 6] = [
        (whole.as_bytes()[..whole.len() - 7].to_vec(), "it was damaged"),
        (vec![0xff; 10], "not UTF-8"),
        (replaced(&whole, "compiler ", "compiler 9").into_bytes(), "another compiler"),
        (replaced(&whole, "\nfacts ", "\nfacts 0").into_bytes(), "hexadecimal"),
        (of_another_graph.into_bytes(), "another graph"),
        (replaced(&whole, "step node=0", "step node=1").into_bytes(), "its proof fails"),
    ];
    for (bytes, why) in damaged {
        std::fs::write(path, &bytes).unwrap();
        let (called, stats) = call();
        assert!(
            matches!(&called.notices[..], [CacheNotice::Refused { file, why: told }] if file == path && told.contains(why)),
            "{why}: {:?}",
            called.notices
        );
        assert_eq!((stats.refused, stats.compiled, stats.read), (1, 1, 0), "{why}");
        assert_eq!(bits(&called.outputs), wanted);
        let (called, stats) = call();
        assert_eq!((called.notices, stats.read), (vec![], 1), "{why}: what was made again took its place");
        assert_eq!(std::fs::read_to_string(path).unwrap(), whole);
    }
}

#[test]
fn what_cannot_be_written_is_told_and_changes_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "in the way").unwrap();
    let graph = bound(block());
    let ins = inputs(graph.graph(), &tokens(5), 1);
    let called = with_folder(cpu(), &file.join("folder")).call(&graph, &ins, Mode::Fusion).unwrap();
    assert!(called.notices.iter().any(|told| matches!(told, CacheNotice::NotWritten { .. })), "{:?}", called.notices);
    let small = PlanCache::new(
        cpu(),
        CacheOptions { folder: Some(PlanFolder::new(folder.path().into(), 10)), ..CacheOptions::default() },
    );
    let told = small.call(&graph, &ins, Mode::Fusion).unwrap().notices;
    assert!(
        matches!(&told[..], [CacheNotice::NotWritten { why, .. }] if why.contains("does not fit into the 10")),
        "{told:?}"
    );
}
