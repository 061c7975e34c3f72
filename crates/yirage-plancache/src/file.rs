//! A plan as a file: sealed, with its key and what it takes and gives.
//!
//! ```text
//! yirage-plan 2
//! sum 2c26...
//! key 312
//! graph 1f0c...
//! ...
//! interface 80
//! graph layer
//! input %x: f32[Tokens, 64]
//! weight %w: f32[64, 64]
//! output %y: f32[Tokens, 64]
//! plan 2048
//! plan cpu x86_64/avx512 workers=2
//! ...
//! ```

use crate::error::PlanFileError;
use crate::interface::Interface;
use crate::interface_text::{interface_hash, parse_interface, print_interface};
use crate::key::{self, PlanKey};
use crate::limits::FILE_BYTES;
use yirage_packed::sealed;
use yirage_plan::{Plan, Target, VerifiedPlan, text};

/// The first line. Another number is another form.
const HEAD: &str = "yirage-plan 2";
/// The sections, in order.
const SECTIONS: [&str; 3] = ["key", "interface", "plan"];

/// What a plan file says. Nothing of it is proved.
#[derive(Clone, PartialEq, Debug)]
pub struct PlanFile {
    /// What the plan was made of.
    pub key: PlanKey,
    /// What the graph takes and gives.
    pub interface: Interface,
    /// The plan.
    pub plan: Plan,
}

/// A plan file whose plan is proved for a target, and takes and gives what the file says.
#[derive(Clone, PartialEq, Debug)]
pub struct ProvedFile {
    /// What the plan was made of.
    pub key: PlanKey,
    /// What the graph takes and gives.
    pub interface: Interface,
    /// The plan.
    pub plan: VerifiedPlan,
}

impl PlanFile {
    /// The text, which reads back as this.
    ///
    /// # Errors
    /// [`PlanFileError::NotWritable`], [`PlanFileError::TooLong`].
    pub fn print(&self) -> Result<String, PlanFileError> {
        let bodies = [self.key.to_string(), print_interface(&self.interface), text::print(&self.plan)];
        let sections: Vec<_> = SECTIONS.into_iter().zip(bodies.iter().map(String::as_str)).collect();
        let printed = sealed::seal(HEAD, &sections);
        check_length(&printed)?;
        // Names of graphs are any text, and those of plans are words.
        if PlanFile::parse(&printed).is_ok_and(|read| read == *self) {
            return Ok(printed);
        }
        Err(PlanFileError::NotWritable(self.interface.graph.clone()))
    }

    /// Reads a text that anybody may have written.
    ///
    /// # Errors
    /// [`PlanFileError`]: what is damaged, cut off or cannot be read.
    pub fn parse(printed: &str) -> Result<PlanFile, PlanFileError> {
        check_length(printed)?;
        let [key, interface, plan] = sealed::open(HEAD, SECTIONS, printed)?;
        Ok(PlanFile { key: PlanKey::parse(key)?, interface: parse_interface(interface)?, plan: text::parse(plan)? })
    }

    /// Proves the plan for a target.
    ///
    /// # Errors
    /// [`PlanFileError::Other`] for one of another compiler or target, [`PlanFileError::Plan`] where the proof fails,
    /// [`PlanFileError::Interface`] for a plan that takes or gives something else than the file says.
    pub fn prove(self, target: &Target) -> Result<ProvedFile, PlanFileError> {
        let PlanFile { key, interface, plan } = self;
        let here = PlanKey {
            // Of these the file alone knows; that the plan and the interface agree with them is checked.
            graph: key.graph,
            interface: interface_hash(&interface),
            compiler: key::compiler(),
            target: target.describe(),
            facts: key::facts(target),
            precision: plan.precision,
            fuse: key.fuse,
            bucket: plan.bucket,
        };
        key.check(&here)?;
        interface.check(&plan)?;
        Ok(ProvedFile { plan: VerifiedPlan::new(plan, target)?, key, interface })
    }
}

fn check_length(text: &str) -> Result<(), PlanFileError> {
    let bytes = text.len() as u64;
    if bytes > FILE_BYTES { Err(PlanFileError::TooLong { bytes, most: FILE_BYTES }) } else { Ok(()) }
}
