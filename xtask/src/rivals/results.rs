//! The figures, as they are kept.

use super::options::RivalOptions;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// One figure of one run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RivalSample {
    /// What was measured.
    pub(super) test: String,
    /// Tokens a second, seconds or MiB, as the test's name says.
    pub(super) value: f64,
    /// Of the measured limit, where the program says it.
    pub(super) share: Option<f64>,
    /// Sequences that ran together.
    pub(super) sequences: u64,
}

impl RivalSample {
    pub(super) fn plain(test: &str, value: f64) -> RivalSample {
        RivalSample { test: test.into(), value, share: None, sequences: 1 }
    }
}

/// What it ran on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct BenchMachine {
    pub(super) cpu: String,
    pub(super) arch: String,
    pub(super) threads: usize,
}

/// Ceilings before or after a round.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct CeilingProbe {
    pub(super) round: usize,
    /// `before` or `after`.
    pub(super) when: String,
    /// GB/s.
    pub(super) memory: f64,
    /// GOP/s.
    pub(super) int8: Option<f64>,
}

/// All runs of one engine with one model and test, in the order of the rounds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Runs {
    pub(super) values: Vec<f64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) shares: Vec<f64>,
}

/// Everything.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct RivalResults {
    pub(super) machine: BenchMachine,
    pub(super) rounds: usize,
    pub(super) prompt: u32,
    pub(super) generate: u32,
    /// Names and versions, in the order of columns; ours is the first.
    pub(super) engines: Vec<(String, String)>,
    /// Names of models, in the order of rows.
    pub(super) models: Vec<String>,
    pub(super) probes: Vec<CeilingProbe>,
    /// By model, test and engine.
    pub(super) runs: BTreeMap<String, BTreeMap<String, BTreeMap<String, Runs>>>,
}

impl RivalResults {
    /// No figures yet.
    pub(super) fn new(options: &RivalOptions, engines: Vec<(String, String)>, machine: BenchMachine) -> RivalResults {
        RivalResults {
            machine,
            rounds: options.rounds,
            prompt: options.prompt,
            generate: options.generate,
            engines,
            models: options.models.iter().map(|m| model_name(m)).collect(),
            probes: Vec::new(),
            runs: BTreeMap::new(),
        }
    }

    /// Adds a figure.
    pub(super) fn add(&mut self, model: &str, engine: &str, found: &RivalSample) {
        let tests = self.runs.entry(model.to_owned()).or_default();
        let runs = tests.entry(found.test.clone()).or_default().entry(engine.to_owned()).or_default();
        runs.values.push(found.value);
        runs.shares.extend(found.share);
    }

    /// The runs of an engine, if there are any.
    pub(super) fn of(&self, model: &str, test: &str, engine: &str) -> Option<&Runs> {
        self.runs.get(model)?.get(test)?.get(engine).filter(|r| !r.values.is_empty())
    }

    /// Tests of a model in the order of the page: by kind, then by depth or number of sequences.
    pub(super) fn tests(&self, model: &str) -> Vec<&str> {
        let kinds = ["prefill", "decode", "batch", "start", "memory"];
        let key = |test: &&str| {
            let kind = kinds.iter().position(|k| test.starts_with(k)).unwrap_or(kinds.len());
            (kind, test.rsplit(' ').next().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0))
        };
        let mut tests: Vec<&str> =
            self.runs.get(model).into_iter().flat_map(|t| t.keys()).map(String::as_str).collect();
        tests.sort_by_key(key);
        tests
    }

    /// The best rival's name and median.
    pub(super) fn best_rival(&self, model: &str, test: &str) -> Option<(&str, f64)> {
        let rivals = self.engines.iter().skip(1).map(|(name, _)| name.as_str());
        let medians = rivals.filter_map(|name| Some((name, self.of(model, test, name)?.median())));
        let better = |a: &f64, b: &f64| if less_is_better(test) { b.total_cmp(a) } else { a.total_cmp(b) };
        medians.max_by(|a, b| better(&a.1, &b.1))
    }

    /// Our median over the best rival's.
    pub(super) fn ratio(&self, model: &str, test: &str) -> Option<f64> {
        let ours = self.of(model, test, &self.engines.first()?.0)?.median();
        Some(ours / self.best_rival(model, test)?.1)
    }

    /// Reads what [`RivalResults::write`] wrote.
    pub(super) fn read(path: &Path) -> Result<RivalResults, String> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        serde_json::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))
    }

    /// Writes everything.
    pub(super) fn write(&self, path: &Path) -> Result<(), String> {
        let text = serde_json::to_string_pretty(self).map_err(|e| e.to_string())?;
        std::fs::write(path, text + "\n").map_err(|e| format!("{}: {e}", path.display()))
    }
}

impl Runs {
    /// The one in the middle, or the mean of the two there.
    pub(super) fn median(&self) -> f64 {
        median(&self.values)
    }

    /// The median share of the limit, where there is one.
    pub(super) fn share(&self) -> Option<f64> {
        if self.shares.is_empty() { None } else { Some(median(&self.shares)) }
    }

    /// Lowest and highest.
    pub(super) fn range(&self) -> (f64, f64) {
        let fold = |of: fn(f64, f64) -> f64, from| self.values.iter().copied().fold(from, of);
        (fold(f64::min, f64::INFINITY), fold(f64::max, f64::NEG_INFINITY))
    }
}

/// The middle of some numbers, at least one.
pub(super) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    if n == 0 { f64::NAN } else { (sorted[n / 2] + sorted[(n - 1) / 2]) / 2.0 }
}

/// Seconds and bytes.
pub(super) fn less_is_better(test: &str) -> bool {
    matches!(test, "start" | "memory")
}

/// A file's name without its ending.
pub(super) fn model_name(path: &Path) -> String {
    path.file_stem().map_or_else(String::new, |n| n.to_string_lossy().into_owned())
}

/// Figures for the tests of the page and the plot.
#[cfg(test)]
pub(super) fn sample() -> RivalResults {
    let machine = BenchMachine { cpu: "a processor".into(), arch: "x86_64/avx2".into(), threads: 2 };
    let engines = ["yirage", "llama.cpp", "llama.cpp --repack 0"].map(|n| (n.to_owned(), "1".to_owned()));
    let models = ["a-model-with-a-rather-long-name-q4_k_m", "b"].map(String::from);
    let probe = |when: &str, memory| CeilingProbe { round: 0, when: when.into(), memory, int8: Some(400.0) };
    let mut results = RivalResults {
        machine,
        rounds: 3,
        prompt: 512,
        generate: 128,
        engines: engines.to_vec(),
        models: models.to_vec(),
        probes: vec![probe("before", 20.0), probe("after", 24.0)],
        runs: BTreeMap::new(),
    };
    for model in &models {
        for (engine, speed) in [("yirage", 2.0), ("llama.cpp", 1.0), ("llama.cpp --repack 0", 1.5)] {
            for round in 0..3 {
                for (test, base) in [("prefill", 100.0), ("decode", 10.0), ("decode at 2048", 7.0), ("batch 16", 20.0)]
                {
                    let value = base * speed + f64::from(round);
                    let share = (engine == "yirage").then_some(0.5);
                    results.add(model, engine, &RivalSample { test: test.into(), value, share, sequences: 1 });
                }
                results.add(model, engine, &RivalSample::plain("start", 1.0 / speed));
            }
        }
    }
    results
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_better_rival_is_the_faster_or_the_shorter() {
        let results = sample();
        assert_eq!(results.best_rival("b", "prefill"), Some(("llama.cpp --repack 0", 151.0)));
        assert_eq!(results.ratio("b", "prefill"), Some(201.0 / 151.0));
        assert_eq!(results.ratio("b", "start"), Some(0.75));
        assert_eq!(results.ratio("b", "memory"), None);
        assert_eq!(results.tests("b"), ["prefill", "decode", "decode at 2048", "batch 16", "start"]);
    }

    #[test]
    fn results_survive_their_file() {
        let results = sample();
        let text = serde_json::to_string(&results).unwrap_or_else(|e| panic!("{e}"));
        let back: RivalResults = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!((back.runs, back.models, back.engines), (results.runs, results.models, results.engines));
    }
}
