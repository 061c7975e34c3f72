//! `--tp` and `--pp`: ranks that are processes, from their start to every way in which they end.

#![cfg(target_os = "linux")]

use crate::serve::Serving;
use crate::support::{TINY, bedtime, joined, yirage};
use std::fs;
use std::io::Read;
use std::process::{Child, Command};
use std::thread::sleep;
use std::time::{Duration, Instant};
use yirage_testkit::bedtime::golden;

/// How long something that happens within seconds may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// The ways in which ranks divide a model: each has its part of every layer, or some layers.
const WAYS: [&str; 2] = ["--tp", "--pp"];

/// The processes that a process has started and that still run, in the order of their numbers.
fn children(of: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{of}/task/{of}/children")).unwrap_or_default();
    let mut numbers: Vec<u32> = text.split_whitespace().map(|word| word.parse().unwrap()).collect();
    numbers.sort_unstable();
    numbers
}

/// Waits until something is so.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "{what} within {PATIENCE:?}");
        sleep(Duration::from_millis(5));
    }
}

/// Whether a process is no more, or only waits for its end to be heard of.
fn is_gone(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_none_or(|rest| matches!(rest.split_whitespace().next(), None | Some("Z" | "X")))
}

fn signal(name: &str, process: u32) {
    assert!(Command::new("kill").args([name, &process.to_string()]).status().unwrap().success());
}

/// An answer of two ranks that would go on for very long, once its first bytes are there; and its follower.
fn long_run(way: &str, more: &[&str]) -> (Child, u32) {
    let model = bedtime();
    let run = ["run", "-m", &model, "-p", "Once", "--context", "30000", "-n", "29000", "--ignore-eos", way, "2"];
    let mut child = yirage(&[&run, more].concat()).reading();
    child.stdout.as_mut().unwrap().read_exact(&mut [0; 8]).unwrap();
    let followers = children(child.id());
    assert_eq!(followers.len(), 1, "{followers:?}");
    (child, followers[0])
}

fn ended(child: Child) -> (Option<i32>, String) {
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn several_ranks_give_the_tokens_of_one() {
    let (model, golden) = (bedtime(), golden());
    let case = &golden["cases"][0];
    let n = case["greedy_ids"].as_array().unwrap().len().to_string();
    let ids = joined(&case["prompt_ids"]);
    let run = ["run", "-m", &model, "-n", &n, "--temperature", "0", "--precision", "exact", "--prompt-ids", &ids];
    for (way, ranks) in [("--tp", "1"), ("--tp", "2"), ("--tp", "4"), ("--pp", "2"), ("--pp", "3")] {
        let ran = yirage(&[&run[..], &["--json", way, ranks]].concat()).ran();
        assert_eq!(ran.json()["tokens"], case["greedy_ids"], "{way} {ranks}");
        assert_eq!(ran.err.contains("threads each"), ranks != "1", "{}", ran.err);
    }
}

/// Guesses, drawn tokens, penalties and masks are rank 0's business: what they say is as it is with one.
#[test]
fn what_is_sampled_is_the_same() {
    let model = bedtime();
    let run = ["run", "-m", &model, "-p", "Tom and Tom and", "-n", "48", "--json", "-q", "--seed", "7"];
    for more in [&["--temperature", "1.2"][..], &["--frequency-penalty", "1"], &["--precision", "fast"]] {
        let tokens = |ranks: &[&str]| yirage(&[&run, more, ranks].concat()).json()["tokens"].clone();
        let one = tokens(&[]);
        WAYS.iter().for_each(|way| assert_eq!(tokens(&[way, "2"]), one, "{way} {more:?}"));
    }
}

#[test]
fn every_command_that_computes_takes_ranks() {
    let model = bedtime();
    let talk = ["chat", "-m", &model, "--raw", "-n", "4", "--temperature", "0", "-q"];
    let talked = |ranks: &[&str]| yirage(&[&talk[..], ranks].concat()).input("Once\n/exit\n").ran();
    let one = talked(&[]);
    for way in WAYS {
        let two = talked(&[way, "2"]);
        assert_eq!((two.code, &two.out), (0, &one.out), "{way}: {}", two.err);
        let bench = ["bench", "-m", &model, "-p", "8", "-n", "8", "-r", "1", way, "2", "--threads", "1,2", "-q"];
        let ran = yirage(&bench).ran();
        assert_eq!(ran.code, 0, "{way}: {}", ran.err);
        let server = Serving::new(&[way, "2", "--threads", "1"]);
        let body = r#"{"prompt": "Once", "max_tokens": 4, "temperature": 0}"#;
        let (status, answer) = server.ask("POST", "/v1/completions", "", body);
        assert_eq!(status, 200, "{way}: {answer}");
        let follower = children(server.process())[0];
        let ran = server.ended();
        assert_eq!(ran.code, 0, "{way}: {}", ran.err);
        until("the follower ends", || is_gone(follower));
    }
}

#[test]
fn what_cannot_be_is_refused_with_the_numbers() {
    let model = bedtime();
    let refused = |model: &str, more: &[&str]| {
        yirage(&[&["run", "-m", model, "--prompt-ids", "1,2", "-n", "2"], more].concat()).ran()
    };
    let cases: [(&str, &[&str], i32, &str); 14] = [
        (&model, &["--tp", "0"], 2, "--tp: expected a number of ranks from 1 to 64, not \"0\""),
        (&model, &["--tp", "65"], 2, "--tp: expected a number of ranks from 1 to 64, not \"65\""),
        (&model, &["--tp", "two"], 2, "--tp: expected a number of ranks from 1 to 64"),
        (
            &model,
            &["--tp", "3"],
            2,
            "--tp: expected a number of ranks that divides the KV heads of the model (4), got 3; use 1, 2 or 4",
        ),
        (&model, &["--tp", "2", "--ep", "4"], 2, "--ep: expected 1, or 2 as --tp says, not \"4\""),
        (&model, &["--ep", "2"], 2, "--ep: expected a model with experts, got one without"),
        (&model, &["--tp", "2", "--backend", "reference"], 3, "reference cannot be one of several ranks of a model"),
        (&model, &["--launch", "mpi"], 2, "--launch: mpirun has not started this process; start it by `mpirun -n N"),
        (&model, &["--pp", "0"], 2, "--pp: expected a number of stages from 1 to 64, not \"0\""),
        (&model, &["--pp", "50"], 2, "--pp: expected as many stages as the model has layers at most ("),
        (&model, &["--pp", "2", "--tp", "2"], 2, "--pp: expected 1, as 2 ranks share every layer (--tp, --ep)"),
        (&model, &["--pp", "2", "--ep", "2"], 2, "--pp: expected 1, as 2 ranks share every layer (--tp, --ep)"),
        (&model, &["--pp", "2", "--variant", "fetch=0"], 3, ""),
        (&model, &["--tp", "2", "--rank-time", "0"], 2, "--rank-time: expected seconds above 0"),
    ];
    for (model, more, code, said) in cases {
        let ran = refused(model, more);
        assert!(ran.code == code && ran.err.contains(said) && ran.out.is_empty(), "{more:?}: {} {}", ran.code, ran.err);
    }
    // What a device refuses is said once, by rank 0, and the others end without a word.
    for way in WAYS {
        let ran = refused(&model, &[way, "2", "--isa", "no-such"]);
        assert!(ran.code == 2 && ran.err.lines().count() == 1 && ran.err.contains("--isa: "), "{way}: {}", ran.err);
    }
}

/// Stages on devices of two kinds.
#[test]
fn each_stage_may_have_a_backend_of_its_own() {
    let run = ["run", "-m", TINY, "--prompt-ids", "1,2,3", "-n", "6", "--temperature", "0", "--threads", "1"];
    let of = |more: &[&str]| yirage(&[&run[..], &["--precision", "exact"], more].concat()).ran();
    let (one, two) = (of(&[]), of(&["--pp", "2", "--backend", "cpu,reference"]));
    assert_eq!((two.code, &two.out), (0, &one.out), "{}", two.err);
    for (more, said) in [
        (&["--backend", "cpu,reference"][..], "--backend: expected one backend, as there are no stages of a pipeline"),
        (&["--pp", "3", "--backend", "cpu,cpu"], "--backend: expected one backend, or 3, one for each stage of --pp"),
    ] {
        let refused = of(more);
        assert!(refused.code == 2 && refused.err.contains(said), "{more:?}: {}", refused.err);
    }
}

/// Where each rank has layers whole, what was computed of a prompt is kept and taken back, from and for one device too.
#[test]
fn a_prompt_of_stages_is_kept_in_a_file() {
    let (model, folder) = (bedtime(), tempfile::tempdir().unwrap());
    let file = folder.path().join("prompt.cache").display().to_string();
    let words = "Once upon a time there was a little bear who lived in the deep forest with his mother and his father.";
    let run = ["run", "-m", &model, "-p", words, "-n", "8", "--temperature", "0", "--prompt-cache", &file, "--json"];
    let of = |more: &[&str]| yirage(&[&run[..], more].concat()).json();
    let (first, again, alone) = (of(&["--pp", "2"]), of(&["--pp", "2"]), of(&[]));
    assert_eq!(first["tokens"], again["tokens"]);
    assert_eq!(first["tokens"], alone["tokens"]);
    let cached = |answer: &serde_json::Value| answer["cached_tokens"].as_u64().unwrap_or(0);
    assert!(cached(&first) == 0 && cached(&again) > 0 && cached(&alone) > 0, "{first} {again} {alone}");
}

#[test]
fn one_head_of_keys_that_all_queries_read_is_on_each_rank() {
    let of = |ranks: &[&str]| {
        let run = ["run", "-m", TINY, "--prompt-ids", "1,2,3", "-n", "6", "--temperature", "0", "--threads", "1"];
        let ran = yirage(&[&run[..], ranks].concat()).ran();
        assert_eq!(ran.code, 0, "{}", ran.err);
        ran
    };
    let (one, two) = (of(&[]), of(&["--tp", "2"]));
    assert_eq!(one.out, two.out);
    assert!(two.err.contains("have no heads to divide: each rank has all of them"), "{}", two.err);
}

#[test]
fn a_dead_follower_ends_the_answer_with_an_error() {
    for way in WAYS {
        let (child, follower) = long_run(way, &["--threads", "1"]);
        signal("-KILL", follower);
        let (code, err) = ended(child);
        let said = err.contains("rank 1 is gone") && err.contains("is dead");
        assert!(code == Some(1) && said, "{way}: {code:?} {err}");
    }
}

#[test]
fn a_stopped_follower_ends_the_answer_within_the_deadline() {
    for way in WAYS {
        let (child, follower) = long_run(way, &["--threads", "1", "--rank-time", "1"]);
        signal("-STOP", follower);
        let (code, err) = ended(child);
        let said = err.contains("rank 1 has not come within 1.0s") && err.contains("is stopped");
        assert!(code == Some(1) && said, "{way}: {code:?} {err}");
        assert!(is_gone(follower), "a stopped follower is ended too");
    }
}

#[test]
fn no_follower_outlives_its_leader() {
    for way in WAYS {
        for (name, code) in [("-KILL", None), ("-INT", Some(130)), ("-TERM", None)] {
            let (child, follower) = long_run(way, &["--threads", "1"]);
            signal(name, child.id());
            let ended = ended(child);
            assert_eq!(ended.0, code, "{way} {name}: {}", ended.1);
            until("the follower ends", || is_gone(follower));
        }
        // One that is stopped cannot hear of it, and is killed with its leader.
        let (child, follower) = long_run(way, &["--threads", "1"]);
        signal("-STOP", follower);
        signal("-KILL", child.id());
        ended(child);
        until("the stopped follower ends", || is_gone(follower));
    }
    let left = fs::read_dir("/dev/shm").unwrap().filter_map(Result::ok);
    assert!(!left.into_iter().any(|file| file.file_name().to_string_lossy().contains("yirage")));
}

/// Nobody asks the server anything: it finds out by itself.
#[test]
fn a_server_without_a_rank_says_so_and_ends() {
    for (way, name) in WAYS.iter().flat_map(|way| [(*way, "-KILL"), (*way, "-STOP")]) {
        let server = Serving::new(&[way, "2", "--threads", "1", "--rank-time", "1"]);
        assert_eq!(server.status("/health", ""), 200);
        signal(name, children(server.process())[0]);
        let ran = server.has_ended();
        let said = ["the server has ended: ", "rank 1 "];
        assert!(
            ran.code == 1 && said.iter().all(|part| ran.err.contains(part)),
            "{way} {name}: {} {}",
            ran.code,
            ran.err
        );
    }
}

/// Requests that are open end with the reason, and so does the server.
#[test]
fn a_server_without_a_rank_ends_its_requests_with_the_reason() {
    for way in WAYS {
        let server = Serving::new(&[way, "2", "--threads", "1"]);
        let mut open = server.long();
        signal("-KILL", children(server.process())[0]);
        let mut rest = String::new();
        open.read_to_string(&mut rest).unwrap();
        assert!(rest.contains("rank 1 is gone"), "{way}: {rest}");
        let ran = server.has_ended();
        let said = ["the server has ended: ", "is dead"];
        assert!(ran.code == 1 && said.iter().all(|part| ran.err.contains(part)), "{way}: {}", ran.err);
    }
}

/// Of a rank that is killed or stopped under a server: an open stream ends with the reason, `/health` is 503 with it as long as that
/// takes, and the process ends with its code; no process of it and no file of shared memory is left.
#[test]
fn a_server_that_has_lost_a_rank_is_unready_drains_and_leaves_nothing() {
    for (name, reason) in [("-KILL", "is gone"), ("-STOP", "has not come within 1.0s")] {
        let server = Serving::new(&["--tp", "2", "--threads", "1", "--rank-time", "1", "--drain-time", "20"]);
        assert_eq!(server.status("/health/ready", ""), 200);
        let (mut open, leader) = (server.long(), server.process());
        let follower = children(leader)[0];
        signal(name, follower);
        let mut rest = String::new();
        open.read_to_string(&mut rest).unwrap();
        assert!(rest.contains(&format!("rank 1 {reason}")) && !rest.contains("[DONE]"), "{name}: {rest}");
        let mut last = (200, String::new());
        until("the server is unready", || {
            last = server.ask("GET", "/health/ready", "", "");
            last.0 != 200
        });
        assert!(last.0 == 503 && last.1.contains("rank 1 ") && last.1.contains("engine_dead"), "{name}: {last:?}");
        let (status, refused) = server.ask("POST", "/v1/completions", "", r#"{"prompt": "Once"}"#);
        assert!(status == 503 && refused.contains("about to end"), "{name}: {status} {refused}");
        let ran = server.has_ended();
        let said = ["the server has ended: ", "rank 1 "];
        assert!(ran.code == 1 && said.iter().all(|part| ran.err.contains(part)), "{name}: {} {}", ran.code, ran.err);
        until("no process is left", || is_gone(follower) && is_gone(leader));
        let left = fs::read_dir("/dev/shm").unwrap().filter_map(Result::ok);
        assert!(!left.into_iter().any(|file| file.file_name().to_string_lossy().contains("yirage")));
    }
}

#[test]
#[ignore = "needs mpirun.openmpi and mpirun.mpich"]
fn ranks_of_mpi_give_the_tokens_of_one() {
    let (model, golden) = (bedtime(), golden());
    let case = &golden["cases"][0];
    let ids = joined(&case["prompt_ids"]);
    for launcher in ["mpirun.openmpi", "mpirun.mpich"] {
        let mpirun = |ranks: &str, more: &[&str]| {
            let mut command = Command::new(launcher);
            if launcher.ends_with("openmpi") {
                command.args(["--oversubscribe", "--allow-run-as-root"]);
            }
            command.args(["-n", ranks, env!("CARGO_BIN_EXE_yirage"), "run", "-m", &model, "--prompt-ids", &ids]);
            command.args(["-n", "8", "--temperature", "0", "--precision", "exact", "--launch", "mpi", "-t", "1"]);
            command.args(more).env("YIRAGE_WEIGHT_CACHE", "off").output().unwrap()
        };
        for (ranks, more) in
            [("1", &["--json"][..]), ("2", &["--json"]), ("4", &["--json"]), ("2", &["--json", "--pp", "2"])]
        {
            let output = mpirun(ranks, more);
            let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            assert!(output.status.success(), "{launcher}: {out}{err}");
            let answer: serde_json::Value = serde_json::from_str(out.trim()).unwrap();
            assert_eq!(answer["tokens"].as_array().unwrap()[..], case["greedy_ids"].as_array().unwrap()[..8]);
        }
        for way in WAYS {
            let output = mpirun("2", &[way, "4"]);
            let err = String::from_utf8_lossy(&output.stderr);
            assert!(
                !output.status.success() && err.contains("expected 2, as many ranks as mpirun has started"),
                "{launcher} {way}: {err}"
            );
        }
    }
}
