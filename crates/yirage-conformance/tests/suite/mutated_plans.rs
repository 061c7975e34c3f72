//! Plans that are spoilt in every way that their values and their text allow. Each is refused by the parser or by the
//! proof; or it runs, gives what the sound plan gives as long as it says the same, and touches no byte that it must not
//! (the device's memory is guarded where it can be).
#![allow(clippy::print_stdout)] // says what it did

mod subject;
mod values;
mod words;

use std::collections::BTreeMap;
use subject::{Subject, subjects};
use yirage_ir::rng::Rng;
use yirage_plan::{Plan, VerifiedPlan, text};

/// What became of a spoilt plan.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Fate {
    /// Nothing was changed.
    Same,
    /// The text is no plan.
    Unread,
    /// The proof fails.
    Refused,
    /// The device says why it does not load or run it.
    Error,
    /// It ran.
    Ran,
}

fn run(count: usize) {
    let subjects = subjects();
    let mut rng = Rng::new(2_048);
    let mut fates: BTreeMap<(&str, Fate), usize> = BTreeMap::new();
    for n in 0..count {
        let subject = &subjects[n % subjects.len()];
        let (kind, fate) = if (n / subjects.len()).is_multiple_of(2) {
            let mut plan = subject.plan.clone();
            let kinds: Vec<&str> = (0..1 + rng.index(2)).map(|_| values::spoil(&mut plan, &mut rng)).collect();
            (kinds[0], try_plan(subject, plan))
        } else {
            let spoilt = words::spoil(&subject.text, &mut rng);
            ("text", text::parse(&spoilt).map_or(Fate::Unread, |plan| try_plan(subject, plan)))
        };
        *fates.entry((kind, fate)).or_default() += 1;
    }
    for ((kind, fate), n) in &fates {
        println!("{kind}: {n} {fate:?}");
    }
    let refused: usize = fates.iter().filter(|((_, fate), _)| *fate == Fate::Refused).map(|(_, n)| n).sum();
    let ran: usize = fates.iter().filter(|((_, fate), _)| *fate == Fate::Ran).map(|(_, n)| n).sum();
    assert!(refused > count / 4 && ran > count / 100, "{refused} refused, {ran} ran");
}

fn try_plan(subject: &Subject, plan: Plan) -> Fate {
    if plan == subject.plan {
        return Fate::Same;
    }
    let same = subject.says_the_same(&plan);
    let Ok(plan) = VerifiedPlan::new(plan, &subject.target) else { return Fate::Refused };
    let Ok(got) = subject.run(&plan) else { return Fate::Error };
    assert!(!same || got == subject.wanted, "{}: other values from\n{}", subject.name, text::print(&plan));
    Fate::Ran
}

#[test]
fn two_thousand_spoilt_plans_are_refused_or_harmless() {
    run(2_000);
}

#[test]
#[ignore = "takes minutes: a tenth of them runs always"]
fn twenty_thousand_spoilt_plans_are_refused_or_harmless() {
    run(20_000);
}
