//! Numbers of CNNL that stand in no public header, once they were found (`trial.rs`).

use crate::operators::OperandElement;

/// What was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct LibraryNumbers {
    /// Which operation of `cnnlOpTensor` multiplies.
    pub(super) multiply: i32,
    /// Those of `CASTS`.
    pub(super) casts: [Option<i32>; 4],
}

/// Between which elements a number converts, in the order of [`LibraryNumbers`].
pub(super) const CASTS: [(OperandElement, OperandElement); 4] = [
    (OperandElement::F16, OperandElement::F32),
    (OperandElement::F32, OperandElement::F16),
    (OperandElement::BF16, OperandElement::F32),
    (OperandElement::F32, OperandElement::BF16),
];

impl LibraryNumbers {
    /// The number of a conversion; none where the library has none that rounds as it has to.
    pub(super) fn cast(&self, from: OperandElement, to: OperandElement) -> Option<i32> {
        CASTS.iter().position(|&pair| pair == (from, to)).and_then(|at| self.casts[at])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversion_has_the_number_of_its_direction() {
        let numbers = LibraryNumbers { multiply: 2, casts: [Some(7), None, None, Some(9)] };
        let (wide, narrow) = (OperandElement::F32, OperandElement::BF16);
        assert_eq!((numbers.cast(wide, narrow), numbers.cast(narrow, wide)), (Some(9), None));
        assert_eq!(numbers.cast(wide, OperandElement::Bool), None);
    }
}
