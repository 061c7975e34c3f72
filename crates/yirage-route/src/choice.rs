//! To which replica a request goes: a decision of numbers.

/// What is known of a replica.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReplicaLoad {
    /// Whether it may be given the request: it takes some, and has not failed at this one.
    pub is_candidate: bool,
    /// Requests that it answers now.
    pub open: usize,
    /// Requests that it was given so far.
    pub given: u64,
}

/// Why a replica was chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChoiceReason {
    /// It has computed the beginning of the prompt.
    Affinity,
    /// Another has, and cannot be given the request or has too much to do.
    AffinityPassed,
    /// Nobody has, and it has the least to do.
    Load,
}

/// A replica and why.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReplicaChoice {
    /// Its number.
    pub replica: usize,
    /// Why.
    pub reason: ChoiceReason,
}

/// The replica of a request: the one that has its beginning (`owner`) unless it answers more than `slack` requests above the
/// least of all candidates, else the one with the fewest open requests, of equals the one that was given the fewest. None where
/// there is no candidate.
pub fn choose(replicas: &[ReplicaLoad], owner: Option<usize>, slack: usize) -> Option<ReplicaChoice> {
    let candidates = || replicas.iter().enumerate().filter(|(_, load)| load.is_candidate);
    let (least, load) = candidates().min_by_key(|(at, load)| (load.open, load.given, *at))?;
    let owned = owner.and_then(|at| replicas.get(at)).filter(|owned| owned.is_candidate);
    Some(match (owner, owned) {
        (Some(replica), Some(owned)) if owned.open <= load.open.saturating_add(slack) => {
            ReplicaChoice { replica, reason: ChoiceReason::Affinity }
        }
        (Some(_), _) => ReplicaChoice { replica: least, reason: ChoiceReason::AffinityPassed },
        (None, _) => ReplicaChoice { replica: least, reason: ChoiceReason::Load },
    })
}

#[cfg(test)]
mod tests {
    use super::{ChoiceReason, ReplicaLoad, choose};

    fn loads(of: &[(bool, usize, u64)]) -> Vec<ReplicaLoad> {
        of.iter().map(|&(is_candidate, open, given)| ReplicaLoad { is_candidate, open, given }).collect()
    }

    #[test]
    fn who_has_the_beginning_is_chosen_until_others_have_much_less_to_do() {
        let chosen = |of: &[(bool, usize, u64)], owner| choose(&loads(of), owner, 2).map(|c| (c.replica, c.reason));
        assert_eq!(chosen(&[(true, 0, 9), (true, 2, 9)], Some(1)), Some((1, ChoiceReason::Affinity)));
        assert_eq!(chosen(&[(true, 0, 9), (true, 3, 9)], Some(1)), Some((0, ChoiceReason::AffinityPassed)));
        assert_eq!(chosen(&[(true, 5, 9), (false, 0, 9)], Some(1)), Some((0, ChoiceReason::AffinityPassed)));
        assert_eq!(chosen(&[(false, 0, 9), (false, 0, 9)], Some(1)), None);
        // A replica that is not there any more owns nothing.
        assert_eq!(chosen(&[(true, 0, 9)], Some(7)), Some((0, ChoiceReason::AffinityPassed)));
    }

    #[test]
    fn without_a_beginning_the_least_busy_is_chosen_and_of_equals_the_one_that_was_given_least() {
        let chosen = |of: &[(bool, usize, u64)]| choose(&loads(of), None, 2).map(|c| (c.replica, c.reason));
        assert_eq!(chosen(&[(true, 1, 0), (true, 0, 5), (true, 0, 4)]), Some((2, ChoiceReason::Load)));
        assert_eq!(chosen(&[(true, 0, 4), (true, 0, 4)]), Some((0, ChoiceReason::Load)));
        assert_eq!(chosen(&[]), None);
    }
}
