//! The caches of the first processor.

use super::processors::count;
use super::{SysfsReader, line};

/// More caches than any processor has.
const MOST: usize = 16;

/// Each cache with its size and how many processors share it: `L1d 32K, L2 1024K, L3 32768K of 2 processors`.
pub(super) fn caches(read: SysfsReader<'_>) -> Option<String> {
    let all: Vec<String> = (0..MOST).map_while(|index| cache(read, index)).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

/// Bytes of the second-level cache that are one processor's, shared evenly.
pub(super) fn second_level(read: SysfsReader<'_>) -> Option<u64> {
    let of = |index: usize, name: &str| line(read, &format!("devices/system/cpu/cpu0/cache/index{index}/{name}"));
    let index = (0..MOST).find(|&index| of(index, "level").as_deref() == Some("2"))?;
    let bytes = of(index, "size")?.strip_suffix('K')?.parse::<u64>().ok()?.checked_mul(1024)?;
    let sharers = of(index, "shared_cpu_list").and_then(|list| count(&list)).unwrap_or(1);
    bytes.checked_div(sharers.max(1) as u64)
}

fn cache(read: SysfsReader<'_>, index: usize) -> Option<String> {
    let of = |name: &str| line(read, &format!("devices/system/cpu/cpu0/cache/index{index}/{name}"));
    let kind = match of("type")?.as_str() {
        "Data" => "d",
        "Instruction" => "i",
        _ => "",
    };
    let shared = of("shared_cpu_list").and_then(|list| count(&list)).filter(|&n| n > 1);
    let shared = shared.map(|n| format!(" of {n} processors")).unwrap_or_default();
    Some(format!("L{}{kind} {}{shared}", of("level")?, of("size")?))
}

#[cfg(test)]
mod tests {
    use super::{caches, second_level};
    use crate::machine::files;

    #[test]
    fn levels_kinds_sizes_and_sharers() {
        let of = |index: usize, name: &str| format!("devices/system/cpu/cpu0/cache/index{index}/{name}");
        let mut list = Vec::new();
        for (index, [level, kind, size, shared]) in
            [["1", "Data", "32K", "0"], ["1", "Instruction", "32K", "0"], ["3", "Unified", "32768K", "0-1"]]
                .into_iter()
                .enumerate()
        {
            let names = ["level", "type", "size", "shared_cpu_list"].map(|name| of(index, name));
            list.extend(names.into_iter().zip([level, kind, size, shared].map(|text| format!("{text}\n"))));
        }
        let files_of: Vec<(&str, &str)> = list.iter().map(|(p, t)| (p.as_str(), t.as_str())).collect();
        let said = caches(&files::of(&files_of)).unwrap();
        assert_eq!(said, "L1d 32K, L1i 32K, L3 32768K of 2 processors");
        assert_eq!(caches(&files::of(&[])), None);
        assert_eq!(second_level(&files::of(&files_of)), None);
    }

    #[test]
    fn a_second_level_cache_is_shared_evenly() {
        let of = |name: &str| format!("devices/system/cpu/cpu0/cache/index0/{name}");
        let list = [(of("level"), "2"), (of("size"), "2048K"), (of("shared_cpu_list"), "0-3")];
        let files_of: Vec<(&str, &str)> = list.iter().map(|(p, t)| (p.as_str(), *t)).collect();
        assert_eq!(second_level(&files::of(&files_of)), Some(512 << 10));
    }
}
