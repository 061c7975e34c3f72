//! The stages of a chain, by name.

use super::candidates::Candidates;
use super::input::StageInput;
use super::settings::{SamplerChain, StageName};
use super::{dry, min_p, penalties, temperature, top_k, top_n_sigma, top_p, typical, xtc};
use std::fmt;

/// One step of a chain.
#[derive(Clone, Copy)]
pub struct SamplerStage {
    /// Its name in llama.cpp.
    name: &'static str,
    /// Other names that llama.cpp takes for it, beside those with `-` or nothing in the place of `_`.
    aliases: &'static [&'static str],
    /// The parameters that it reads, by the names of llama.cpp and vLLM.
    reads: &'static [&'static str],
    apply: fn(&mut Candidates, &StageInput<'_>),
}

impl SamplerStage {
    /// Every stage, in llama.cpp's own order.
    pub const ALL: [SamplerStage; 9] = [
        SamplerStage {
            name: "penalties",
            aliases: &[],
            reads: &["repetition_penalty", "presence_penalty", "frequency_penalty"],
            apply: penalties::apply,
        },
        SamplerStage { name: "dry", aliases: &[], reads: &["dry_multiplier"], apply: dry::apply },
        SamplerStage { name: "top_n_sigma", aliases: &[], reads: &["top_n_sigma"], apply: top_n_sigma::apply },
        SamplerStage { name: "top_k", aliases: &[], reads: &["top_k"], apply: top_k::apply },
        SamplerStage { name: "typ_p", aliases: &["typ", "typical_p"], reads: &["typical_p"], apply: typical::apply },
        SamplerStage { name: "top_p", aliases: &["nucleus"], reads: &["top_p"], apply: top_p::apply },
        SamplerStage { name: "min_p", aliases: &[], reads: &["min_p"], apply: min_p::apply },
        SamplerStage { name: "xtc", aliases: &[], reads: &["xtc_probability"], apply: xtc::apply },
        SamplerStage {
            name: "temperature",
            aliases: &["temp"],
            reads: &["temperature", "dynatemp_range"],
            apply: temperature::apply,
        },
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        self.name
    }

    /// The stages of a chain in their order.
    pub(in crate::sampling) fn of(chain: &SamplerChain) -> Vec<SamplerStage> {
        match &chain.order {
            None => SamplerStage::ALL.to_vec(),
            Some(names) => names.iter().filter_map(|name| SamplerStage::of_name(name.0)).collect(),
        }
    }

    /// Whether it reads the parameter of this name.
    pub(in crate::sampling) fn reads(&self, name: &str) -> bool {
        self.reads.contains(&name)
    }

    pub(super) fn apply(self, candidates: &mut Candidates, input: &StageInput<'_>) {
        (self.apply)(candidates, input);
    }

    /// The stage of a name, as llama.cpp takes names: any case, `_`, `-` or nothing between words.
    pub fn of_name(name: &str) -> Option<SamplerStage> {
        let plain = |name: &str| name.to_ascii_lowercase().replace(['_', '-'], "");
        let asked = plain(name);
        let is = |stage: &SamplerStage| plain(stage.name) == asked || stage.aliases.iter().any(|a| plain(a) == asked);
        SamplerStage::ALL.into_iter().find(is)
    }

    /// The names of stages in their order.
    ///
    /// # Errors
    /// The first name that is none's, with all that there are.
    pub fn list<'n>(names: impl IntoIterator<Item = &'n str>) -> Result<Vec<StageName>, String> {
        let one = |name: &str| {
            let all = || SamplerStage::ALL.map(SamplerStage::name).join(", ");
            SamplerStage::of_name(name)
                .map(|stage| StageName(stage.name))
                .ok_or_else(|| format!("expected samplers of {}, got {name:?}", all()))
        };
        names.into_iter().map(one).collect()
    }
}

impl PartialEq for SamplerStage {
    fn eq(&self, other: &SamplerStage) -> bool {
        self.name == other.name
    }
}

impl fmt::Debug for SamplerStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
