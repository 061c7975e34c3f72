//! The first five minutes: what people type who have read nothing, and what they are told.

use crate::support::{Run, TINY, bedtime, yirage};

const GREEDY: [&str; 6] = ["-n", "3", "--temp", "0", "--precision", "exact"];

/// A run in a home of its own, without a network.
fn at_home(home: &tempfile::TempDir, arguments: &[&str]) -> Run {
    yirage(arguments).env("HF_HOME", home.path().to_str().unwrap())
}

fn prompt(model: &str, more: &[&str], piped: &str) -> serde_json::Value {
    let run = yirage(&[&["run", model, "--json"], more, &GREEDY].concat()).input(piped);
    run.json()["prompt_tokens"].clone()
}

#[test]
fn what_is_piped_in_is_the_prompt_or_stands_before_it() {
    let model = bedtime();
    let given = prompt(&model, &["-p", "In the deep forest"], "");
    assert_eq!(prompt(&model, &[], "In the deep forest\n"), given);
    let both = prompt(&model, &["-p", "One day,\n\nIn the deep forest"], "");
    assert_eq!(prompt(&model, &["In the deep forest"], "One day,\n"), both);
    let built_in = prompt(&model, &[], "");
    assert!(prompt(&model, &[], " \n\n") == built_in && built_in != given, "nothing is no prompt");
    let ids = prompt(&model, &["--prompt-ids", "1,2"], "not read");
    assert_eq!(ids, serde_json::json!([1, 2]));
}

#[cfg(target_os = "linux")]
#[test]
fn without_a_prompt_somebody_at_a_terminal_has_a_conversation() {
    let model = bedtime();
    let command = format!("'{}' run '{model}' {}", env!("CARGO_BIN_EXE_yirage"), GREEDY.join(" "));
    let mut shell = std::process::Command::new("script");
    shell.args(["-qec", &command, "/dev/null"]).env("YIRAGE_WEIGHT_CACHE", "off").env("TERM", "dumb");
    let home = tempfile::tempdir().unwrap();
    shell.env("HOME", home.path()).stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child = shell.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, b"In the deep forest\n/help\n/exit\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("type a message") && said.contains("forget the conversation"), "{said}");
    assert!(output.status.success(), "{said}");
}

#[test]
fn help_is_short_and_long_and_in_groups() {
    let told = |arguments: &[&str]| {
        let ran = yirage(arguments).ran();
        assert_eq!(ran.code, 0, "{}", ran.err);
        ran.out
    };
    let (short, long) = (told(&["-h"]), told(&["--help"]));
    for text in [&short, &long] {
        assert!(text.contains("Talk with a model:\n  run ") && text.contains("This machine:\n  devices "), "{text}");
    }
    assert!(long.contains("Exit codes:") && !short.contains("Exit codes:") && short.lines().count() < 60, "{short}");
    let (short, long) = (told(&["run", "-h"]), told(&["run", "--help"]));
    for heading in ["Model and device:", "Prompt:", "Choosing tokens:", "Any command:"] {
        assert!(short.contains(heading) && long.contains(heading), "{heading}: {short}");
    }
    assert!(long.contains("--presence-penalty") && !short.contains("--presence-penalty"), "{short}");
    assert!(long.contains("YIRAGE_SEED") && !short.contains("YIRAGE_SEED") && short.lines().count() < 60, "{short}");
}

#[test]
fn names_of_other_programs_work() {
    let tokens = |more: &[&str]| {
        let model = bedtime();
        yirage(&[&["run", &model, "--json", "-p", "One day", "--precision", "exact"], more].concat()).json()["tokens"]
            .clone()
    };
    let ours = tokens(&["--temperature", "0", "--max-tokens", "3", "--repetition-penalty", "2", "--context", "64"]);
    for flags in [
        ["--temp", "0", "--n-predict", "3", "--repeat-penalty", "2", "--ctx-size", "64"],
        ["--temp", "0", "--max_tokens", "3", "--repetition_penalty", "2", "--num-ctx", "64"],
    ] {
        assert_eq!(tokens(&flags), ours, "{flags:?}");
    }
    let ran = yirage(&["generate", TINY, "--prompt-ids", "1", "-n", "1", "-ngl", "99"]).ran();
    assert!(
        ran.code == 0 && ran.err.contains("--n-gpu-layers is not used") && ran.err.contains("--backend"),
        "{}",
        ran.err
    );
    assert_eq!(yirage(&["show", TINY, "--json"]).json(), yirage(&["inspect", TINY, "--json"]).json());
    let home = tempfile::tempdir().unwrap();
    assert_eq!(at_home(&home, &["ls"]).ran().out, at_home(&home, &["list"]).ran().out);
    let version = yirage(&["version", "--json"]).json();
    assert_eq!(version["version"], env!("CARGO_PKG_VERSION"));
    assert!(yirage(&["version"]).ran().out.contains(" cpu"), "{version}");
    for name in [["-hf", "o/no-such"], ["-m", "hf.co/o/no-such"], ["--hf-repo", "o/no-such"]] {
        let ran = at_home(&home, &["run", name[0], name[1], "-p", "x"]).ran();
        assert!(ran.code == 1 && ran.err.contains("hf:o/no-such is not in the cache"), "{name:?}: {}", ran.err);
    }
    let ran = yirage(&["run", "-hf", "o/r", "other"]).ran();
    assert!(ran.code == 2 && ran.err.contains("two models"), "{}", ran.err);
}

#[test]
fn what_is_not_here_says_what_to_type() {
    for (word, remedy) in [("ps", "/api/ps"), ("stop", "Ctrl-C"), ("push", "pull")] {
        let ran = yirage(&[word]).ran();
        assert!(ran.code == 2 && ran.err.contains(remedy), "{word}: {}", ran.err);
    }
    for (option, remedy) in [
        (&["--tensor-split=1,1"][..], "--pp N"),
        (&["--enable-expert-parallel"], "--ep N"),
        (&["--tensor-split", "1,1"], "--tp N"),
        (&["--gpu-memory-utilization", "0.9"], "--kv-memory"),
        (&["--no-mmap"], "yirage cache"),
        (&["--speculative-config", r#"{"method":"mtp"}"#], "--speculate"),
        (&["--speculative-algorithm", "NEXTN"], "mtp"),
        (&["--spec-type", "draft-mtp"], "mtp"),
        (&["--speculative-num-steps", "3"], "--draft-max"),
    ] {
        let ran = yirage(&[&["run", TINY, "--prompt-ids", "1"], option].concat()).ran();
        assert!(ran.code == 2 && ran.err.contains(remedy) && !ran.err.contains("similar"), "{option:?}: {}", ran.err);
    }
    for (slip, command) in [("rnu", "'run'"), ("sevre", "'serve'"), ("lsit", "'list'"), ("dcotor", "'doctor'")] {
        let ran = yirage(&[slip]).ran();
        assert!(ran.code == 2 && ran.err.contains(command), "{slip}: {}", ran.err);
    }
    let ran = yirage(&["run", "Why is the sky blue?"]).ran();
    assert!(ran.code == 2 && ran.err.contains("write -p \"Why is the sky blue?\""), "{}", ran.err);
    let ran = yirage(&["run", "qwen2.5:0.5b"]).ran();
    assert!(ran.code == 1 && ran.err.contains("hf:ORG/REPO:QUANT"), "{}", ran.err);
}

#[test]
fn devices_that_are_not_here_are_one_line() {
    let plain = yirage(&["devices"]).ran().out;
    assert!(plain.lines().filter(|line| line.starts_with("not here: ")).count() == 1, "{plain}");
    assert!(!plain.contains("unavailable: libascendcl.so is in none"), "{plain}");
    let verbose = yirage(&["devices", "-v"]).ran().out;
    assert!(verbose.contains("ascend (npu, huawei): unavailable: ") && !verbose.contains("not here: "), "{verbose}");
    assert!(verbose.contains("cambricon (mlu): unavailable: ") && verbose.contains("Cambricon's driver"), "{verbose}");
}

#[test]
fn what_was_measured_on_the_way_is_said_where_it_is_asked_for() {
    let (home, model) = (tempfile::tempdir().unwrap(), bedtime());
    let said = |more: &[&str]| {
        let run =
            yirage(&[&["run", &model, "-p", "One day, one day, one day,", "-n", "12", "--temp", "0"], more].concat());
        let ran =
            run.env("YIRAGE_WEIGHT_CACHE", "on").env("YIRAGE_WEIGHT_CACHE_DIR", home.path().to_str().unwrap()).ran();
        assert_eq!(ran.code, 0, "{}", ran.err);
        ran.err
    };
    let verbose = said(&["-v"]);
    assert!(verbose.contains("repacked the weights"), "{verbose}");
    std::fs::remove_dir_all(home.path()).unwrap();
    let plain = said(&[]);
    assert!(!["repacked", "guesses", "variant"].iter().any(|what| plain.contains(what)), "{plain}");
    assert!(plain.contains("tokens in"), "{plain}");
}

#[test]
fn what_yirage_cannot_compute_with_is_never_to_be_installed() {
    let unavailable = yirage(&["devices", "--json"]).json()["unavailable"].clone();
    let of = |name: &str| unavailable.as_array().unwrap().iter().find(|backend| backend["backend"] == name).unwrap();
    for name in ["kunlun", "qy", "ali"] {
        let told = of(name);
        assert!(told["why"].as_str().unwrap().contains("has no backend for it"), "{told}");
        assert_eq!(told["remedy"], "choose another backend", "{told}");
        let ran = yirage(&["run", TINY, "--prompt-ids", "1", "--backend", name]).ran();
        assert!(ran.code == 3 && !ran.err.contains("install"), "{}", ran.err);
    }
}

#[test]
fn doctor_ends_in_a_verdict_and_the_next_command() {
    let home = tempfile::tempdir().unwrap();
    let text = at_home(&home, &["doctor"]).ran().out;
    let last: Vec<&str> = text.lines().rev().take(2).collect();
    assert!(
        last[1].starts_with("verdict: models run here, on cpu 0") && last[0].starts_with("next: `yirage run`"),
        "{text}"
    );
    let verdict = &at_home(&home, &["doctor", "--json"]).json()["verdict"];
    assert!(verdict["ready"] == true && verdict["next"].as_str().unwrap().contains("yirage"), "{verdict}");
}

#[test]
fn where_nothing_can_be_fetched_the_programs_own_model_tells_stories() {
    let home = tempfile::tempdir().unwrap();
    let run = |more: &[&str]| at_home(&home, &[&["run", "-n", "4", "--json"], more].concat()).ran();
    let ran = run(&["--temp", "0"]);
    assert_eq!(ran.json()["model"], "yirage-stories");
    assert!(ran.err.contains("is no assistant") && ran.err.contains("HF_HUB_OFFLINE"), "{}", ran.err);
    let named = run(&["yirage-stories", "--temp", "0"]);
    assert_eq!(named.json()["tokens"], ran.json()["tokens"]);
    assert!(!named.err.contains("HF_HUB_OFFLINE"), "{}", named.err);
    // Its file brings settings.
    let explained = at_home(&home, &["config", "explain", "--model", "yirage-stories", "--json"]).json();
    let value = |name: &str| {
        let options = explained["options"].as_array().unwrap();
        options.iter().find(|option| option["name"] == name).unwrap()["value"].clone()
    };
    assert!(value("temperature").as_str().unwrap().starts_with("0.7"), "{}", value("temperature"));
    assert!(value("repetition-penalty").as_str().unwrap().starts_with("1.15"), "{}", value("repetition-penalty"));
}

#[test]
fn a_mistake_is_told_before_anything_is_fetched() {
    let home = tempfile::tempdir().unwrap();
    for (arguments, wanted) in [
        (&["inspect"][..], "`yirage inspect MODEL`"),
        (&["show", "--json"], "`yirage inspect MODEL`"),
        (&["convert"], "`yirage convert FOLDER`"),
        (&["quantize"], "`yirage quantize MODEL"),
        (&["serve", "--host", "0.0.0.0"], "--api-key-file"),
        (&["serve", "--port", "99999"], "0 to 65535"),
        (&["run", "--temp", "hot"], "from 0 to 100"),
        (&["run", "-t", "0"], "--threads"),
        (&["chat", "--top-p", "2"], "--top-p"),
    ] {
        let ran = at_home(&home, arguments).ran();
        assert!(ran.code == 2 && ran.err.contains(wanted), "{arguments:?}: {} {}", ran.code, ran.err);
        assert!(ran.err.lines().count() == 1 && ran.out.is_empty(), "{arguments:?}: {}{}", ran.out, ran.err);
    }
    assert!(std::fs::read_dir(home.path()).unwrap().next().is_none(), "something was written");
}

#[test]
fn variables_that_name_no_option_are_told() {
    let told = |name: &str, more: &[&str]| {
        let ran = yirage(&[&["tokenize", &bedtime(), "cat"], more].concat()).env(name, "1").ran();
        assert_eq!(ran.code, 0, "{}", ran.err);
        ran.err
    };
    for name in ["YIRAGE_TEMP", "YIRAGE_MAX_TOKEN", "YIRAGE_CUDA"] {
        let err = told(name, &[]);
        assert!(err.contains(name) && err.contains("no such option") && err.contains("config explain"), "{err}");
        assert_eq!(told(name, &["-q"]), "");
    }
    for name in ["YIRAGE_SEED", "YIRAGE_KERNEL_CACHE", "YIRAGERY"] {
        assert!(!told(name, &[]).contains("no such option"), "{name}");
    }
}
