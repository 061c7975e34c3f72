//! A case's outcome in numbers, with its op and the formats that it reads.

use crate::ConformanceCase;
use crate::comparison::{CaseComparison, CaseError};
use crate::setup::Trouble;
use yirage_hal::Device;
use yirage_ir::op::OpCase;
use yirage_ir::{DType, Format};

/// What became of a case that was measured.
#[derive(Clone, PartialEq, Debug)]
pub enum MeasuredOutcome {
    /// Within its tolerance.
    Passed,
    /// Beyond it by the rounding of log-probabilities that are wanted to the bit: which, first.
    Rounded(String),
    /// The device has no kernel that takes it so, and compiling said why.
    Refused(String),
    /// Outside its tolerance, or not run for an error.
    Failed(String),
}

/// A case that was measured.
#[derive(Clone, PartialEq, Debug)]
pub struct MeasuredCase {
    /// `op: case`.
    pub name: String,
    /// The op's name.
    pub op: &'static str,
    /// The stored formats that it reads, and those of quantised activations, each once; `f32` where there are no others.
    pub formats: Vec<&'static str>,
    /// What became of it.
    pub outcome: MeasuredOutcome,
    /// How far it is from the reference, where it ran.
    pub error: Option<CaseError>,
}

impl ConformanceCase {
    pub(crate) fn measured(&self, device: &dyn Device) -> MeasuredCase {
        let (outcome, error) = match self.compared(device, None) {
            Ok(CaseComparison { error, wrong: None, .. }) => (MeasuredOutcome::Passed, Some(error)),
            Ok(CaseComparison { error, wrong: Some(why), only_rounded: true }) => {
                (MeasuredOutcome::Rounded(why), Some(error))
            }
            Ok(CaseComparison { error, wrong: Some(why), .. }) => (MeasuredOutcome::Failed(why), Some(error)),
            Err(Trouble::Refused(why)) if self.is_refusable(device) => (MeasuredOutcome::Refused(why), None),
            Err(Trouble::Refused(why) | Trouble::Failed(why)) => (MeasuredOutcome::Failed(why), None),
        };
        let (op, formats) = (self.case.op.name(), formats(&self.case));
        MeasuredCase { name: self.name.clone(), op, formats, outcome, error }
    }
}

fn formats(case: &OpCase) -> Vec<&'static str> {
    let mut formats = Vec::new();
    for input in &case.ins {
        let format = match (input.activation_format(), input.dtype) {
            (Some(layout), _) => layout.info().name,
            (None, DType::Stored(format)) if format != Format::F32 => format.info().name,
            _ => continue,
        };
        if !formats.contains(&format) {
            formats.push(format);
        }
    }
    if formats.is_empty() { vec![DType::F32.name()] } else { formats }
}

#[cfg(test)]
mod tests {
    use crate::{MeasuredOutcome, Suite};
    use std::collections::BTreeSet;
    use yirage_hal::reference::Reference;
    use yirage_hal::{Backend, OpenOptions};
    use yirage_ir::Format;

    /// The reference is no distance from itself, whatever it reads.
    #[test]
    fn every_stored_format_is_read_by_some_case() {
        let (device, _) = Reference::new().open(0, &OpenOptions::default()).unwrap();
        let suite = Suite::quick_of(&["linear", "softmax", "embed"]);
        let mut formats = BTreeSet::new();
        for case in suite.measured(&*device) {
            assert_eq!(case.outcome, MeasuredOutcome::Passed, "{}", case.name);
            let error = case.error.unwrap();
            assert_eq!((error.absolute, error.relative, error.of_tolerance), (0.0, 0.0, 0.0), "{}", case.name);
            assert!(case.name.starts_with(case.op));
            formats.extend(case.formats);
        }
        let missing: Vec<_> =
            Format::ALL.iter().map(|f| f.info().name).filter(|name| !formats.contains(name)).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
