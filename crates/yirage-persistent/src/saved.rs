//! A compiled kernel on disk: what it is, so that it is made again only for what it was made of and for.
//!
//! ```text
//! yirage-kernel 2
//! sum 2c26...
//! about 512
//! version 0.1.0
//! target cpu x86_64/avx512 workers=2
//! ...
//! graph 2048
//! graph kernel { ... }
//! weights 300
//! w0 whole float32 256x64 embed_tokens
//! ...
//! ```
//! Beside it lie its plans, in a folder of plan files. The weights are not in it. A file is untrusted: its graph is
//! verified, its plans are proved, and an engine checks what the graph takes.

use crate::config::{KernelConfig, PromptLookup};
use crate::declaration::KernelDeclaration;
use crate::error::PersistentError;
use crate::limits::MAX_SAVED_BYTES;
use crate::origin::{TensorPart, WeightOrigin};
use crate::sampling_mode::SamplingMode;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use yirage_compile::plan_weights;
use yirage_engine::sampling::SamplingParams;
use yirage_hal::Device;
use yirage_ir::hash::fnv128;
use yirage_ir::{Graph, text};
use yirage_mmap::read_text;
use yirage_model::arch::{KvCacheSpec, StepGraph};
use yirage_packed::sealed;

const HEAD: &str = "yirage-kernel 2";
const SECTIONS: [&str; 3] = ["about", "graph", "weights"];
pub(crate) const FILE: &str = "kernel.yirage";

/// Where a kernel's plans lie.
pub(crate) fn plans_folder(folder: &Path) -> PathBuf {
    folder.join("plans")
}

/// What a kernel is.
#[derive(Clone, Debug)]
pub(crate) struct SavedKernel {
    /// What it was made of and for, as names and words.
    about: Vec<(String, String)>,
    pub(crate) graph: String,
    pub(crate) weights: Vec<SavedWeight>,
    choice: SamplingMode,
    lookup: Option<PromptLookup>,
}

#[derive(Clone, Debug)]
pub(crate) struct SavedWeight {
    pub(crate) origin: WeightOrigin,
    pub(crate) elements: String,
    pub(crate) dims: Vec<u32>,
}

impl SavedKernel {
    pub(crate) fn new(
        declared: &KernelDeclaration,
        StepGraph { graph, groups, kv_cache_group }: &StepGraph,
        origins: Vec<WeightOrigin>,
        (choice, lookup): (SamplingMode, Option<PromptLookup>),
        device: &dyn Device,
    ) -> Result<SavedKernel, PersistentError> {
        let mut about = here(&declared.config, graph, device)?;
        about.push(("choice".into(), choice_word(&choice)));
        about.push(("lookup".into(), lookup.map_or("none".into(), |l| format!("{} {}", l.ngram_size, l.spec_length))));
        for group in groups {
            about.push(("group".into(), group_word(group)?));
        }
        about.extend(kv_cache_group.iter().map(|(name, group)| ("kv_cache".into(), format!("{group} {name}"))));
        let mut weights = Vec::with_capacity(origins.len());
        for origin in &origins {
            about.extend(origin.scales.iter().map(|of| ("scales".to_owned(), format!("{} {of}", origin.name))));
        }
        for origin in origins {
            let missing = || PersistentError::Tensor { name: origin.tensor.clone(), why: "it is not declared".into() };
            let tensor = &declared.of(declared.find(&origin.tensor).ok_or_else(missing)?)?.tensor;
            let (elements, dims) = (tensor.elements.to_string(), tensor.dims.clone());
            weights.push(SavedWeight { origin, elements, dims });
        }
        Ok(SavedKernel { about, graph: text::print(graph), weights, choice, lookup })
    }

    pub(crate) fn choice(&self) -> &SamplingMode {
        &self.choice
    }

    pub(crate) fn lookup(&self) -> Option<PromptLookup> {
        self.lookup
    }

    /// Writes the file, whole or not at all.
    pub(crate) fn write(&self, folder: &Path) -> Result<(), PersistentError> {
        let path = folder.join(FILE);
        let failed = |source| PersistentError::Write { path: path.clone(), source };
        std::fs::create_dir_all(folder).map_err(failed)?;
        let fresh = folder.join(format!("{FILE}.{}", std::process::id()));
        std::fs::write(&fresh, self.print()).map_err(failed)?;
        std::fs::rename(&fresh, &path).map_err(failed)
    }

    fn print(&self) -> String {
        let about: String = self.about.iter().map(|(name, word)| format!("{name} {word}\n")).collect();
        let mut weights = String::new();
        for SavedWeight { origin, elements, dims } in &self.weights {
            let part = match origin.part {
                TensorPart::Whole => "whole".to_owned(),
                TensorPart::Rows { index, of } => format!("rows:{index}:{of}"),
                TensorPart::Table { columns } => format!("table:{columns}"),
            };
            let dims: Vec<String> = dims.iter().map(u32::to_string).collect();
            // Writing to a string does not fail.
            let _ = writeln!(weights, "{} {part} {elements} {} {}", origin.name, dims.join("x"), origin.tensor);
        }
        sealed::seal(HEAD, &[(SECTIONS[0], &about), (SECTIONS[1], &self.graph), (SECTIONS[2], &weights)])
    }

    pub(crate) fn read(path: &Path) -> Result<SavedKernel, PersistentError> {
        let printed = read_text(path, MAX_SAVED_BYTES)?;
        let damaged = |why: String| PersistentError::Damaged { path: path.to_owned(), why };
        let seal = |source| PersistentError::Seal { path: path.to_owned(), source };
        let [about, graph, weights] = sealed::open(HEAD, SECTIONS, &printed).map_err(seal)?;
        let line = |line: &str| line.split_once(' ').map(|(name, word)| (name.to_owned(), word.to_owned()));
        let about = about.lines().map(|l| line(l).ok_or_else(|| damaged(format!("`{l:.60}` says nothing"))));
        let about: Vec<(String, String)> = about.collect::<Result<_, _>>()?;
        let weight = |line: &str| SavedWeight::parse(line).ok_or_else(|| damaged(format!("`{line:.60}` is no weight")));
        let mut weights: Vec<SavedWeight> = weights.lines().map(weight).collect::<Result<_, _>>()?;
        for (_, word) in about.iter().filter(|(name, _)| name == "scales") {
            let of = word.split_once(' ');
            let of =
                of.and_then(|(name, of)| Some((weights.iter_mut().find(|weight| weight.origin.name == name)?, of)));
            let (weight, scales) = of.ok_or_else(|| damaged(format!("`scales {word:.60}` is of no weight")))?;
            weight.origin.scales = Some(scales.to_owned());
        }
        let word = |name: &str| about.iter().find(|(n, _)| n == name).map(|(_, word)| word.as_str());
        let choice = match word("choice").map(|word| word.split_once(' ').unwrap_or((word, ""))) {
            Some(("greedy", "")) => Some(SamplingMode::Greedy),
            Some(("sampled", seed)) => seed
                .parse()
                .ok()
                .map(|seed| SamplingMode::Sampled(SamplingParams { seed, ..SamplingParams::default() })),
            _ => None,
        };
        let choice = choice.ok_or_else(|| damaged("it does not say how tokens are chosen".into()))?;
        let lookup = match word("lookup") {
            Some("none") => None,
            Some(sizes) => {
                let sizes = numbers(sizes, ' ').filter(|sizes| sizes.len() == 2);
                let sizes = sizes.ok_or_else(|| damaged("its line `lookup` has two numbers or none".into()))?;
                Some(PromptLookup { ngram_size: sizes[0], spec_length: sizes[1] })
            }
            None => return Err(damaged("it has no line `lookup`".into())),
        };
        lookup.as_ref().map_or(Ok(()), PromptLookup::check)?;
        Ok(SavedKernel { graph: graph.to_owned(), about, weights, choice, lookup })
    }

    pub(crate) fn words(&self, name: &str) -> impl Iterator<Item = &str> {
        self.about.iter().filter(move |(n, _)| n == name).map(|(_, word)| word.as_str())
    }

    pub(crate) fn groups(&self) -> Option<Vec<KvCacheSpec>> {
        let group = |line| match numbers(line, ' ')?[..] {
            [kv_heads, k_width, v_width] => Some(KvCacheSpec::Paged { kv_heads, k_width, v_width, window: None }),
            [rank, rope] => Some(KvCacheSpec::Latent { rank, rope }),
            _ => None,
        };
        self.words("group").map(group).collect()
    }

    pub(crate) fn kv_cache_groups(&self) -> Option<Vec<(String, usize)>> {
        let cache = |line: &str| line.split_once(' ').and_then(|(at, name)| Some((name.to_owned(), at.parse().ok()?)));
        self.words("kv_cache").map(cache).collect()
    }
}

impl SavedWeight {
    fn parse(line: &str) -> Option<SavedWeight> {
        let mut words = line.splitn(5, ' ');
        let (name, part) = (words.next()?.to_owned(), words.next()?);
        let (elements, dims, tensor) =
            (words.next()?.to_owned(), numbers(words.next()?, 'x')?, words.next()?.to_owned());
        let part = match part.split_once(':') {
            None if part == "whole" => TensorPart::Whole,
            Some(("rows", sizes)) => match numbers(sizes, ':')?[..] {
                [index, of] => TensorPart::Rows { index, of },
                _ => return None,
            },
            Some(("table", columns)) => TensorPart::Table { columns: columns.parse().ok()? },
            _ => return None,
        };
        Some(SavedWeight { origin: WeightOrigin { name, tensor, scales: None, part }, elements, dims })
    }
}

fn numbers(line: &str, between: char) -> Option<Vec<u32>> {
    line.split(between).map(|n| n.parse().ok()).collect()
}

/// Three numbers of keys and values, two of compressed rows.
fn group_word(group: &KvCacheSpec) -> Result<String, PersistentError> {
    match group {
        KvCacheSpec::Paged { kv_heads, k_width, v_width, window: None } => {
            Ok(format!("{kv_heads} {k_width} {v_width}"))
        }
        KvCacheSpec::Latent { rank, rope } => Ok(format!("{rank} {rope}")),
        KvCacheSpec::Paged { window: Some(_), .. } | KvCacheSpec::Recurrent => Err(PersistentError::Unsupported {
            what: format!("a saved kernel with {group:?}"),
            why: "no layer method keeps one".into(),
        }),
    }
}

fn choice_word(choice: &SamplingMode) -> String {
    match choice {
        SamplingMode::Greedy => "greedy".into(),
        SamplingMode::Sampled(params) => format!("sampled {}", params.seed),
    }
}

/// What a kernel of this graph would be made of and for here.
pub(crate) fn here(
    config: &KernelConfig,
    graph: &Graph,
    device: &dyn Device,
) -> Result<Vec<(String, String)>, PersistentError> {
    let target = device.target();
    let layout = plan_weights(graph, &target)?.stable_hash();
    let mut about = vec![
        ("version".to_owned(), format!("{} {}", env!("CARGO_PKG_VERSION"), yirage_compile::VERSION)),
        ("target".into(), target.describe()),
        ("facts".into(), format!("{:032x}", fnv128(format!("{target:?}").as_bytes()))),
        ("layout".into(), format!("{layout:032x}")),
    ];
    about.extend(config.lines().into_iter().map(|(name, word)| (name.to_owned(), word)));
    Ok(about)
}

impl SavedKernel {
    /// The same with the sampling parameters of the options, of which only the seed is saved.
    pub(crate) fn with_sampling(mut self, sampling: &SamplingParams) -> SavedKernel {
        if let SamplingMode::Sampled(params) = &mut self.choice {
            *params = SamplingParams { seed: params.seed, ..sampling.clone() };
        }
        self
    }
}
