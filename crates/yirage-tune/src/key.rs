//! What a kept result belongs to.

use crate::options::SuperOptions;
use yirage_hal::Device;
use yirage_ir::Graph;
use yirage_ir::hash::fnv128;
use yirage_search::RULES_VERSION;
use yirage_search::equal::CHECKER_VERSION;

/// What a kept result belongs to, in words. Two searches with equal keys ask the same.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct TuneKey(String);

impl TuneKey {
    pub(crate) fn of(graph: &Graph, device: &dyn Device, options: &SuperOptions) -> TuneKey {
        let (info, target) = (device.info(), device.target());
        let facts = fnv128(format!("{target:?}").as_bytes());
        let driver = (&info.driver_version, &info.sdk_version);
        TuneKey(format!(
            "graph {:032x}\nrules {RULES_VERSION}\nchecker {CHECKER_VERSION}\ntarget {} {facts:032x}\n\
             device {} {} {driver:?}\narguments {}\n",
            graph.structural_hash(),
            target.describe(),
            info.backend,
            info.name,
            options.arguments(),
        ))
    }

    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    /// A name for files.
    pub(crate) fn id(&self) -> u128 {
        fnv128(self.0.as_bytes())
    }
}
