//! Rows of the model's hidden state that an MTP head has not read yet.
//!
//! They are counted as the head counts its tokens. It knows neither tokens nor what a row means.

/// Rows of consecutive places.
pub(super) struct HiddenRows {
    width: usize,
    first: usize,
    values: Vec<f32>,
}

impl HiddenRows {
    /// Rows of `width` numbers, the first of them of the place `first`.
    pub(super) fn new(width: usize, first: usize, values: &[f32]) -> HiddenRows {
        HiddenRows { width, first, values: values.to_vec() }
    }

    /// The same rows, the first of them of the place `first`.
    pub(super) fn moved_to(self, first: usize) -> HiddenRows {
        HiddenRows { first, ..self }
    }

    /// The place behind the last row.
    pub(super) fn end(&self) -> usize {
        self.first + self.values.len() / self.width
    }

    /// Takes the rows from the place `at` on, which is not behind [`HiddenRows::end`]; those that are here are what they were.
    pub(super) fn push(&mut self, at: usize, values: &[f32]) {
        let known = (self.end() - at) * self.width;
        self.values.extend(values.iter().skip(known));
    }

    /// The rows of the places `from` to `to`, if all are here.
    pub(super) fn get(&self, from: usize, to: usize) -> Option<&[f32]> {
        let at = |place: usize| place.checked_sub(self.first).map(|place| place * self.width);
        self.values.get(at(from)?..at(to)?)
    }

    /// Forgets the rows before a place.
    pub(super) fn forget_before(&mut self, place: usize) {
        let gone = place.clamp(self.first, self.end());
        self.values.drain(..(gone - self.first) * self.width);
        self.first = gone;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_once_and_go_from_the_front() {
        let mut rows = HiddenRows::new(2, 3, &[3.0, 3.5, 4.0, 4.5]);
        rows.push(4, &[9.0, 9.5, 5.0, 5.5]);
        assert_eq!((rows.end(), rows.get(4, 6)), (6, Some(&[4.0, 4.5, 5.0, 5.5][..])), "row 4 is what it was");
        rows.push(3, &[9.0; 4]);
        assert_eq!(rows.end(), 6, "nothing of it is new");
        assert_eq!((rows.get(2, 4), rows.get(5, 7), rows.get(6, 6)), (None, None, Some(&[][..])));
        rows.forget_before(5);
        assert_eq!((rows.get(4, 6), rows.get(5, 6)), (None, Some(&[5.0, 5.5][..])));
        rows.forget_before(1);
        rows.forget_before(9);
        assert_eq!((rows.end(), rows.get(6, 6)), (6, Some(&[][..])));
    }
}
