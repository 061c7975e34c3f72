//! What a rule is: a law of algebra, as a function from a value to other values that are equal to it.

use yirage_compile::terms::{Terms, Val};

/// A law that rewrites graphs.
///
/// Laws are those of real numbers: a rewritten graph may round otherwise. What is too far from the input is for the
/// verifier to refuse.
#[derive(Clone, Copy)]
pub struct Rule {
    /// Its name in results.
    pub name: &'static str,
    /// What it matches, what it makes and when.
    pub law: &'static str,
    /// Graphs in text form in which it finds something. `B`, `M`, `K` and `N` stand for sizes, any of them.
    pub cases: &'static [&'static str],
    pub(super) apply: Apply,
}

/// What is equal to a value.
pub(super) type Local = fn(&mut Terms, Val) -> Vec<Option<Val>>;
/// Values of one graph, in the order of the terms given, that others may replace together.
pub(super) type Joint = fn(&mut Terms, &[u32]) -> Vec<Vec<(Val, Val)>>;

#[derive(Clone, Copy)]
pub(super) enum Apply {
    /// Looks at one value and what it is made of.
    Local(Local),
    /// Looks at all values of a graph.
    Joint(Joint),
}

impl Rule {
    pub(super) const fn local(
        name: &'static str,
        law: &'static str,
        apply: Local,
        cases: &'static [&'static str],
    ) -> Rule {
        Rule { name, law, cases, apply: Apply::Local(apply) }
    }

    pub(super) const fn joint(
        name: &'static str,
        law: &'static str,
        apply: Joint,
        cases: &'static [&'static str],
    ) -> Rule {
        Rule { name, law, cases, apply: Apply::Joint(apply) }
    }
}

impl std::fmt::Debug for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.name, self.law)
    }
}
