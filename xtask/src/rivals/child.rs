//! Running a program: what it prints, how long it takes, and how much memory it holds at most.

use std::ffi::OsStr;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time between two looks at a program.
const LOOK: Duration = Duration::from_millis(1);
/// How much of a failed program's words is shown.
const TAIL: usize = 1500;

/// A program that has ended well.
pub(super) struct ProcessOutput {
    /// Standard output.
    pub(super) out: String,
    /// Standard error.
    pub(super) err: String,
    /// Seconds from start to end.
    pub(super) seconds: f64,
    /// Peak of resident memory in bytes, where the system says it.
    pub(super) peak: Option<u64>,
}

/// Runs `program` to its end.
pub(super) fn run<A: AsRef<OsStr>>(program: &Path, arguments: &[A]) -> Result<ProcessOutput, String> {
    let called = || program.display().to_string();
    let began = Instant::now();
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| format!("{}: {e}", called()))?;
    let (out, err) = (reader(child.stdout.take()), reader(child.stderr.take()));
    let mut peak = None;
    let status = loop {
        peak = high_water(&child).max(peak);
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) => std::thread::sleep(LOOK),
            Err(e) => return Err(format!("{}: {e}", called())),
        }
    };
    let seconds = began.elapsed().as_secs_f64();
    let text = |thread: JoinHandle<Vec<u8>>| String::from_utf8_lossy(&thread.join().unwrap_or_default()).into_owned();
    let (out, err) = (text(out), text(err));
    if !status.success() {
        let tail: String = err.chars().skip(err.chars().count().saturating_sub(TAIL)).collect();
        return Err(format!("{} ended with {status}:\n{tail}", called()));
    }
    Ok(ProcessOutput { out, err, seconds, peak })
}

fn reader(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What came before an error is as good as any.
        let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
        bytes
    })
}

/// The peak so far: Linux keeps it while the process lives, so only what it grows between the last look and its end is
/// missed.
fn high_water(child: &Child) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn a_program_is_read_timed_and_weighed() {
        let ended = run(Path::new("/bin/sh"), &["-c", "echo a; echo b >&2; sleep 0.05"]);
        let ended = ended.unwrap_or_else(|e| panic!("{e}"));
        assert_eq!((ended.out.as_str(), ended.err.as_str()), ("a\n", "b\n"));
        assert!(ended.seconds >= 0.05 && ended.peak.is_some_and(|p| p > 1 << 16), "{:?}", ended.peak);
        let why = run(Path::new("/bin/sh"), &["-c", "echo why >&2; exit 3"]).err().unwrap_or_default();
        assert!(why.contains("why") && why.contains('3'), "{why}");
        assert!(run::<&str>(Path::new("no/such/program"), &[]).is_err());
    }
}
