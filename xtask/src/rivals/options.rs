//! What to run.

use std::path::{Path, PathBuf};

/// How to call it.
pub(crate) const USAGE: &str = "cargo xtask bench-rivals [OPTIONS] MODEL.gguf...
  --yirage BIN         our program [default: the release build; --build makes it]
  --llama-cpp DIR      source folder or folder of binaries of llama.cpp [env: LLAMA_CPP_DIR; else PATH]
  --ik-llama DIR       the same of ik_llama.cpp [env: IK_LLAMA_DIR]
  --build              build what is given as a source folder (Release, native), and yirage
  --rounds N           times that everything runs [default: 5]
  --threads N          threads of every engine [default: all processors]
  --prompt N           tokens of the prefill [default: 512]
  --generate N         tokens of the decode [default: 128]
  --depth N,..         depths of the decode besides 0 [default: 2048]
  --sequences N,..     sequences decoded together [default: 1,4,8,16]
  --tests NAME,..      of prefill, decode, depth, batch, start [default: all]
  --engines NAME,..    rivals of llama.cpp, llama.cpp --repack 0, ik_llama.cpp [default: all that are found]
  --out DIR            where cpu.md, cpu.json and cpu.svg go [default: docs/benchmarks]
  --draw               run nothing: write table and plot again from cpu.json";

/// A group of figures that one run of a program gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RivalTest {
    /// A prompt.
    Prefill,
    /// New tokens.
    Decode,
    /// New tokens behind a long beginning.
    Depth,
    /// New tokens of several sequences.
    Batch,
    /// A whole process up to its first token: seconds and peak of memory.
    Start,
}

impl RivalTest {
    const ALL: [RivalTest; 5] =
        [RivalTest::Prefill, RivalTest::Decode, RivalTest::Depth, RivalTest::Batch, RivalTest::Start];

    /// The name in options and messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            RivalTest::Prefill => "prefill",
            RivalTest::Decode => "decode",
            RivalTest::Depth => "depth",
            RivalTest::Batch => "batch",
            RivalTest::Start => "start",
        }
    }
}

/// What rivals are called.
pub(super) const RIVALS: [&str; 3] = ["llama.cpp", "llama.cpp --repack 0", "ik_llama.cpp"];

/// What to run.
#[derive(Clone, Debug)]
pub(super) struct RivalOptions {
    pub(super) yirage: Option<PathBuf>,
    pub(super) llama_cpp: Option<PathBuf>,
    pub(super) ik_llama: Option<PathBuf>,
    pub(super) build: bool,
    pub(super) rounds: usize,
    pub(super) threads: usize,
    pub(super) prompt: u32,
    pub(super) generate: u32,
    pub(super) depths: Vec<u32>,
    pub(super) sequences: Vec<u32>,
    pub(super) tests: Vec<RivalTest>,
    /// Names of rivals; empty for all.
    pub(super) engines: Vec<String>,
    pub(super) out: PathBuf,
    pub(super) draw_only: bool,
    pub(super) models: Vec<PathBuf>,
}

impl RivalOptions {
    /// Reads the command line and the two variables.
    pub(super) fn parse(root: &Path, arguments: &[String]) -> Result<RivalOptions, String> {
        let variable = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let mut options = RivalOptions {
            yirage: None,
            llama_cpp: variable("LLAMA_CPP_DIR"),
            ik_llama: variable("IK_LLAMA_DIR"),
            build: false,
            rounds: 5,
            threads: std::thread::available_parallelism().map_or(1, |n| n.get()),
            prompt: 512,
            generate: 128,
            depths: vec![2048],
            sequences: vec![1, 4, 8, 16],
            tests: RivalTest::ALL.to_vec(),
            engines: Vec::new(),
            out: root.join("docs/benchmarks"),
            draw_only: false,
            models: Vec::new(),
        };
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word}: a value is missing\n\n{USAGE}"));
            match word.as_str() {
                "--yirage" => options.yirage = Some(value()?.into()),
                "--llama-cpp" => options.llama_cpp = Some(value()?.into()),
                "--ik-llama" => options.ik_llama = Some(value()?.into()),
                "--out" => options.out = value()?.into(),
                "--build" => options.build = true,
                "--draw" => options.draw_only = true,
                "--rounds" => options.rounds = number(word, value()?)?,
                "--threads" => options.threads = number(word, value()?)?,
                "--prompt" => options.prompt = number(word, value()?)?,
                "--generate" => options.generate = number(word, value()?)?,
                "--depth" => options.depths = list(value()?, |w| number(word, w))?,
                "--sequences" => options.sequences = list(value()?, |w| number(word, w))?,
                "--engines" => options.engines = list(value()?, engine)?,
                "--tests" => options.tests = list(value()?, test)?,
                word if word.starts_with('-') => return Err(format!("there is no option {word}\n\n{USAGE}")),
                file => options.models.push(file.into()),
            }
        }
        options.check()
    }

    fn check(self) -> Result<RivalOptions, String> {
        if self.models.is_empty() && !self.draw_only {
            return Err(format!("no model was given\n\n{USAGE}"));
        }
        match self.models.iter().find(|m| !m.is_file()) {
            Some(missing) => Err(format!("{}: there is no such file", missing.display())),
            None => Ok(self),
        }
    }
}

/// A number above 0.
fn number<T: std::str::FromStr + Default + PartialEq>(option: &str, text: &str) -> Result<T, String> {
    let number = text.trim().parse::<T>().ok().filter(|n| *n != T::default());
    number.ok_or_else(|| format!("{option}: expected a number above 0, not {text:?}"))
}

fn list<T>(text: &str, one: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
    text.split(',').map(one).collect()
}

fn test(name: &str) -> Result<RivalTest, String> {
    let names = || RivalTest::ALL.map(RivalTest::name).join(", ");
    let found = RivalTest::ALL.into_iter().find(|t| t.name() == name.trim());
    found.ok_or_else(|| format!("--tests: expected {}, not {name:?}", names()))
}

fn engine(name: &str) -> Result<String, String> {
    let found = RIVALS.into_iter().find(|known| *known == name.trim());
    found.map(str::to_owned).ok_or_else(|| format!("--engines: expected {}, not {name:?}", RIVALS.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<RivalOptions, String> {
        let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
        RivalOptions::parse(Path::new("root"), &words)
    }

    #[test]
    fn options_are_read() {
        let options = parse(&[
            "--draw",
            "--depth",
            "2048,8192",
            "--tests",
            "batch,start",
            "--rounds",
            "3",
            "--engines",
            "ik_llama.cpp",
        ]);
        let options = options.unwrap_or_else(|e| panic!("{e}"));
        assert_eq!((options.depths, options.rounds), (vec![2048, 8192], 3));
        assert_eq!(options.tests, [RivalTest::Batch, RivalTest::Start]);
        assert_eq!(options.engines, ["ik_llama.cpp"]);
        assert_eq!(options.out, Path::new("root/docs/benchmarks"));
    }

    #[test]
    fn mistakes_are_named() {
        for (words, part) in [
            (&["--rounds"][..], "--rounds: a value is missing"),
            (&["--rounds", "0"], "--rounds: expected a number above 0, not \"0\""),
            (&["--tests", "speed"], "prefill, decode, depth, batch, start"),
            (
                &["--engines", "llama"],
                "--engines: expected llama.cpp, llama.cpp --repack 0, ik_llama.cpp, not \"llama\"",
            ),
            (&["--fast"], "there is no option --fast"),
            (&[], "no model was given"),
            (&["no-such.gguf"], "no-such.gguf: there is no such file"),
        ] {
            let why = parse(words).err().unwrap_or_default();
            assert!(why.contains(part), "{why}");
        }
    }
}
