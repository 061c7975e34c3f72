//! Whether the process of a rank still runs, by what the system says of it.

use std::fs;

/// What the system says of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ProcessState {
    Running,
    Stopped,
    Dead,
}

/// When a process was started, in the system's ticks; nothing where that cannot be known.
pub(super) fn started(process: u32) -> Option<u64> {
    stat(process).map(|(_, started)| started)
}

/// What became of the process that was started then: another one may have its number now.
pub(super) fn state(process: u32, since: u64) -> ProcessState {
    match stat(process) {
        Some(('Z' | 'X' | 'x', _)) | None => ProcessState::Dead,
        Some((_, started)) if started != since => ProcessState::Dead,
        Some(('T' | 't', _)) => ProcessState::Stopped,
        Some(_) => ProcessState::Running,
    }
}

/// Its state's letter and when it was started. The name before them may have any characters.
fn stat(process: u32) -> Option<(char, u64)> {
    let text = fs::read(format!("/proc/{process}/stat")).ok()?;
    let text = String::from_utf8_lossy(&text);
    let mut fields = text[text.rfind(')')? + 1..].split_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(18)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::{ProcessState, started, state};

    #[test]
    fn this_process_runs_and_one_with_its_number_before_is_dead() {
        let (own, since) = (std::process::id(), started(std::process::id()).unwrap());
        assert_eq!(state(own, since), ProcessState::Running);
        assert_eq!(state(own, since - 1), ProcessState::Dead);
    }
}
