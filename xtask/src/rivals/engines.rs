//! The engines: where they are found, and how each is asked for each figure.

use super::child;
use super::options::{RIVALS, RivalOptions, RivalTest};
use super::results::{BenchMachine, RivalSample};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Tokens of each sequence before and in the batched decode.
const BATCH_PROMPT: u32 = 128;
const BATCH_GENERATE: u32 = 32;

/// A program to measure.
pub(super) struct BenchEngine {
    /// How tables call it.
    pub(super) name: &'static str,
    kind: BenchEngineKind,
    /// The program that measures.
    bench: PathBuf,
    /// The program that measures batches, where that is another one.
    batched: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum BenchEngineKind {
    Yirage,
    /// With or without repacking.
    LlamaCpp(bool),
    IkLlama,
}

/// Ceilings as our own program measures them.
pub(super) struct RooflineLimits {
    /// GB/s.
    pub(super) memory: f64,
    /// GOP/s with 4-bit codes, where there is such a ceiling.
    pub(super) int8: Option<f64>,
}

/// All engines that are here, ours first; what is missing is said.
pub(super) fn find(root: &Path, options: &RivalOptions) -> Result<Vec<BenchEngine>, String> {
    let mut engines = Vec::new();
    engines.push(BenchEngine {
        name: "yirage",
        kind: BenchEngineKind::Yirage,
        bench: yirage(root, options)?,
        batched: None,
    });
    if options.build {
        [&options.llama_cpp, &options.ik_llama].into_iter().flatten().try_for_each(|folder| build(folder))?;
    }
    let llama = programs("llama.cpp", "--llama-cpp", options.llama_cpp.as_deref(), true);
    if let Some((bench, batched)) = llama {
        for (name, repack) in [(RIVALS[0], true), (RIVALS[1], false)] {
            let (bench, batched) = (bench.clone(), batched.clone());
            engines.push(BenchEngine { name, kind: BenchEngineKind::LlamaCpp(repack), bench, batched });
        }
    }
    if let Some((bench, batched)) = programs("ik_llama.cpp", "--ik-llama", options.ik_llama.as_deref(), false) {
        engines.push(BenchEngine { name: RIVALS[2], kind: BenchEngineKind::IkLlama, bench, batched });
    }
    engines.retain(|e| e.is_ours() || options.engines.is_empty() || options.engines.iter().any(|name| name == e.name));
    Ok(engines)
}

fn yirage(root: &Path, options: &RivalOptions) -> Result<PathBuf, String> {
    if let Some(path) = &options.yirage {
        return Ok(path.clone());
    }
    if options.build {
        let arguments = ["build", "--release", "--package", "yirage"];
        child::run(Path::new("cargo"), &arguments)?;
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let path = target.join("release/yirage");
    let missing = || format!("{}: not built yet: give --build, or another with --yirage", path.display());
    if path.is_file() { Ok(path) } else { Err(missing()) }
}

/// Builds a source folder of llama.cpp or of its fork as its own documents say.
fn build(folder: &Path) -> Result<(), String> {
    if !folder.join("CMakeLists.txt").is_file() {
        eprintln!("{}: no source folder, so it is used as it is", folder.display());
        return Ok(());
    }
    eprintln!("building {}", folder.display());
    let (source, binary) = (folder.as_os_str().to_owned(), folder.join("build").into_os_string());
    let flags = ["-DCMAKE_BUILD_TYPE=Release", "-DGGML_NATIVE=ON", "-DLLAMA_CURL=OFF"].map(Into::into);
    let configure = [["-S".into(), source, "-B".into(), binary.clone()].to_vec(), flags.to_vec()].concat();
    child::run(Path::new("cmake"), &configure)?;
    let targets = ["--parallel", "--target", "llama-bench", "llama-batched-bench"].map(Into::into);
    let make = [["--build".into(), binary].to_vec(), targets.to_vec()].concat();
    child::run(Path::new("cmake"), &make).map(|_| ())
}

/// llama-bench and llama-batched-bench in a folder, or on PATH.
fn programs(name: &str, option: &str, folder: Option<&Path>, on_path: bool) -> Option<(PathBuf, Option<PathBuf>)> {
    let mut folders: Vec<PathBuf> = match folder {
        Some(folder) => ["build/bin", "bin", "."].iter().map(|f| folder.join(f)).collect(),
        None if on_path => std::env::var_os("PATH").map(|p| std::env::split_paths(&p).collect()).unwrap_or_default(),
        None => Vec::new(),
    };
    folders.retain(|f| f.join("llama-bench").is_file());
    let Some(found) = folders.first() else {
        let place = folder.map_or_else(|| "anywhere on PATH".into(), |f| format!("in {}", f.display()));
        eprintln!("ABSENT: {name}: no llama-bench {place}; give {option} DIR (a source folder with --build)");
        return None;
    };
    let batched = Some(found.join("llama-batched-bench")).filter(|p| p.is_file());
    if batched.is_none() {
        eprintln!("ABSENT: {name}: no llama-batched-bench in {}: no batches", found.display());
    }
    Some((found.join("llama-bench"), batched))
}

impl BenchEngine {
    /// Whether this is the engine that the others are compared with.
    pub(super) fn is_ours(&self) -> bool {
        self.kind == BenchEngineKind::Yirage
    }

    /// Whether it can read the model.
    pub(super) fn runs(&self, model: &Path) -> bool {
        self.is_ours() || model.extension().is_some_and(|e| e == "gguf")
    }

    /// What it says of its version.
    pub(super) fn version(&self) -> String {
        let out = child::run(&self.bench, &["--version"]).map(|e| format!("{}{}", e.out, e.err)).unwrap_or_default();
        out.lines().find(|l| l.contains("version") || l.contains("yirage")).unwrap_or_default().trim().to_owned()
    }

    /// The machine, as our own program sees it.
    pub(super) fn machine(&self, options: &RivalOptions) -> Result<BenchMachine, String> {
        let devices = json(&child::run(&self.bench, &["devices", "--json"])?.out)?;
        let device = &devices["devices"][0];
        let text = |name: &str| device[name].as_str().unwrap_or_default().to_owned();
        Ok(BenchMachine { cpu: text("name"), arch: text("arch"), threads: options.threads })
    }

    /// The ceilings now.
    pub(super) fn limits(&self, options: &RivalOptions) -> Result<RooflineLimits, String> {
        let threads = options.threads.to_string();
        let out = child::run(&self.bench, &["doctor", "--roofline", "--json", "--quiet", "--threads", &threads])?.out;
        let value = json(&out)?;
        let limit = |name: &str| {
            let limits = value["roofline"].as_array().into_iter().flatten();
            limits.filter(|l| l["limit"] == name).find_map(|l| l["median"].as_f64())
        };
        let memory = limit("memory read").ok_or("yirage doctor says nothing of \"memory read\"")?;
        Ok(RooflineLimits { memory, int8: limit("int8 x 4-bit codes") })
    }

    /// The figures of one test.
    pub(super) fn run(
        &self,
        test: RivalTest,
        model: &Path,
        options: &RivalOptions,
    ) -> Result<Vec<RivalSample>, String> {
        let (prompt, generate) = (options.prompt.to_string(), options.generate.to_string());
        match test {
            RivalTest::Prefill => self.rows(model, options, &["-p", &prompt, "-n", "0"], 0),
            RivalTest::Decode => self.rows(model, options, &["-p", "0", "-n", &generate], 0),
            RivalTest::Depth => {
                let mut found = Vec::new();
                for depth in &options.depths {
                    let text = depth.to_string();
                    let pair = format!("{depth},{generate}");
                    let arguments = match self.kind {
                        // Its own name for tokens behind an untimed prompt.
                        BenchEngineKind::IkLlama => ["-p", "0", "-n", "0", "-gp", &pair].to_vec(),
                        _ => ["-p", "0", "-n", &generate, "-d", &text].to_vec(),
                    };
                    found.extend(self.rows(model, options, &arguments, *depth)?);
                }
                Ok(found)
            }
            RivalTest::Batch => self.batches(model, options),
            RivalTest::Start => self.start(model, options),
        }
    }

    /// Rows of the measuring program's JSON; `depth` is what they are behind.
    fn rows(
        &self,
        model: &Path,
        options: &RivalOptions,
        more: &[&str],
        depth: u32,
    ) -> Result<Vec<RivalSample>, String> {
        let (model, threads) = (model.to_string_lossy(), options.threads.to_string());
        let mut arguments = match self.kind {
            BenchEngineKind::Yirage => vec!["bench", "--quiet"],
            _ => Vec::new(),
        };
        arguments.extend(["-m", &model, "-t", &threads, "-r", "1", "-o", "json"]);
        arguments.extend(more);
        match self.kind {
            BenchEngineKind::LlamaCpp(true) => arguments.extend(["--repack", "1"]),
            BenchEngineKind::LlamaCpp(false) => arguments.extend(["--repack", "0"]),
            _ => {}
        }
        rival_samples(&json(&child::run(&self.bench, &arguments)?.out)?, depth)
    }

    /// Sums of the rates of sequences that decode together.
    fn batches(&self, model: &Path, options: &RivalOptions) -> Result<Vec<RivalSample>, String> {
        let counts: Vec<String> = options.sequences.iter().map(u32::to_string).collect();
        let (counts, generate, prompt) = (counts.join(","), BATCH_GENERATE.to_string(), BATCH_PROMPT.to_string());
        if self.is_ours() {
            let arguments = ["-p", "0", "-n", &generate, "-d", &prompt, "--sequences", &counts];
            let mut rows = self.rows(model, options, &arguments, 0)?;
            // What they are behind is part of the test, not of its name.
            rows.iter_mut().for_each(|f| f.test = batch_name(f.sequences));
            return Ok(rows);
        }
        let program = self.batched.as_deref().ok_or("there is no llama-batched-bench")?;
        let most = options.sequences.iter().max().copied().unwrap_or(1);
        let context = (most * (BATCH_PROMPT + BATCH_GENERATE)).max(2048).to_string();
        let (model, threads) = (model.to_string_lossy(), options.threads.to_string());
        let mut arguments =
            vec!["-m", &model, "-t", &threads, "-c", &context, "-b", "2048", "-ub", "512", "-npp", &prompt, "-ntg"];
        arguments.extend([generate.as_str(), "-npl", &counts]);
        if self.kind == BenchEngineKind::LlamaCpp(false) {
            arguments.push("--no-repack");
        }
        let ended = child::run(program, &arguments)?;
        let rows = batch_rows(&format!("{}\n{}", ended.out, ended.err));
        if rows.is_empty() { Err("llama-batched-bench printed no row of its table".into()) } else { Ok(rows) }
    }

    /// A process that loads the model, computes one token and ends.
    fn start(&self, model: &Path, options: &RivalOptions) -> Result<Vec<RivalSample>, String> {
        let (model, threads) = (model.to_string_lossy(), options.threads.to_string());
        let one = ["-m", &model, "-t", &threads, "-p", "0", "-n", "1", "-r", "1", "-o", "json"];
        let arguments: Vec<&str> = match self.kind {
            BenchEngineKind::Yirage => {
                let run = ["run", "--quiet", "--json", "-m", &model, "-t", &threads, "--prompt-ids", "100"];
                [&run[..], &["--max-tokens", "1", "--temperature", "0"]].concat()
            }
            BenchEngineKind::LlamaCpp(repack) => {
                [&one[..], &["--no-warmup", "--repack", if repack { "1" } else { "0" }]].concat()
            }
            BenchEngineKind::IkLlama => [&one[..], &["-w", "0"]].concat(),
        };
        let ended = child::run(&self.bench, &arguments)?;
        let mut out = vec![RivalSample::plain("start", ended.seconds)];
        out.extend(ended.peak.map(|bytes| RivalSample::plain("memory", bytes as f64 / f64::from(1 << 20))));
        Ok(out)
    }
}

fn batch_name(sequences: u64) -> String {
    format!("batch {sequences}")
}

fn json(text: &str) -> Result<Value, String> {
    // Some programs say more than their JSON before it.
    let at = text.find(['[', '{']).ok_or_else(|| format!("no JSON in {text:?}"))?;
    let mut values = serde_json::Deserializer::from_str(&text[at..]).into_iter();
    values.next().unwrap_or(Ok(Value::Null)).map_err(|e| format!("{e} in {text:.200}"))
}

/// Rows under llama-bench's names; `depth` where a row does not say its own.
fn rival_samples(rows: &Value, depth: u32) -> Result<Vec<RivalSample>, String> {
    let one = |row: &Value| {
        let number = |name: &str| row[name].as_u64().unwrap_or(0);
        let value = row["avg_ts"].as_f64().ok_or_else(|| format!("a row without avg_ts: {row}"))?;
        let depth = row["n_depth"].as_u64().unwrap_or(u64::from(depth));
        let test = match (number("n_gen"), depth) {
            (0, _) => "prefill".to_owned(),
            (_, 0) => "decode".to_owned(),
            (_, depth) => format!("decode at {depth}"),
        };
        let sequences = row["n_sequences"].as_u64().unwrap_or(1);
        Ok(RivalSample { test, value, share: row["share_of_roofline"].as_f64(), sequences })
    };
    rows.as_array().ok_or("no list of rows")?.iter().map(one).collect()
}

/// `| PP | TG | B | N_KV | T_PP s | S_PP t/s | T_TG s | S_TG t/s | T s | S t/s |`
fn batch_rows(text: &str) -> Vec<RivalSample> {
    let row = |line: &str| {
        let cells: Vec<&str> = line.trim().trim_matches('|').split('|').map(str::trim).collect();
        let [_, _, count, _, _, _, _, rate, _, _] = cells[..] else { return None };
        let (sequences, value) = (count.parse().ok()?, rate.parse().ok()?);
        Some(RivalSample { test: batch_name(sequences), value, share: None, sequences })
    };
    text.lines().filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_three_programs_are_understood() {
        let text = r#"loading
            [{"n_prompt":512,"n_gen":0,"n_depth":0,"avg_ts":100.5},
             {"n_prompt":0,"n_gen":128,"n_depth":2048,"avg_ts":20.0,"share_of_roofline":0.5},
             {"n_prompt":0,"n_gen":8,"avg_ts":30.0}]
            done"#;
        let rows = json(text).and_then(|v| rival_samples(&v, 0)).unwrap_or_else(|e| panic!("{e}"));
        let names: Vec<&str> = rows.iter().map(|r| r.test.as_str()).collect();
        assert_eq!(names, ["prefill", "decode at 2048", "decode"]);
        assert_eq!((rows[0].value, rows[1].share), (100.5, Some(0.5)));
        // a program that measures behind a prompt without saying how long it was
        let gp = r#"[{"n_prompt":2048,"n_gen":64,"avg_ts":9.0}]"#;
        assert_eq!(
            json(gp).and_then(|v| rival_samples(&v, 2048)).unwrap_or_else(|e| panic!("{e}"))[0].test,
            "decode at 2048"
        );
        assert!(json("nothing").is_err() && rival_samples(&Value::Null, 0).is_err());
    }

    #[test]
    fn tables_of_batches_are_understood() {
        let text = "|    PP |     TG |    B |   N_KV |   T_PP s | S_PP t/s |   T_TG s | S_TG t/s |      T s |    S t/s |\n\
                    |-------|--------|------|--------|----------|----------|----------|----------|----------|----------|\n\
                    |   128 |     32 |    8 |   1280 |    9.476 |   108.06 |    5.011 |    51.09 |   14.487 |    88.36 |\n";
        let rows = batch_rows(text);
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].test.as_str(), rows[0].value), ("batch 8", 51.09));
    }
}
