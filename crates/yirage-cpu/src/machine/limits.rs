//! What the control groups allow, in one line.

use crate::free_memory;
use crate::pool::ThreadBudgetInputs;

/// The limits of time and memory, or that there is none. Where the system has no control groups, nothing.
pub(super) fn of_groups() -> Option<String> {
    cfg!(target_os = "linux").then(|| written(ThreadBudgetInputs::read().cgroup_quota, free_memory::group_limit()))
}

fn written(processors: Option<f64>, bytes: Option<u64>) -> String {
    let processors = processors.map(|n| format!("{n} processors' time"));
    let bytes = bytes.map(|n| format!("{n} bytes of memory"));
    let limits: Vec<String> = processors.into_iter().chain(bytes).collect();
    if limits.is_empty() { "no limit".into() } else { limits.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::written;

    #[test]
    fn limits_that_are_set_are_written() {
        assert_eq!(written(None, None), "no limit");
        assert_eq!(written(Some(1.5), Some(1024)), "1.5 processors' time, 1024 bytes of memory");
    }
}
