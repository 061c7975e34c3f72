//! Kinds of cores: fast and slow ones, and cores that are two processors.

use super::processors::count;
use super::{SysfsReader, line};
use std::collections::BTreeMap;

/// The kinds of cores, as the system tells them: by name, by speed, or all alike.
pub(super) fn cores(read: SysfsReader<'_>) -> Option<String> {
    by_name(read).or_else(|| by_speed(read)).or_else(|| alike(read))
}

/// Intel's processors of two kinds.
fn by_name(read: SysfsReader<'_>) -> Option<String> {
    let (fast, slow) = (line(read, "devices/cpu_core/cpus")?, line(read, "devices/cpu_atom/cpus")?);
    let (fasts, slows) = (count(&fast)?, count(&slow)?);
    Some(format!("{fasts} processors on performance cores ({fast}), {slows} on efficiency cores ({slow})"))
}

/// ARM's: each processor has a speed, in thousandths of the fastest.
fn by_speed(read: SysfsReader<'_>) -> Option<String> {
    let online = count(&line(read, "devices/system/cpu/online")?)?;
    let mut speeds = BTreeMap::new();
    for cpu in 0..online {
        let speed: u32 = line(read, &format!("devices/system/cpu/cpu{cpu}/cpu_capacity"))?.parse().ok()?;
        *speeds.entry(speed).or_insert(0) += 1;
    }
    let kinds: Vec<String> =
        speeds.iter().rev().map(|(speed, count)| format!("{count} of speed {speed} in 1024")).collect();
    (kinds.len() > 1).then(|| kinds.join(", "))
}

/// Processors of one kind, of which a core may be several.
fn alike(read: SysfsReader<'_>) -> Option<String> {
    let online = count(&line(read, "devices/system/cpu/online")?)?;
    let each = count(&line(read, "devices/system/cpu/cpu0/topology/thread_siblings_list")?)?;
    let cores = online.checked_div(each)?;
    Some(match each {
        1 => format!("{cores} of one kind"),
        _ => format!("{cores} of one kind, each of {each} processors"),
    })
}

#[cfg(test)]
mod tests {
    use super::cores;
    use crate::machine::files;

    #[test]
    fn two_kinds_are_told_apart() {
        let intel = files::of(&[("devices/cpu_core/cpus", "0-15\n"), ("devices/cpu_atom/cpus", "16-23\n")]);
        let said = "16 processors on performance cores (0-15), 8 on efficiency cores (16-23)";
        assert_eq!(cores(&intel).unwrap(), said);
        let arm = files::of(&[
            ("devices/system/cpu/online", "0-2"),
            ("devices/system/cpu/cpu0/cpu_capacity", "446"),
            ("devices/system/cpu/cpu1/cpu_capacity", "1024"),
            ("devices/system/cpu/cpu2/cpu_capacity", "1024"),
        ]);
        assert_eq!(cores(&arm).unwrap(), "2 of speed 1024 in 1024, 1 of speed 446 in 1024");
    }

    #[test]
    fn one_kind_says_how_many_processors_a_core_is() {
        let of = |siblings: &str| {
            let sibling = ("devices/system/cpu/cpu0/topology/thread_siblings_list", siblings);
            cores(&files::of(&[("devices/system/cpu/online", "0-7\n"), sibling]))
        };
        assert_eq!(of("0").unwrap(), "8 of one kind");
        assert_eq!(of("0,4").unwrap(), "4 of one kind, each of 2 processors");
        assert_eq!(cores(&files::of(&[])), None);
    }
}
