//! How much more memory this process may have, and what limits it.
//!
//! The least counts of what the machine has free, what control groups leave, and what `ulimit` leaves of address space
//! and data. Pages of files are not counted as used: the system takes them back when it needs them.

use crate::cgroup;
use std::fs;
use std::path::Path;

/// Address space that is left alone where it is limited: stacks of threads, the allocator's own, the tokenizer.
const SPARE: u64 = 96 << 20;

/// Bytes, and what limits them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FreeMemory {
    pub(crate) bytes: u64,
    pub(crate) limit: String,
}

/// The memory that this process may still take; none where the system says nothing of it.
pub(crate) fn available() -> Option<FreeMemory> {
    let read = |path: &Path| fs::read_to_string(path).ok();
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| of_machine(&text));
    let groups = of_groups(&groups, Path::new(cgroup::ROOT), &read);
    let process = fs::read_to_string("/proc/self/status").unwrap_or_default();
    machine.into_iter().chain(groups).chain(of_process(&process, &rlimits())).min_by_key(|room| room.bytes)
}

/// All memory of the machine; none where the system says nothing of it.
pub(crate) fn total() -> Option<u64> {
    kib(&fs::read_to_string("/proc/meminfo").ok()?, "MemTotal")
}

/// A number of KiB behind a name, in bytes.
fn kib(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.split(':').next() == Some(name))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok()?.checked_mul(1024)
}

/// Of `/proc/meminfo`.
fn of_machine(meminfo: &str) -> Option<FreeMemory> {
    let bytes = kib(meminfo, "MemAvailable").or_else(|| kib(meminfo, "MemFree"))?;
    let total = kib(meminfo, "MemTotal").map(|n| format!(" of {n}")).unwrap_or_default();
    Some(FreeMemory { bytes, limit: format!("free of this machine's memory{total}") })
}

/// Of the control group that leaves least.
fn of_groups(groups: &str, root: &Path, read: cgroup::CgroupFileReader<'_>) -> Option<FreeMemory> {
    cgroup::groups(groups, "memory", root).iter().filter_map(|group| of_group(group, read)).min_by_key(|r| r.bytes)
}

/// The least memory that a control group of this process allows, whatever is used of it.
pub(crate) fn group_limit() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let groups = cgroup::groups(&groups, "memory", Path::new(cgroup::ROOT));
    groups.iter().filter_map(|group| limit_of(group, &|path| fs::read_to_string(path).ok())).min()
}

/// The bytes that a group allows.
fn limit_of(group: &cgroup::CgroupDir, read: cgroup::CgroupFileReader<'_>) -> Option<u64> {
    let name = if group.v2 { "memory.max" } else { "memory.limit_in_bytes" };
    let most = read(&group.folder.join(name))?.trim().parse::<u64>().ok();
    // Without a limit the one says `max`, the other a number near 2^63.
    most.filter(|&n| n < 1 << 62)
}

fn of_group(group: &cgroup::CgroupDir, read: cgroup::CgroupFileReader<'_>) -> Option<FreeMemory> {
    let used = if group.v2 { "memory.current" } else { "memory.usage_in_bytes" };
    let number = |name: &str| read(&group.folder.join(name))?.trim().parse::<u64>().ok();
    let most = limit_of(group, read)?;
    let stat = read(&group.folder.join("memory.stat")).unwrap_or_default();
    let of_files = |name: &str| {
        let line = stat.lines().find(|line| line.split_whitespace().next() == Some(name));
        line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).unwrap_or(0)
    };
    let names = if group.v2 { ["inactive_file", "active_file"] } else { ["total_inactive_file", "total_active_file"] };
    let files = names.into_iter().map(of_files).fold(0, u64::saturating_add);
    let used = number(used).unwrap_or(0).saturating_sub(files);
    let limit = format!("left by the control group {}, which allows {most}", group.folder.display());
    Some(FreeMemory { bytes: most.saturating_sub(used), limit })
}

/// A limit of `ulimit`.
struct Rlimit {
    /// As the shell calls it.
    name: &'static str,
    /// What it counts, in `/proc/self/status`.
    counts: &'static str,
    bytes: u64,
}

/// Of `/proc/self/status`, under the limits of this process.
fn of_process(status: &str, limits: &[Rlimit]) -> Option<FreeMemory> {
    let room = |limit: &Rlimit| {
        let used = kib(status, limit.counts)?;
        let bytes = limit.bytes.saturating_sub(used).saturating_sub(SPARE);
        let (name, most) = (limit.name, limit.bytes);
        Some(FreeMemory {
            bytes,
            limit: format!("left by {name}, which allows {most}, {SPARE} kept for the program itself"),
        })
    };
    limits.iter().filter_map(room).min_by_key(|room| room.bytes)
}

/// The limits of address space and data that are set.
#[cfg(target_os = "linux")]
fn rlimits() -> Vec<Rlimit> {
    let of = |resource, name, counts| {
        let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
        // SAFETY: the structure is ours to write to.
        let rc = unsafe { libc::getrlimit(resource, &mut limit) };
        (rc == 0 && limit.rlim_cur != libc::RLIM_INFINITY).then_some(Rlimit { name, counts, bytes: limit.rlim_cur })
    };
    let space = of(libc::RLIMIT_AS, "ulimit -v", "VmSize");
    space.into_iter().chain(of(libc::RLIMIT_DATA, "ulimit -d", "VmData")).collect()
}

/// As on Linux, where it exists.
#[cfg(not(target_os = "linux"))]
fn rlimits() -> Vec<Rlimit> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use std::path::PathBuf;

    const MIB: u64 = 1 << 20;

    #[test]
    fn the_machine_says_what_it_could_free() {
        let text = "MemTotal:       2048 kB\nMemFree:         100 kB\nMemAvailable:   1024 kB\n";
        let room = of_machine(text).unwrap();
        assert_eq!((room.bytes, room.limit.as_str()), (MIB, "free of this machine's memory of 2097152"));
        assert_eq!(of_machine("MemFree: 7 kB").unwrap().bytes, 7168);
        assert_eq!(of_machine("nonsense"), None);
    }

    fn in_groups(groups: &str, files: &[(&str, &str)]) -> Option<u64> {
        let files: HashMap<PathBuf, String> =
            files.iter().map(|(p, t)| (Path::new("/r").join(p), (*t).to_owned())).collect();
        of_groups(groups, Path::new("/r"), &|p| files.get(p).cloned()).map(|room| room.bytes)
    }

    #[test]
    fn groups_of_both_versions_leave_what_is_not_used() {
        let v2 = [("a/memory.max", "1000\n"), ("a/memory.current", "700\n"), ("memory.max", "max\n")];
        assert_eq!(in_groups("0::/a", &v2), Some(300));
        let files = [v2[0], v2[1], ("a/memory.stat", "anon 400\ninactive_file 150\nactive_file 50\n")];
        assert_eq!(in_groups("0::/a", &files), Some(500), "pages of files can be taken back");
        let parent = [v2[0], v2[1], ("memory.max", "900"), ("memory.current", "850")];
        assert_eq!(in_groups("0::/a", &parent), Some(50), "a parent may leave less");
        let v1 = [("memory/x/memory.limit_in_bytes", "500"), ("memory/x/memory.usage_in_bytes", "600")];
        assert_eq!(in_groups("5:memory:/x", &v1), Some(0));
        assert_eq!(in_groups("5:memory:/x", &[("memory/x/memory.limit_in_bytes", "9223372036854771712")]), None);
        assert_eq!(in_groups("0::/", &[("memory.max", "many")]), None);
    }

    #[test]
    fn the_tightest_ulimit_counts_less_what_is_kept() {
        let status = "VmSize:\t 1024 kB\nVmData:\t 512 kB\n";
        let limit = |name, counts, bytes| Rlimit { name, counts, bytes };
        let space = limit("ulimit -v", "VmSize", SPARE + 3 * MIB);
        assert_eq!(of_process(status, &[]), None);
        assert_eq!(of_process(status, std::slice::from_ref(&space)).unwrap().bytes, 2 * MIB);
        let both = [space, limit("ulimit -d", "VmData", SPARE + MIB)];
        let room = of_process(status, &both).unwrap();
        assert!(room.bytes == MIB / 2 && room.limit.contains("ulimit -d"), "{room:?}");
        assert_eq!(of_process(status, &[limit("ulimit -v", "VmSize", 5)]).unwrap().bytes, 0);
    }

    #[test]
    fn this_process_has_some_room() {
        if cfg!(target_os = "linux") {
            assert!(available().is_some_and(|room| !room.limit.is_empty()));
        }
    }
}
