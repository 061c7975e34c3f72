//! The conformance suite on a device, its cases gathered by op and by format.

use super::record::{CaseGroup, CaseRecord, ErrorRecord, RefusalRecord, SuiteRecord};
use crate::console::Console;
use yirage_conformance::{CaseError, MeasuredCase, MeasuredOutcome, Suite};
use yirage_hal::Device;

/// Cases under one name, as they are gathered.
struct GatheredCases {
    counts: CaseGroup,
    error: Option<CaseError>,
}

/// What all cases gave so far.
#[derive(Default)]
struct SuiteFindings {
    ops: Vec<GatheredCases>,
    formats: Vec<GatheredCases>,
    record: SuiteRecord,
}

/// Runs the suite; each op is told as it begins.
pub(crate) fn suite_record(suite: &Suite, device: &dyn Device, console: &Console) -> SuiteRecord {
    let mut findings = SuiteFindings::default();
    findings.record.left_out = suite.left_out(device);
    for case in suite.measured(device) {
        if findings.ops.last().is_none_or(|op| op.counts.name != case.op) {
            console.note(&format!("testing: {}", case.op));
        }
        findings.add(case);
    }
    findings.finish()
}

impl SuiteFindings {
    fn add(&mut self, case: MeasuredCase) {
        self.record.cases += 1;
        gathered(&mut self.ops, case.op).add(&case);
        case.formats.iter().for_each(|format| gathered(&mut self.formats, format).add(&case));
        let MeasuredCase { name, op, outcome, .. } = case;
        match outcome {
            MeasuredOutcome::Passed => {}
            MeasuredOutcome::Rounded(why) => self.record.rounded.push(CaseRecord { case: name, why }),
            MeasuredOutcome::Failed(why) => self.record.failed.push(CaseRecord { case: name, why }),
            MeasuredOutcome::Refused(why) => match self.record.refused.last_mut().filter(|last| last.op == op) {
                Some(last) => last.cases += 1,
                None => self.record.refused.push(RefusalRecord { op: op.into(), cases: 1, why }),
            },
        }
    }

    fn finish(self) -> SuiteRecord {
        let mut formats: Vec<CaseGroup> = self.formats.into_iter().map(GatheredCases::finish).collect();
        formats.sort_by(|a, b| a.name.cmp(&b.name));
        SuiteRecord { ops: self.ops.into_iter().map(GatheredCases::finish).collect(), formats, ..self.record }
    }
}

/// The cases under a name, a new one where there are none.
fn gathered<'a>(groups: &'a mut Vec<GatheredCases>, name: &str) -> &'a mut GatheredCases {
    let at = groups.iter().position(|group| group.counts.name == name).unwrap_or_else(|| {
        let counts = CaseGroup { name: name.into(), ..CaseGroup::default() };
        groups.push(GatheredCases { counts, error: None });
        groups.len() - 1
    });
    &mut groups[at]
}

impl GatheredCases {
    fn add(&mut self, case: &MeasuredCase) {
        *match case.outcome {
            MeasuredOutcome::Passed => &mut self.counts.passed,
            MeasuredOutcome::Rounded(_) => &mut self.counts.rounded,
            MeasuredOutcome::Refused(_) => &mut self.counts.refused,
            MeasuredOutcome::Failed(_) => &mut self.counts.failed,
        } += 1;
        self.error = case.error.map(|error| error.most(self.error.unwrap_or_default())).or(self.error);
    }

    fn finish(self) -> CaseGroup {
        CaseGroup { error: self.error.map(ErrorRecord::new), ..self.counts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(name: &str, op: &'static str, formats: &[&'static str], outcome: MeasuredOutcome, of: f64) -> MeasuredCase {
        let error = Some(CaseError { absolute: of, relative: of, of_tolerance: of });
        MeasuredCase { name: name.into(), op, formats: formats.to_vec(), outcome, error }
    }

    #[test]
    fn cases_are_counted_by_op_and_by_format() {
        let mut findings = SuiteFindings::default();
        findings.add(case("linear: a", "linear", &["q4_0", "f16"], MeasuredOutcome::Passed, 0.25));
        findings.add(case("linear: b", "linear", &["q4_0"], MeasuredOutcome::Failed("off".into()), f64::INFINITY));
        let refused =
            MeasuredCase { error: None, ..case("map: a", "map", &["f32"], MeasuredOutcome::Refused("no".into()), 0.0) };
        findings.add(refused.clone());
        findings.add(refused);
        let record = findings.finish();
        let counts = |g: &CaseGroup| (g.name.clone(), g.passed, g.rounded, g.refused, g.failed);
        let ops: Vec<_> = record.ops.iter().map(counts).collect();
        assert_eq!(ops, [("linear".to_owned(), 1, 0, 0, 1), ("map".to_owned(), 0, 0, 2, 0)]);
        let formats: Vec<_> = record.formats.iter().map(|g| g.name.as_str()).collect();
        assert_eq!((record.cases, formats), (4, vec!["f16", "f32", "q4_0"]));
        assert_eq!(record.formats[0].error.unwrap().of_tolerance, Some(0.25));
        assert_eq!(record.ops[0].error.unwrap().of_tolerance, None, "what is infinite is no number of JSON");
        assert_eq!(record.ops[1].error, None);
        assert_eq!(record.refused, [RefusalRecord { op: "map".into(), cases: 2, why: "no".into() }]);
        assert_eq!(record.failed, [CaseRecord { case: "linear: b".into(), why: "off".into() }]);
    }
}
