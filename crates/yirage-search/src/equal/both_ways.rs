//! Whether two graphs compute the same, whichever is named first.

use super::certificate::Certificate;
use super::equivalent;
use super::error::NotEqual;
use super::options::EqualityOptions;
use yirage_ir::Graph;

/// What there is for each of two graphs to stand for the other. Either may round more, take an input that it does not read, or
/// be defined for fewer whole numbers: then one may stand for the other, and not the other way round.
#[derive(Clone, PartialEq, Debug)]
pub struct BothWays {
    /// That the second may stand for the first.
    pub second_for_first: Result<Certificate, NotEqual>,
    /// That the first may stand for the second.
    pub first_for_second: Result<Certificate, NotEqual>,
}

impl BothWays {
    /// Compares each of two graphs with the other as [`equivalent`] does.
    pub fn of(first: &Graph, second: &Graph, options: &EqualityOptions) -> BothWays {
        BothWays {
            second_for_first: equivalent(first, second, options),
            first_for_second: equivalent(second, first, options),
        }
    }

    /// What shows that they compute the same: that one may stand for the other, the second for the first where each may.
    ///
    /// # Errors
    /// Why the second may not stand for the first, where neither may.
    pub fn shown(&self) -> Result<&Certificate, &NotEqual> {
        match (&self.second_for_first, &self.first_for_second) {
            (Ok(certificate), _) | (Err(_), Ok(certificate)) => Ok(certificate),
            (Err(why), Err(_)) => Err(why),
        }
    }
}
