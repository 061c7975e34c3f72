//! Which inputs are computed together.

use std::ops::Range;

/// Cuts inputs of these lengths into runs of at most `inputs` neighbours with at most `tokens` tokens, or of one longer
/// input.
pub(super) fn cut(lengths: &[usize], tokens: usize, inputs: usize) -> Vec<Range<usize>> {
    let (mut out, mut first, mut used) = (Vec::new(), 0, 0);
    for (i, &length) in lengths.iter().enumerate() {
        if i > first && (used + length > tokens || i - first == inputs) {
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
        assert_eq!(cut(&[3, 4, 5, 1, 20, 2], 8, 9), [0..2, 2..4, 4..5, 5..6]);
        assert_eq!(cut(&[8, 8], 8, 9), [0..1, 1..2]);
        assert_eq!(cut(&[9], 8, 9), vec![0..1]);
        assert!(cut(&[], 8, 9).is_empty());
    }

    #[test]
    fn a_step_has_so_many_inputs_at_most() {
        assert_eq!(cut(&[1; 5], 8, 2), [0..2, 2..4, 4..5]);
        assert_eq!(cut(&[1; 2], 8, 1), [0..1, 1..2]);
    }
}
