//! Large pages: whether the system gives them, and whether some are set aside.

use super::{SysfsReader, line};

/// The mode of transparent huge pages, and the pages that are set aside.
pub(super) fn huge_pages(read: SysfsReader<'_>) -> Option<String> {
    let modes = line(read, "kernel/mm/transparent_hugepage/enabled")?;
    // The mode that holds stands in brackets.
    let mode = modes.split_once('[')?.1.split_once(']')?.0;
    let set_aside = line(read, "kernel/mm/hugepages/hugepages-2048kB/nr_hugepages").filter(|pages| pages != "0");
    let set_aside = set_aside.map(|pages| format!(", {pages} of 2 MiB set aside")).unwrap_or_default();
    Some(match mode {
        "never" => format!("transparent: never, so that large buffers are slower{set_aside}"),
        mode => format!("transparent: {mode}{set_aside}"),
    })
}

#[cfg(test)]
mod tests {
    use super::huge_pages;
    use crate::machine::files;

    #[test]
    fn the_mode_in_brackets_holds() {
        let of = |modes: &str, pages: &str| {
            let modes = ("kernel/mm/transparent_hugepage/enabled", modes);
            huge_pages(&files::of(&[modes, ("kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", pages)]))
        };
        assert_eq!(of("always [madvise] never\n", "0\n").unwrap(), "transparent: madvise");
        assert_eq!(of("[always] madvise never\n", "64\n").unwrap(), "transparent: always, 64 of 2 MiB set aside");
        assert!(of("always madvise [never]\n", "0").unwrap().contains("slower"));
        assert_eq!(of("nonsense", "0"), None);
    }
}
