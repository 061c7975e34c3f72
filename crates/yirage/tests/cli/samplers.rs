//! Samplers of llama.cpp by its options: what each changes.

use crate::support::{bedtime, yirage};
use serde_json::Value;

/// The tokens and what is said on standard error. Far from greedy, with no limit of its own.
fn ran(more: &[&str]) -> (Vec<u64>, String) {
    let model = bedtime();
    let base = ["run", "-m", &model, "--json", "-p", "Once upon a time", "-n", "40", "--ignore-eos"];
    let open = ["--temperature", "2", "--top-k", "0", "--top-p", "1", "--min-p", "0"];
    let ran = yirage(&[&base[..], &open, more].concat()).ran();
    assert_eq!(ran.code, 0, "{more:?}: {}", ran.err);
    let answer: Value = serde_json::from_str(ran.out.lines().next().unwrap()).unwrap();
    let tokens = answer["tokens"].as_array().unwrap().iter().map(|token| token.as_u64().unwrap());
    (tokens.collect(), ran.err)
}

fn tokens(more: &[&str]) -> Vec<u64> {
    ran(more).0
}

fn greedy(more: &[&str]) -> Vec<u64> {
    tokens(&[&["--temperature", "0"], more].concat())
}

/// Options of a kind given twice: the last one counts for none of them, so each is given once.
fn differ(base: &[&str], more: &[&str]) {
    assert_ne!(tokens(base), tokens(&[base, more].concat()), "{more:?}");
}

pub(crate) fn order() {
    let last = ran(&["--samplers", "top_k;temperature"]);
    assert!(last.1.contains("the host chooses tokens, for samplers"), "{}", last.1);
    // Without a stage for it the temperature is not read, and that is said.
    let without = ran(&["--samplers", "top_k;top_p"]);
    assert!(without.1.contains("these samplers do not read temperature"), "{}", without.1);
    assert_ne!(last.0, without.0);
    let model = bedtime();
    let refused = yirage(&["run", "-m", &model, "-p", "a", "--samplers", "top_k;adaptive_p"]).ran();
    assert!(
        refused.code == 2 && refused.err.contains("adaptive_p") && refused.err.contains("top_n_sigma"),
        "{}",
        refused.err
    );
}

pub(crate) fn dry() {
    let dry = ["--dry-multiplier", "5", "--dry-allowed-length", "1", "--dry-penalty-last-n", "-1"];
    assert_ne!(greedy(&dry), greedy(&[]));
    assert_eq!(greedy(&["--dry-multiplier", "0"]), greedy(&[]));
}

pub(crate) fn dry_parts() {
    let base = ["--temperature", "0", "--dry-multiplier", "0.5"];
    let with = |more: &[&str]| {
        let model = bedtime();
        let base = [
            "run",
            "-m",
            &model,
            "--json",
            "-q",
            "-p",
            "Tom saw a cat. Tom saw a cat. Tom saw a",
            "-n",
            "60",
            "--ignore-eos",
            base[0],
            base[1],
            base[2],
            base[3],
        ];
        yirage(&[&base[..], more].concat()).json()["tokens"].clone()
    };
    let plain = with(&["--dry-allowed-length", "1", "--dry-penalty-last-n", "-1"]);
    let apart = |more: &[&str]| assert_ne!(with(more), plain, "{more:?}");
    apart(&["--dry-allowed-length", "1", "--dry-penalty-last-n", "-1", "--dry-base", "8"]);
    apart(&["--dry-allowed-length", "30", "--dry-penalty-last-n", "-1"]);
    apart(&["--dry-allowed-length", "1", "--dry-penalty-last-n", "0"]);
    apart(&["--dry-allowed-length", "1", "--dry-penalty-last-n", "-1", "--dry-sequence-breaker", " "]);
}

pub(crate) fn xtc() {
    differ(&[], &["--xtc-probability", "1", "--xtc-threshold", "0.01"]);
    differ(&["--xtc-probability", "1"], &["--xtc-threshold", "0.02"]);
    assert_eq!(
        tokens(&["--xtc-probability", "1", "--xtc-threshold", "0.6"]),
        tokens(&["--xtc-probability", "1", "--xtc-threshold", "0.7"])
    );
}

pub(crate) fn limits() {
    differ(&[], &["--typical", "0.3"]);
    differ(&[], &["--top-nsigma", "1"]);
    assert_eq!(tokens(&["--top-nsigma", "0.000001"]), greedy(&[]));
    assert_eq!(tokens(&["--top-nsigma", "-1"]), tokens(&[]), "-1 is llama.cpp's word for all");
}

pub(crate) fn dynamic_temperature() {
    differ(&[], &["--dynatemp-range", "1.9"]);
    differ(&["--dynatemp-range", "1.9"], &["--dynatemp-exp", "4"]);
}

pub(crate) fn mirostat() {
    for version in ["1", "2"] {
        differ(&[], &["--mirostat", version]);
        let of = |more: &[&str]| tokens(&[&["--mirostat", version], more].concat());
        assert_ne!(of(&["--mirostat-ent", "1"]), of(&["--mirostat-ent", "8"]));
        assert_ne!(
            of(&["--mirostat-ent", "2", "--mirostat-lr", "1"]),
            of(&["--mirostat-ent", "2", "--mirostat-lr", "0"])
        );
    }
    let said = ran(&["--mirostat", "2", "--typical", "0.9"]).1;
    assert!(said.contains("these samplers do not read typical_p"), "{said}");
}
