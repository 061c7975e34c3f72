//! Which tensors a model reads, and which it is given.

use super::core::Forward;
use std::collections::BTreeSet;

/// How the names of given tensors differ from those that a model reads.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NameDifferences {
    /// Names that the model reads and that are not given, in order.
    pub missing: Vec<String>,
    /// Names that are given and that the model does not have, in order.
    pub unexpected: Vec<String>,
}

impl NameDifferences {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.missing.is_empty() && self.unexpected.is_empty()
    }
}

/// A head that is the embedding again.
const TIED: &str = "lm_head.weight";

impl Forward {
    /// Names of the stored tensors that the model reads, in order.
    pub fn tensors(&self) -> Vec<&str> {
        let names: BTreeSet<&str> = self.model.weights.iter().flat_map(|weight| weight.tensors()).collect();
        names.into_iter().collect()
    }

    /// How these names differ from the ones that the model reads. A head that the model ties to its embedding may be there.
    pub fn compare<'a>(&self, given: impl Iterator<Item = &'a str>) -> NameDifferences {
        let (wanted, given): (BTreeSet<&str>, BTreeSet<&str>) = (self.tensors().into_iter().collect(), given.collect());
        let owned = |names: Vec<&&str>| names.into_iter().map(|name| (*name).to_owned()).collect();
        let extra = given.difference(&wanted).filter(|name| !(self.ties_head && **name == TIED));
        NameDifferences { missing: owned(wanted.difference(&given).collect()), unexpected: owned(extra.collect()) }
    }
}
