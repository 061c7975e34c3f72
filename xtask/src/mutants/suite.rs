//! Runs named unit tests of one package in the copy and says what became of each.

use crate::workspace_copy::WorkspaceCopy;
use std::fmt;
use std::fs::{self, File};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

/// Kernels take minutes to optimise, and no unit test of another crate runs one.
const PLAIN_KERNELS: &str = "profile.test.package.yirage-cpu-kernels.opt-level=0";
/// A build and some simulations end long before this.
const HANGS_AFTER: Duration = Duration::from_secs(1800);

/// What became of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TestVerdict {
    /// It passed.
    Passed,
    /// It failed.
    Failed,
}

impl fmt::Display for TestVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == TestVerdict::Passed { "passes" } else { "fails" })
    }
}

/// Runs `tests` of `package`.
///
/// # Errors
/// Sources that do not compile, a test that does not exist or end, and whatever else keeps them from running.
pub(crate) fn run(
    scratch: &WorkspaceCopy,
    package: &str,
    tests: &[String],
) -> Result<Vec<(String, TestVerdict)>, String> {
    let (output, errors) = (scratch.target.join("mutants.out"), scratch.target.join("mutants.err"));
    let file = |path| File::create(path).map_err(|error| error.to_string());
    let mut command = Command::new(env!("CARGO"));
    command.args(["test", "--locked", "--config", PLAIN_KERNELS, "--package", package, "--lib", "--", "--exact"]);
    command.args(tests);
    command.current_dir(&scratch.root).env("CARGO_TARGET_DIR", &scratch.target);
    // One file of one crate changes from run to run.
    command.env("CARGO_INCREMENTAL", "1").env("CARGO_TERM_COLOR", "never");
    command.stdout(file(&output)?).stderr(file(&errors)?);
    let status = wait(&mut command)?;
    let said = fs::read_to_string(&output).map_err(|error| error.to_string())?;
    let verdict = |test: &String| {
        verdict(&said, test).map(|verdict| (test.clone(), verdict)).ok_or_else(|| {
            let errors = fs::read_to_string(&errors).unwrap_or_default();
            format!("`{test}` did not run ({status}):\n{errors}")
        })
    };
    tests.iter().map(verdict).collect()
}

fn wait(command: &mut Command) -> Result<ExitStatus, String> {
    let mut child = command.spawn().map_err(|error| format!("cargo: {error}"))?;
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            return Ok(status);
        }
        if begun.elapsed() > HANGS_AFTER {
            child.kill().and_then(|()| child.wait()).map_err(|error| error.to_string())?;
            return Err(format!("nothing ends within {} s", HANGS_AFTER.as_secs()));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// What a test runner's output says of a test.
fn verdict(said: &str, test: &str) -> Option<TestVerdict> {
    let result = |line: &str| line.strip_prefix("test ")?.strip_prefix(test)?.strip_prefix(" ... ").map(str::to_owned);
    match said.lines().find_map(result)?.as_str() {
        "ok" => Some(TestVerdict::Passed),
        "FAILED" => Some(TestVerdict::Failed),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{TestVerdict, verdict};

    #[test]
    fn verdicts_are_read_from_whole_names() {
        let said = "\nrunning 2 tests\ntest a::bc ... ok\ntest a::b ... FAILED\ntest d ... ignored, why\n";
        assert_eq!(verdict(said, "a::b"), Some(TestVerdict::Failed));
        assert_eq!(verdict(said, "a::bc"), Some(TestVerdict::Passed));
        assert_eq!((verdict(said, "a"), verdict(said, "d")), (None, None));
    }
}
