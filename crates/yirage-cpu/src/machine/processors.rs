//! Lists of processors as the system writes them: `0-3,8`.

/// How many processors a list has; none for what is no list.
pub(super) fn count(list: &str) -> Option<usize> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.trim().parse::<usize>().ok()?, last.trim().parse::<usize>().ok()?);
        last.checked_sub(first)?.checked_add(1)
    };
    list.split(',').try_fold(0usize, |sum, part| sum.checked_add(range(part)?))
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn lists_are_counted() {
        assert_eq!(["0", "0-3", "0-3,8", "0-1,4-5"].map(count), [Some(1), Some(4), Some(5), Some(4)]);
        assert_eq!(["", "x", "3-1", "0-", "0-18446744073709551615"].map(count), [None; 5]);
    }
}
