//! A verification beside an earlier one: what became worse, and what better.

use super::record::{CaseGroup, ErrorRecord, ModelRecord, ModelRun, VerifyComparison, VerifyRecord};
use std::collections::BTreeSet;

/// Growth of an error that is none: what another order of work may give on another machine.
const GROWTH: f64 = 1.25;
/// Shares of a tolerance, drifts and divergences below these are all as good.
const SMALL_SHARE: f64 = 0.05;
const SMALL_DRIFT: f64 = 1e-6;
const SMALL_DIVERGENCE: f64 = 1e-9;

impl VerifyComparison {
    /// What changed from `old` to `new`.
    pub(crate) fn new(old: &VerifyRecord, new: &VerifyRecord) -> VerifyComparison {
        let mut found = VerifyComparison::default();
        found.same("device", &old.device.name, &new.device.name);
        found.same("backend", &old.device.backend, &new.device.backend);
        found.same("driver", &old.device.driver_version, &new.device.driver_version);
        let ways = |record: &VerifyRecord| (record.suite.quick, record.suite.only.clone());
        found.same("cases (--quick, --ops)", &ways(old), &ways(new));
        found.cases(old, new);
        found.groups(&old.suite.ops, &new.suite.ops, "");
        found.groups(&old.suite.formats, &new.suite.formats, "format ");
        match (&old.model, &new.model) {
            (Some(old), Some(new)) => found.models(old, new),
            (old, new) => found.same("a model that was run", &old.is_some(), &new.is_some()),
        }
        found
    }

    fn same<T: PartialEq + std::fmt::Debug>(&mut self, what: &str, old: &T, new: &T) {
        if old != new {
            self.notes.push(format!("not the same {what}: {old:?} before, {new:?} now"));
        }
    }

    /// Cases that fail, by name: those of before that did not run now are nobody's gain.
    fn cases(&mut self, old: &VerifyRecord, new: &VerifyRecord) {
        let failed = |record: &VerifyRecord| -> BTreeSet<String> {
            record.suite.failed.iter().map(|failed| failed.case.clone()).collect()
        };
        let (before, now) = (failed(old), failed(new));
        self.worse.extend(now.difference(&before).map(|case| format!("{case}: fails now")));
        let ran = |case: &str| new.suite.ops.iter().any(|op| case.starts_with(&format!("{}: ", op.name)));
        let gone = before.difference(&now).filter(|case| ran(case));
        self.better.extend(gone.map(|case| format!("{case}: fails no more")));
    }

    fn groups(&mut self, old: &[CaseGroup], new: &[CaseGroup], what: &str) {
        for now in new {
            let name = format!("{what}{}", now.name);
            let Some(before) = old.iter().find(|group| group.name == now.name) else {
                self.notes.push(format!("{name}: not there before"));
                continue;
            };
            let total = |group: &CaseGroup| group.passed + group.rounded + group.refused + group.failed;
            if total(before) == total(now) {
                self.fewer(&name, "refused", before.refused, now.refused);
                self.fewer(&name, "rounded otherwise", before.rounded, now.rounded);
            }
            let share = |group: &CaseGroup| group.error.map(|ErrorRecord { of_tolerance, .. }| of_tolerance);
            if let (Some(before), Some(now)) = (share(before), share(now)) {
                self.error(
                    &format!("{name}: the largest error, as a share of its tolerance,"),
                    before,
                    now,
                    SMALL_SHARE,
                );
            }
        }
    }

    /// A number of cases of which fewer are better.
    fn fewer(&mut self, name: &str, what: &str, before: usize, now: usize) {
        let text = format!("{name}: {now} cases {what}, {before} before");
        match now.cmp(&before) {
            std::cmp::Ordering::Greater => self.worse.push(text),
            std::cmp::Ordering::Less => self.better.push(text),
            std::cmp::Ordering::Equal => {}
        }
    }

    /// An error, which is no number where it is infinite.
    fn error(&mut self, what: &str, before: Option<f64>, now: Option<f64>, small: f64) {
        let [before, now] = [before, now].map(|error| error.unwrap_or(f64::INFINITY));
        let text = format!("{what} is {now:.1e}, {before:.1e} before");
        let grew = |from: f64, to: f64| to > small && to > from.max(small) * GROWTH;
        if grew(before, now) {
            self.worse.push(text);
        } else if grew(now, before) {
            self.better.push(text);
        }
    }

    fn models(&mut self, old: &ModelRecord, new: &ModelRecord) {
        let subject = |model: &ModelRecord| (model.name.clone(), model.against.clone(), model.tokens);
        self.same("model", &subject(old), &subject(new));
        if subject(old) != subject(new) {
            return;
        }
        for now in &new.runs {
            if let Some(before) = old.runs.iter().find(|run| run.precision == now.precision) {
                self.runs(before, now);
            }
        }
    }

    fn runs(&mut self, old: &ModelRun, new: &ModelRun) {
        let name = format!("the model in {}", new.precision);
        match (&old.error, &new.error) {
            (None, Some(error)) => self.worse.push(format!("{name}: not computed now: {error}")),
            (Some(_), None) => self.better.push(format!("{name}: computed now")),
            (Some(_), Some(_)) => {}
            (None, None) => {
                let most =
                    |run: &ModelRun| run.drift.iter().map(|drift| drift.unwrap_or(f64::INFINITY)).fold(0.0, f64::max);
                self.error(&format!("{name}: the largest drift"), Some(most(old)), Some(most(new)), SMALL_DRIFT);
                self.error(&format!("{name}: the mean divergence"), old.kl_mean, new.kl_mean, SMALL_DIVERGENCE);
                self.fewer(&name, "of tokens that differ", old.different, new.different);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::record::{CaseRecord, SuiteRecord};
    use yirage_hal::DeviceInfo;

    fn group(name: &str, refused: usize, share: Option<f64>) -> CaseGroup {
        let error = Some(ErrorRecord { absolute: share, relative: share, of_tolerance: share });
        CaseGroup { name: name.into(), passed: 10 - refused, refused, error, ..CaseGroup::default() }
    }

    fn record(ops: Vec<CaseGroup>, failed: &[&str]) -> VerifyRecord {
        let failed = failed.iter().map(|case| CaseRecord { case: (*case).into(), why: "off".into() }).collect();
        let suite = SuiteRecord { ops, failed, ..SuiteRecord::default() };
        VerifyRecord::new(&DeviceInfo::new("cpu", 0, "a processor", "x"), suite, None)
    }

    #[test]
    fn failures_refusals_and_growth_are_told_both_ways() {
        let old = record(vec![group("linear", 0, Some(0.5)), group("map", 2, Some(0.1))], &["map: a", "gone: b"]);
        let new = record(vec![group("linear", 1, Some(0.9)), group("map", 2, Some(0.11))], &["linear: c"]);
        let found = VerifyComparison::new(&old, &new);
        assert_eq!(found.worse.len(), 3, "{found:?}");
        assert_eq!(found.worse[0], "linear: c: fails now");
        assert_eq!(found.worse[1], "linear: 1 cases refused, 0 before");
        assert!(found.worse[2].starts_with("linear: the largest error"), "{found:?}");
        assert_eq!(found.better, ["map: a: fails no more"]);
        let back = VerifyComparison::new(&new, &old);
        assert_eq!((back.worse.len(), back.better.len()), (2, 3), "{back:?}");
    }

    #[test]
    fn nothing_is_said_of_what_is_the_same_and_other_devices_are_told() {
        let old = record(vec![group("linear", 0, Some(0.5))], &[]);
        assert_eq!(VerifyComparison::new(&old, &old), VerifyComparison::default());
        let mut other = old.clone();
        other.device.name = "another".into();
        assert_eq!(VerifyComparison::new(&old, &other).notes.len(), 1);
        let lost = record(vec![group("linear", 0, None)], &[]);
        assert_eq!(VerifyComparison::new(&old, &lost).worse.len(), 1, "an error that is no number is the largest");
    }
}
