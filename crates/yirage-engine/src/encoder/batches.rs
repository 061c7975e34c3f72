//! Which inputs are computed together.

use std::ops::Range;

/// Cuts inputs of these lengths into runs of neighbours of at most `tokens` tokens each, or of one longer input.
pub(super) fn cut(lengths: &[usize], tokens: usize) -> Vec<Range<usize>> {
    let (mut out, mut first, mut used) = (Vec::new(), 0, 0);
    for (i, &length) in lengths.iter().enumerate() {
        if i > first && used + length > tokens {
            out.push(first..i);
            (first, used) = (i, 0);
        }
        used += length;
    }
    if first < lengths.len() {
        out.push(first..lengths.len());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn neighbours_fill_a_step_and_a_long_input_has_its_own() {
        assert_eq!(cut(&[3, 4, 5, 1, 20, 2], 8), [0..2, 2..4, 4..5, 5..6]);
        assert_eq!(cut(&[8, 8], 8), [0..1, 1..2]);
        assert_eq!(cut(&[9], 8), [0..1]);
        assert!(cut(&[], 8).is_empty());
    }
}
