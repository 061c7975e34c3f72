//! What is chosen, measured and kept, with a clock and a verifier of the test's own, on the reference device.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;
use yirage_hal::reference::Reference;
use yirage_hal::{Backend, Device, OpenOptions};
use yirage_ir::{Dims, Graph, text, verify};
use yirage_search::DeviceRates;
use yirage_search::equal::{CHECKER_VERSION, Certificate, NotEqual};
use yirage_tune::{
    CandidateResult, CandidateVerdict, SearchContext, SearchOutcome, SearchResultOrigin, SearchStatus, Stopwatch,
    SuperOptions, TimedGraphId, TuneCache, TuneCacheCounters, TuneCacheFolder, TuneError, limits::PAIRS,
    superoptimize_with,
};

fn device() -> Arc<dyn Device> {
    Reference::new().open(0, &OpenOptions::default()).unwrap().0
}

/// x (W + A B), which has several better forms.
fn adapter() -> Graph {
    text::parse(
        "graph adapter { input %x: f32[4, 32] input %w: f32[32, 64] input %a: f32[32, 2] input %b: f32[2, 64]
           %ab = contract(%a, %b): f32[32, 64] %s = map{expr=\"add(x0, x1)\"}(%w, %ab): f32[32, 64]
           %y = contract(%x, %s): f32[4, 64] output %y }",
    )
    .unwrap()
}

fn options() -> SuperOptions {
    // Nothing is measured that the script does not say.
    let rates = DeviceRates { launch_ns: 1, ..DeviceRates::UNMEASURED };
    SuperOptions {
        budget: 500,
        keep: 4,
        warmup_iters: 1,
        profile_iters: 1,
        rates: Some(rates),
        ..SuperOptions::default()
    }
}

/// Candidates take as long as is said, the input a millisecond.
struct Script<F>(F, RefCell<usize>);

impl<F: Fn(usize) -> f64> Stopwatch for Script<F> {
    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }
    fn time(&self, graph: TimedGraphId, run: &mut dyn FnMut() -> Result<(), TuneError>) -> Result<Duration, TuneError> {
        run()?;
        *self.1.borrow_mut() += 1;
        let ratio = if let TimedGraphId::Candidate(number) = graph { (self.0)(number) } else { 1.0 };
        Ok(Duration::from_secs_f64(ratio * 1e-3))
    }
}

fn certificate(original: &Graph, candidate: &Graph) -> Result<Certificate, NotEqual> {
    verify(candidate).unwrap();
    let (original, candidate) = Certificate::names(original, candidate);
    Ok(Certificate {
        version: CHECKER_VERSION,
        original,
        candidate,
        seed: 1,
        sizes: vec![Dims::default()],
        fields: Vec::new(),
        classes: Vec::new(),
    })
}

type Proof = fn(&Graph, &Graph) -> Result<Certificate, NotEqual>;

fn run_with(
    graph: &Graph,
    options: &SuperOptions,
    cache: &TuneCache,
    verify: Proof,
    ratio: impl Fn(usize) -> f64,
) -> SearchOutcome {
    let (device, stopwatch) = (device(), Script(ratio, RefCell::new(0)));
    let with = SearchContext { device: &*device, cache, stopwatch: &stopwatch, verify: &verify };
    superoptimize_with(graph, options, &with, &mut |_| ControlFlow::Continue(())).unwrap()
}

fn run(cache: &TuneCache, ratio: impl Fn(usize) -> f64) -> SearchOutcome {
    run_with(&adapter(), &options(), cache, certificate, ratio)
}

#[test]
fn the_fastest_candidate_with_a_certificate_is_chosen_not_the_first() {
    let outcome = run(&TuneCache::new(None), |number| if number == 1 { 0.5 } else { 0.9 });
    assert!(outcome.measured.len() >= 2, "{outcome:?}");
    assert_eq!((outcome.origin, outcome.input_stays()), (SearchResultOrigin::Searched, false));
    assert_eq!(outcome.rules, outcome.measured[1].rules);
    let CandidateVerdict::Timed { first, second: Some(second) } = outcome.measured[1].verdict else {
        panic!("{outcome:?}")
    };
    for look in [first, second] {
        assert!((look.ratio - 0.5).abs() < 1e-6 && (look.input.median_ns - 1e6).abs() < 1.0);
        assert!((look.candidate.median_ns - 5e5).abs() < 1.0 && look.wins == look.pairs && !look.is_disturbed());
    }
    let once = |m: &&CandidateResult| matches!(m.verdict, CandidateVerdict::Timed { second: None, .. });
    assert_eq!(outcome.measured.iter().filter(once).count(), outcome.measured.len() - 1, "the others were slower");
    outcome.certificate.unwrap().check(&adapter(), &outcome.graph).unwrap();
}

/// A candidate's times that change with how often it ran: of each look's steps one warms up.
struct Changing<F>(F, RefCell<Vec<usize>>);

impl<F: Fn(usize, usize) -> f64> Stopwatch for Changing<F> {
    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }
    fn time(&self, graph: TimedGraphId, _: &mut dyn FnMut() -> Result<(), TuneError>) -> Result<Duration, TuneError> {
        let TimedGraphId::Candidate(number) = graph else { return Ok(Duration::from_millis(1)) };
        let mut ran = self.1.borrow_mut();
        let numbers = ran.len().max(number + 1);
        ran.resize(numbers, 0);
        ran[number] += 1;
        Ok(Duration::from_secs_f64((self.0)(number, ran[number] - 1) * 1e-3))
    }
}

fn changing(cache: &TuneCache, ratio: impl Fn(usize, usize) -> f64) -> SearchOutcome {
    let (device, stopwatch) = (device(), Changing(ratio, RefCell::default()));
    let verify: Proof = certificate;
    let with = SearchContext { device: &*device, cache, stopwatch: &stopwatch, verify: &verify };
    superoptimize_with(&adapter(), &options(), &with, &mut |_| ControlFlow::Continue(())).unwrap()
}

#[test]
fn what_wins_once_and_not_again_is_not_taken() {
    // By pairs: the first look has the times below PAIRS.
    let none = changing(&TuneCache::new(None), |_, ran| if ran < PAIRS { 0.5 } else { 1.2 });
    assert!(none.input_stays() && none.measured.len() >= 2, "{none:?}");
    for measured in &none.measured {
        let shown = measured.verdict.to_string();
        assert!(matches!(measured.verdict, CandidateVerdict::Timed { second: Some(_), .. }), "{shown}");
        assert!(shown.contains("looked at again") && shown.contains("not taken: the median"), "{shown}");
    }
    // The next best that wins again is taken.
    let next = changing(&TuneCache::new(None), |number, ran| match number {
        1 if ran >= PAIRS => 1.2,
        1 => 0.5,
        _ => 0.8,
    });
    assert_eq!((next.input_stays(), &next.rules), (false, &next.measured[0].rules));
    assert!(next.measured[0].verdict.to_string().ends_with("taken"), "{}", next.measured[0].verdict);
    assert!(next.notes.iter().any(|note| note.contains("in turns with the input graph")), "{:?}", next.notes);
}

#[test]
fn what_was_measured_beside_something_else_is_not_kept_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let cache = || TuneCache::new(Some(TuneCacheFolder::new(folder.path().into(), 1 << 20)));
    let first = cache();
    // It wins every pair, and its times go up and down.
    let outcome = changing(&first, |_, ran| if ran % 2 == 0 { 0.5 } else { 0.9 });
    assert!(!outcome.input_stays());
    assert!(outcome.notes.iter().any(|note| note.contains("not kept on disk")), "{:?}", outcome.notes);
    assert!(outcome.measured.iter().any(|m| m.verdict.to_string().contains("disturbed in")), "{outcome:?}");
    assert_eq!(run(&first, |_| panic!("the process has it")).origin, SearchResultOrigin::Memory);
    assert_eq!(run(&cache(), |_| 0.5).origin, SearchResultOrigin::Searched);
    assert_eq!(run(&cache(), |_| panic!("a kept result is not measured")).origin, SearchResultOrigin::Disk);
}

#[test]
fn options_that_no_search_can_follow_are_refused_before_anything_is_done() {
    let device = device();
    let (late, cache, verify) = (Late(RefCell::new(0)), TuneCache::new(None), certificate as Proof);
    let with = SearchContext { device: &*device, cache: &cache, stopwatch: &late, verify: &verify };
    let none = SuperOptions { budget: 0, ..options() };
    let error = superoptimize_with(&adapter(), &none, &with, &mut |_| panic!("nothing is searched")).unwrap_err();
    assert!(matches!(error, TuneError::Option { option: "budget", .. }), "{error}");
    assert_eq!(cache.counters(), TuneCacheCounters::default());
}

#[test]
fn the_input_stays_where_nothing_is_faster_beyond_noise() {
    for ratio in [0.97, 0.99, 1.0, 3.0, f64::INFINITY] {
        let ratio = ratio.min(1e6);
        let outcome = run(&TuneCache::new(None), |_| ratio);
        assert!(outcome.input_stays() && outcome.graph == adapter() && outcome.rules.is_empty(), "{ratio}");
        assert!(outcome.measured.iter().any(|m| matches!(m.verdict, CandidateVerdict::Timed { .. })));
    }
}

#[test]
fn without_a_certificate_nothing_is_chosen_or_run() {
    let refuse: Proof = |_, _| Err(NotEqual::Interface("the test says so".into()));
    let outcome = run_with(&adapter(), &options(), &TuneCache::new(None), refuse, |_| 0.1);
    assert!(outcome.input_stays() && !outcome.measured.is_empty());
    for measured in &outcome.measured {
        let unproved = matches!(&measured.verdict, CandidateVerdict::Unproved(why) if why.contains("the test says so"));
        assert!(unproved || matches!(measured.verdict, CandidateVerdict::NotRun(_)), "{measured:?}");
    }
}

#[test]
fn a_result_is_kept_in_the_process_and_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let cache = || TuneCache::new(Some(TuneCacheFolder::new(folder.path().into(), 1 << 20)));
    let first = cache();
    let searched = run(&first, |_| 0.5);
    let again = run(&first, |_| panic!("a kept result is not measured"));
    assert_eq!(
        (again.origin, &again.graph, &again.measured),
        (SearchResultOrigin::Memory, &searched.graph, &searched.measured)
    );
    assert_eq!((again.certificate, again.rules, again.notes), (searched.certificate, searched.rules, searched.notes));
    assert_eq!(first.counters(), TuneCacheCounters { memory_hits: 1, misses: 1, ..TuneCacheCounters::default() });
    let second = cache();
    assert_eq!(run(&second, |_| panic!("a kept result is not measured")).origin, SearchResultOrigin::Disk);
    assert_eq!(run(&second, |_| panic!("what was read is kept")).origin, SearchResultOrigin::Memory);
    assert_eq!(second.counters(), TuneCacheCounters { memory_hits: 1, disk_hits: 1, ..TuneCacheCounters::default() });
    // The input that stays is a result too.
    let stays = SuperOptions { budget: 501, ..options() };
    run_with(&adapter(), &stays, &second, certificate, |_| 1.0);
    let kept = run_with(&adapter(), &stays, &second, certificate, |_| panic!("a kept result is not measured"));
    assert!(kept.input_stays() && kept.origin == SearchResultOrigin::Memory);
}

#[test]
fn a_result_is_that_of_every_way_to_write_the_graph() {
    // Other names, and the nodes that do not depend on each other in another order.
    let written = |order: &str| {
        let (ab, cd) = ("%ab = contract(%a, %b): f32[32, 64]", "%cd = map{expr=\"neg(x0)\"}(%w): f32[32, 64]");
        let nodes = if order == "ab" { [ab, cd] } else { [cd, ab] }.join("\n");
        let graph = format!(
            "graph adapter {{ input %x: f32[4, 32] input %w: f32[32, 64] input %a: f32[32, 2] input %b: f32[2, 64]
               {nodes}
               %s = map{{expr=\"sub(x1, x0)\"}}(%cd, %ab): f32[32, 64]
               %y = contract(%x, %s): f32[4, 64] output %y }}"
        );
        text::parse(&graph).unwrap()
    };
    let cache = TuneCache::new(None);
    let first = run_with(&written("ab"), &options(), &cache, certificate, |_| 0.5);
    assert!(!first.input_stays());
    let mut other = written("cd");
    for value in &mut other.values {
        value.name = format!("{}_of_mine", value.name);
    }
    let kept = run_with(&other, &options(), &cache, certificate, |_| panic!("a kept result is not measured"));
    assert_eq!((kept.origin, &kept.rules), (SearchResultOrigin::Memory, &first.rules));
    let names = |g: &Graph| g.inputs.iter().map(|&id| g.value(id).name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&kept.graph), names(&other));
    kept.certificate.unwrap().check(&other, &kept.graph).unwrap();
}

#[test]
fn another_graph_or_argument_or_device_is_another_result() {
    let folder = tempfile::tempdir().unwrap();
    let cache = TuneCache::new(Some(TuneCacheFolder::new(folder.path().into(), 1 << 20)));
    run(&cache, |_| 0.5);
    let told = |graph: &Graph, options: &SuperOptions| run_with(graph, options, &cache, certificate, |_| 0.5).origin;
    let wider = text::parse(&text::print(&adapter()).replace("64", "96")).unwrap();
    assert_eq!(told(&wider, &options()), SearchResultOrigin::Searched);
    let others = [
        SuperOptions { keep: 3, ..options() },
        SuperOptions { franges: Some(vec![4]), ..options() },
        SuperOptions { dims: Dims { tokens: 2, seqs: 1, blocks: 1, rows: 1 }, ..options() },
        SuperOptions { rates: Some(DeviceRates::UNMEASURED), ..options() },
    ];
    for other in others {
        assert_eq!(told(&adapter(), &other), SearchResultOrigin::Searched, "{other:?}");
    }
    assert_eq!(told(&adapter(), &options()), SearchResultOrigin::Memory);
    let unkept = SuperOptions { use_graph_dataset: false, use_cached_graphs: false, ..options() };
    assert_eq!(told(&adapter(), &unkept), SearchResultOrigin::Searched);
    let on_disk = SuperOptions { use_graph_dataset: false, ..options() };
    assert_eq!(told(&adapter(), &on_disk), SearchResultOrigin::Disk);
}

/// The one entry of a folder.
fn entry(folder: &std::path::Path) -> std::path::PathBuf {
    let mut files = std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().path());
    let only = files.find(|f| f.extension().is_some_and(|e| e == "tuned")).unwrap();
    assert!(files.next().is_none());
    only
}

#[test]
fn damaged_and_foreign_entries_are_refused_with_a_reason_and_searched_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = || TuneCache::new(Some(TuneCacheFolder::new(folder.path().into(), 1 << 20)));
    run(&store(), |_| 0.5);
    let path = entry(folder.path());
    let whole = std::fs::read(&path).unwrap();
    let text = String::from_utf8(whole.clone()).unwrap();
    // A sum of its own makes a change look whole, so that what lies behind is reached.
    let resummed = |changed: &str| {
        let (head, rest) = changed.split_once('\n').unwrap();
        let (_, rest) = rest.split_once('\n').unwrap();
        format!("{head}\nsum {}\n{rest}", yirage_packed::sealed::sum(rest)).into_bytes()
    };
    let replaced = |from: &str, to: &str| {
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text, "{from}");
        changed
    };
    let mut damaged: Vec<Vec<u8>> = vec![
        Vec::new(),
        b"\n".to_vec(),
        vec![0; 100],
        vec![0xff; 100],
        b"yirage-tune 4".to_vec(),
        replaced("yirage-tune 4", "yirage-tune 3").into_bytes(),
        [&whole[..], b"x"].concat(),
        resummed(&format!("{text}x")),
        resummed(&replaced("rules ", "rules 9")),
        resummed(&replaced("target reference", "target referenze")),
        resummed(&replaced("contract", "contrast")),
        resummed(&replaced("f32[4, 32]", "f32[4, 33]")),
        resummed(&replaced("equality ", "equality 9")),
        resummed(&replaced("candidate ", "candidate f")),
        resummed(&replaced("graph ", "graph 9999999999")),
        resummed(&replaced("graph ", "graph 99999999999999999999999")),
        resummed(&replaced("timed\t", "tamed\t")),
        replaced("input %", "inputs %").into_bytes(),
    ];
    damaged.extend([1, 3].map(|part| whole[..whole.len() * part / 4].to_vec()));
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 4;
    damaged.push(flipped);
    assert!(damaged.len() >= 20);
    for bytes in damaged {
        std::fs::write(&path, &bytes).unwrap();
        let cache = store();
        let outcome = run(&cache, |_| 0.5);
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).into_owned();
        assert_eq!(outcome.origin, SearchResultOrigin::Searched, "{shown}");
        assert!(
            outcome.notes.iter().any(|n| n.contains("refused and is searched again")),
            "{shown}: {:?}",
            outcome.notes
        );
        assert_eq!(
            cache.counters(),
            TuneCacheCounters { refusals: 1, misses: 1, ..TuneCacheCounters::default() },
            "{shown}"
        );
        assert!(!outcome.input_stays());
        // What was searched again has taken its place.
        assert_eq!(
            run(&store(), |_| panic!("a kept result is not measured")).origin,
            SearchResultOrigin::Disk,
            "{shown}"
        );
    }
}

#[test]
fn what_is_no_file_is_refused_and_changes_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let store = || TuneCache::new(Some(TuneCacheFolder::new(folder.path().into(), 1 << 20)));
    run(&store(), |_| 0.5);
    let path = entry(folder.path());
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    let outcome = run(&store(), |_| 0.5);
    assert!(
        outcome.origin == SearchResultOrigin::Searched
            && outcome.notes.iter().any(|n| n.contains("not a regular file"))
    );
    assert!(outcome.notes.iter().any(|n| n.contains("not kept on disk")), "{:?}", outcome.notes);
    assert!(path.is_dir());
}

#[test]
fn kept_results_keep_to_their_limits() {
    let folder = tempfile::tempdir().unwrap();
    let kept = |limit| TuneCache::new(Some(TuneCacheFolder::new(folder.path().into(), limit)));
    let tiny = kept(100);
    assert!(run(&tiny, |_| 0.5).notes.is_empty() || std::fs::read_dir(folder.path()).unwrap().count() == 0);
    let cache = kept(1 << 20);
    let one = |keep| run_with(&adapter(), &SuperOptions { keep, ..options() }, &cache, certificate, |_| 0.5);
    one(1);
    let bytes = std::fs::metadata(entry(folder.path())).unwrap().len();
    std::fs::write(folder.path().join("note.txt"), "not ours").unwrap();
    let cache = kept(bytes * 3);
    let one = |keep| run_with(&adapter(), &SuperOptions { keep, ..options() }, &cache, certificate, |_| 0.5);
    (1..=6).for_each(|keep| drop(one(keep)));
    let held: u64 = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|f| f.unwrap())
        .filter(|f| f.path().extension().is_some_and(|e| e == "tuned"))
        .map(|f| f.metadata().unwrap().len())
        .sum();
    assert!(held <= bytes * 3 && cache.counters().removed > 0, "{held} of {}", bytes * 3);
    assert!(folder.path().join("note.txt").exists());
    assert_eq!(one(6).origin, SearchResultOrigin::Memory);
    let small = TuneCache::with_limit(None, bytes);
    run_with(&adapter(), &SuperOptions { keep: 1, ..options() }, &small, certificate, |_| 0.5);
    run_with(&wider(), &SuperOptions { keep: 1, ..options() }, &small, certificate, |_| 0.5);
    assert!(small.counters().removed <= 1);
}

fn wider() -> Graph {
    text::parse(&text::print(&adapter()).replace("64", "96")).unwrap()
}

#[test]
fn who_watches_hears_of_it_and_may_end_it() {
    let (device, stopwatch, cache) = (device(), Script(|_| 0.5, RefCell::new(0)), TuneCache::new(None));
    let verify: Proof = certificate;
    let with = SearchContext { device: &*device, cache: &cache, stopwatch: &stopwatch, verify: &verify };
    let mut heard = (0, 0);
    let outcome = superoptimize_with(&adapter(), &options(), &with, &mut |doing| {
        match doing {
            SearchStatus::Searching(_) => heard.0 += 1,
            SearchStatus::Candidate { number, of } => {
                assert!(number < of);
                heard.1 += 1;
            }
            SearchStatus::Again(_) => panic!("who ended the search hears no more"),
        }
        if heard.1 == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
    .unwrap();
    assert!(heard.0 > 0 && heard.1 == 2);
    assert!(outcome.notes.iter().any(|n| n.contains("not kept")));
    assert!(matches!(&outcome.measured[1].verdict, CandidateVerdict::NotRun(why) if why.contains("ended")));
    let whole = superoptimize_with(&adapter(), &options(), &with, &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(whole.origin, SearchResultOrigin::Searched, "a search that was ended is not kept");
}

/// A clock that jumps with each look.
struct Late(RefCell<u64>);

impl Stopwatch for Late {
    fn elapsed(&self) -> Duration {
        *self.0.borrow_mut() += 1;
        Duration::from_secs(*self.0.borrow())
    }
    fn time(&self, _: TimedGraphId, _: &mut dyn FnMut() -> Result<(), TuneError>) -> Result<Duration, TuneError> {
        panic!("there is no time left")
    }
}

#[test]
fn a_time_limit_is_kept_and_what_it_cut_short_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let cache = || TuneCache::new(Some(TuneCacheFolder::new(folder.path().into(), 1 << 20)));
    let limited = SuperOptions { time_limit: Some(Duration::from_secs(2)), ..options() };
    let (device, late, verify, first) = (device(), Late(RefCell::new(0)), certificate as Proof, cache());
    let with = SearchContext { device: &*device, cache: &first, stopwatch: &late, verify: &verify };
    let outcome = superoptimize_with(&adapter(), &limited, &with, &mut |_| ControlFlow::Continue(())).unwrap();
    assert!(outcome.input_stays());
    assert!(
        outcome
            .measured
            .iter()
            .all(|m| matches!(&m.verdict, CandidateVerdict::NotRun(why) if why.contains("time limit")))
    );
    // The process has it. Another one may have more time, so nothing is on disk.
    assert!(outcome.notes.iter().any(|note| note.contains("time limit") && note.contains("not kept on disk")));
    let again = superoptimize_with(&adapter(), &limited, &with, &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(again.origin, SearchResultOrigin::Memory);
    let found = run_with(&adapter(), &limited, &cache(), certificate, |_| 0.5);
    assert_eq!((found.origin, found.input_stays()), (SearchResultOrigin::Searched, false));
    let kept = run_with(&adapter(), &limited, &cache(), certificate, |_| panic!("a kept result is not measured"));
    assert_eq!(kept.origin, SearchResultOrigin::Disk, "what was found in time is kept");
}
