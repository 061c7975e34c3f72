//! What a search is asked for: the arguments of Mirage's `superoptimize`, and our own.

use std::fmt;
use std::time::Duration;
use yirage_compile::CompileOptions;
use yirage_ir::{Dims, RegionKind};
use yirage_plan::Target;
use yirage_search::{DEFAULT_BUDGET, DeviceRates};

/// A kind of graph, which says how much of its neighbourhood is worth looking at.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SearchPreset {
    /// Attention: twice the budget, because its best forms are further away.
    Attention,
    /// A product with a thin one beside it: the usual budget.
    Lora,
    /// Products with maps and norms: the usual budget.
    Mlp,
}

impl SearchPreset {
    /// The inverse of `Display`.
    pub fn parse(name: &str) -> Option<SearchPreset> {
        [SearchPreset::Attention, SearchPreset::Lora, SearchPreset::Mlp].into_iter().find(|c| c.to_string() == name)
    }
}

impl fmt::Display for SearchPreset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SearchPreset::Attention => "attention",
            SearchPreset::Lora => "lora",
            SearchPreset::Mlp => "mlp",
        })
    }
}

/// How a graph is superoptimised. Mirage's `verbose` is the callback of [`superoptimize`](crate::superoptimize), and its
/// `backend` the device.
#[derive(Clone, PartialEq, Debug)]
pub struct SuperOptions {
    /// The maps from grid axes to dimensions of inputs that tilings may use; -1 is none. `None` leaves it to the search.
    pub imaps: Option<Vec<[i32; 3]>>,
    /// The same of outputs.
    pub omaps: Option<Vec<[i32; 3]>>,
    /// The grids that tilings may use.
    pub griddims: Option<Vec<[u32; 3]>>,
    /// Threads of a block. Mirage takes none; a worker runs a block here.
    pub blockdims: Option<Vec<[u32; 3]>>,
    /// The dimensions of inputs that loops may cut; -1 is none.
    pub fmaps: Option<Vec<i32>>,
    /// The numbers of iterations that loops may have.
    pub franges: Option<Vec<u32>>,
    /// The kind of graph.
    pub config: Option<SearchPreset>,
    /// Steps of each graph before it is measured.
    pub warmup_iters: u32,
    /// Most steps of each graph that are measured, over all pairs.
    pub profile_iters: u32,
    /// Whether results are kept in the process, and looked for there.
    pub use_graph_dataset: bool,
    /// Whether results are kept on disk, and looked for there.
    pub use_cached_graphs: bool,
    /// Whether generated code is to be kept.
    pub save_codes: bool,
    /// Whether equality is to be proved formally.
    pub is_formal_verified: bool,
    /// The sizes for which graphs are compared.
    pub dims: Dims,
    /// How graphs are compiled.
    pub compile: CompileOptions,
    /// Nodes of all graphs that are looked at.
    pub budget: u64,
    /// Candidates that are proved and measured, at most.
    pub keep: usize,
    /// How fast the device is; measured where it is not said.
    pub rates: Option<DeviceRates>,
    /// When to stop with what there is. Without one the same arguments find the same candidates.
    pub time_limit: Option<Duration>,
}

impl Default for SuperOptions {
    fn default() -> SuperOptions {
        SuperOptions {
            imaps: None,
            omaps: None,
            griddims: None,
            blockdims: None,
            fmaps: None,
            franges: None,
            config: None,
            warmup_iters: 16,
            profile_iters: 1000,
            use_graph_dataset: true,
            use_cached_graphs: true,
            save_codes: false,
            is_formal_verified: false,
            dims: Dims { tokens: 1, seqs: 1, blocks: 1, rows: 1 },
            compile: CompileOptions::default(),
            budget: DEFAULT_BUDGET,
            keep: 8,
            rates: None,
            time_limit: None,
        }
    }
}

impl SuperOptions {
    /// The budget for this kind of graph.
    pub(crate) fn nodes(&self) -> u64 {
        if self.config == Some(SearchPreset::Attention) { self.budget.saturating_mul(2) } else { self.budget }
    }

    /// What was asked for and changes nothing here.
    pub(crate) fn without_meaning(&self, target: &Target) -> Vec<String> {
        let mut notes = Vec::new();
        let tilings = [
            ("imaps", self.imaps.is_some()),
            ("omaps", self.omaps.is_some()),
            ("griddims", self.griddims.is_some()),
            ("fmaps", self.fmaps.is_some()),
            ("franges", self.franges.is_some()),
        ];
        for (name, _) in tilings.iter().filter(|(_, given)| *given && !target.runs_regions(RegionKind::Tiled)) {
            notes.push(format!("{name}: {} runs no tiled regions, so there are none to restrict", target.describe()));
        }
        if self.blockdims.is_some() {
            notes.push("blockdims: a block is run by one worker, which has no threads to arrange".into());
        }
        if self.save_codes {
            notes.push("save_codes: kernels are not generated, so there is no code to save".into());
        }
        if self.is_formal_verified {
            notes.push(
                "is_formal_verified: there is no formal prover; each candidate has a certificate of tests over two finite \
                 fields and in floats"
                    .into(),
            );
        }
        notes
    }

    /// Everything that a result depends on, in words.
    pub(crate) fn arguments(&self) -> String {
        let SuperOptions { imaps, omaps, griddims, fmaps, franges, config, warmup_iters, profile_iters, .. } = self;
        let SuperOptions { blockdims, dims, compile, budget, keep, rates, time_limit, .. } = self;
        format!(
            "imaps {imaps:?} omaps {omaps:?} griddims {griddims:?} blockdims {blockdims:?} fmaps {fmaps:?} \
             franges {franges:?} config {config:?} warmup {warmup_iters} profile {profile_iters} dims {dims:?} \
             compile {compile:?} budget {budget} keep {keep} rates {rates:?} time {time_limit:?}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_without_meaning_are_told_and_the_others_change_the_key() {
        let plain = SuperOptions::default();
        let mut target = yirage_hal::reference::target("test", "test/eval@1", Vec::new(), Vec::new());
        target.kernels[0].regions.clear();
        assert!(plain.without_meaning(&target).is_empty());
        let given = SuperOptions {
            blockdims: Some(vec![[128, 1, 1]]),
            save_codes: true,
            is_formal_verified: true,
            griddims: Some(vec![[64, 1, 1]]),
            ..SuperOptions::default()
        };
        let notes = given.without_meaning(&target);
        for name in ["blockdims", "save_codes", "is_formal_verified", "griddims"] {
            assert!(notes.iter().any(|note| note.starts_with(name)), "{name}: {notes:?}");
        }
        assert_ne!(plain.arguments(), given.arguments());
        let quiet = SuperOptions { use_cached_graphs: false, save_codes: true, ..SuperOptions::default() };
        assert_eq!(plain.arguments(), quiet.arguments());
    }

    #[test]
    fn configs_have_names() {
        for name in ["attention", "lora", "mlp"] {
            assert_eq!(SearchPreset::parse(name).unwrap().to_string(), name);
        }
        assert_eq!(SearchPreset::parse("moe"), None);
    }
}
