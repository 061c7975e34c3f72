//! Templates: settings under a name, for a kind of machine or for a kind of work.
//!
//! A template of a machine names its backend and its numbers of workers and schedulers. A template of work takes both from
//! the device that it is asked for ([`workers`]). How long sequences are, how many run at once and how many tokens a step
//! has is every template's own.

use crate::hardware::Hardware;
use crate::workers::workers;
use thiserror::Error;

/// What a template is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TemplateScope {
    /// A kind of machine: the backend, workers, schedulers.
    Machine(&'static str, u32, u32),
    /// A kind of work, on any machine.
    Work,
}

/// How much runs at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Amounts {
    /// Positions a sequence may have.
    pub sequence: u32,
    /// Requests that run at once.
    pub requests: u32,
    /// Tokens of a step.
    pub tokens: u32,
    /// Positions of a page of the cache.
    pub page: u32,
}

/// Settings under a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Template {
    /// Its name.
    pub name: &'static str,
    /// For whom it is, in a sentence.
    pub about: &'static str,
    /// What it is for.
    pub of: TemplateScope,
    /// How much runs at once.
    pub amounts: Amounts,
}

/// Settings that a template gives, by the names of a persistent kernel's arguments.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TemplateSettings {
    /// The backend.
    pub backend: String,
    /// Whole numbers by name, in order.
    pub numbers: Vec<(&'static str, u32)>,
}

/// Why settings are not those of a template.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum TemplateError {
    /// No template of that name.
    #[error("template {name:?}: there is none of that name; there are {}", names().join(", "))]
    Unknown {
        /// The name.
        name: String,
    },
    /// A setting that no template has.
    #[error("{key:?} is no setting of a template; there are backend, {}", KEYS.map(|key| key.name).join(", "))]
    Key {
        /// Its name.
        key: String,
    },
    /// A number out of its range.
    #[error("{key} is {value}: {least} to {most} are taken; give a number among them")]
    Range {
        /// The setting.
        key: &'static str,
        /// Its value.
        value: i64,
        /// The least.
        least: u32,
        /// The most.
        most: u32,
    },
    /// Two numbers that contradict each other.
    #[error("{key} is {value}, and {other} is {limit}: {why}")]
    Contradiction {
        /// A setting.
        key: &'static str,
        /// Its value.
        value: u32,
        /// Another.
        other: &'static str,
        /// Its value.
        limit: u32,
        /// What is wrong with both.
        why: &'static str,
    },
}

/// A setting that is a number, and its range.
struct TemplateSettingKey {
    name: &'static str,
    least: u32,
    most: u32,
}

const DEVICE: &str = "device_id";
const WORKERS: &str = "num_workers";
const LOCAL: &str = "num_local_schedulers";
const REMOTE: &str = "num_remote_schedulers";
const SEQUENCE: &str = "max_seq_length";
const REQUESTS: &str = "max_num_batched_requests";
const TOKENS: &str = "max_num_batched_tokens";
const PAGE: &str = "page_size";
const PAGES: &str = "max_num_pages";

const KEYS: [TemplateSettingKey; 9] = [
    TemplateSettingKey { name: DEVICE, least: 0, most: 1023 },
    TemplateSettingKey { name: WORKERS, least: 1, most: 1024 },
    TemplateSettingKey { name: LOCAL, least: 1, most: 1024 },
    TemplateSettingKey { name: REMOTE, least: 0, most: 1024 },
    TemplateSettingKey { name: SEQUENCE, least: 1, most: 1 << 26 },
    TemplateSettingKey { name: REQUESTS, least: 1, most: 4096 },
    TemplateSettingKey { name: TOKENS, least: 1, most: 1 << 20 },
    TemplateSettingKey { name: PAGE, least: 1, most: 1 << 16 },
    TemplateSettingKey { name: PAGES, least: 1, most: 1 << 26 },
];

const fn amounts(sequence: u32, requests: u32, tokens: u32, page: u32) -> Amounts {
    Amounts { sequence, requests, tokens, page }
}

const fn machine(
    name: &'static str,
    about: &'static str,
    backend: &'static str,
    numbers: (u32, u32),
    amounts: Amounts,
) -> Template {
    Template { name, about, of: TemplateScope::Machine(backend, numbers.0, numbers.1), amounts }
}

const fn work(name: &'static str, about: &'static str, amounts: Amounts) -> Template {
    Template { name, about, of: TemplateScope::Work, amounts }
}

/// All of them.
pub const TEMPLATES: [Template; 17] = [
    machine("cuda_high_end", "a GPU of 24 GB or more", "cuda", (96, 48), amounts(4096, 32, 1024, 32)),
    machine("cuda_mid_range", "a GPU of 16 GB", "cuda", (64, 32), amounts(4096, 16, 512, 32)),
    machine("cuda_low_end", "a GPU of 8 GB", "cuda", (32, 16), amounts(2048, 4, 256, 32)),
    machine("mps_m3_max", "an Apple M3 Max or larger", "mps", (64, 32), amounts(4096, 16, 512, 32)),
    machine("mps_m2_pro", "an Apple M2 Pro", "mps", (40, 20), amounts(4096, 8, 512, 32)),
    machine("mps_m1", "an Apple M1", "mps", (32, 16), amounts(2048, 4, 256, 32)),
    machine("cpu_high_core", "a processor with 16 cores or more", "cpu", (16, 8), amounts(4096, 16, 512, 32)),
    machine("cpu_standard", "a processor with 8 cores", "cpu", (8, 4), amounts(4096, 8, 512, 32)),
    machine(
        "cpu_low_power",
        "a processor with 2 cores, or one that must stay cool",
        "cpu",
        (2, 1),
        amounts(2048, 1, 128, 32),
    ),
    work("inference", "answers to several callers at once", amounts(4096, 16, 512, 32)),
    work("latency", "one caller who wants each token as early as possible", amounts(4096, 1, 128, 32)),
    work("throughput", "many requests of which only the last one's end matters", amounts(4096, 64, 2048, 32)),
    work("long_context", "few long documents", amounts(32768, 2, 1024, 32)),
    work("memory_constrained", "as little memory as possible", amounts(1024, 1, 64, 32)),
    work("evaluation", "log-probabilities of given texts", amounts(4096, 8, 2048, 32)),
    work(
        "training",
        "the forward passes of a model that is trained elsewhere: nothing here computes gradients",
        amounts(2048, 8, 2048, 32),
    ),
    work("development", "short runs that start and end quickly", amounts(512, 1, 64, 32)),
];

/// Their names, in order.
pub fn names() -> Vec<&'static str> {
    TEMPLATES.iter().map(|template| template.name).collect()
}

impl Template {
    /// The template of a name.
    ///
    /// # Errors
    /// [`TemplateError::Unknown`].
    pub fn named(name: &str) -> Result<&'static Template, TemplateError> {
        let found = TEMPLATES.iter().find(|template| template.name == name);
        found.ok_or_else(|| TemplateError::Unknown { name: name.to_owned() })
    }

    /// The template for a machine, or for a kind of work on it where one is named.
    ///
    /// # Errors
    /// [`TemplateError::Unknown`] for work that no template is for.
    pub fn recommended(hardware: &Hardware, work: Option<&str>) -> Result<&'static Template, TemplateError> {
        if let Some(name) = work {
            return Template::named(name);
        }
        // The one of the same backend whose workers come closest to those of the machine, the smaller of two.
        let wanted = workers(hardware).workers;
        let distance = |template: &&Template| match template.of {
            TemplateScope::Machine(backend, workers, _) if backend == hardware.backend => {
                Some((workers.abs_diff(wanted), workers))
            }
            _ => None,
        };
        let closest = TEMPLATES.iter().filter(|template| distance(template).is_some()).min_by_key(distance);
        closest.map_or_else(|| Template::named("inference"), Ok)
    }

    /// Its settings for a device. Those of a machine do not depend on it.
    pub fn settings(&self, hardware: &Hardware) -> TemplateSettings {
        let (backend, device, (count, schedulers)) = match self.of {
            TemplateScope::Machine(backend, workers, schedulers) => (backend.to_owned(), 0, (workers, schedulers)),
            TemplateScope::Work => {
                let of = workers(hardware);
                (hardware.backend.clone(), hardware.device, (of.workers, of.schedulers))
            }
        };
        let Amounts { sequence, requests, tokens, page } = self.amounts;
        let pages = sequence.div_ceil(page).saturating_mul(requests);
        let values = [device, count, schedulers, 0, sequence, requests, tokens, page, pages];
        let numbers = KEYS.iter().map(|key| key.name).zip(values).collect();
        TemplateSettings { backend, numbers }
    }
}

impl TemplateSettings {
    /// The number of a setting.
    pub fn number(&self, name: &str) -> Option<u32> {
        self.numbers.iter().find(|(key, _)| *key == name).map(|&(_, value)| value)
    }

    /// Changes a number. The number of pages follows the others unless it is changed itself, which is done last.
    ///
    /// # Errors
    /// [`TemplateError::Key`], [`TemplateError::Range`].
    pub fn set(&mut self, name: &str, value: i64) -> Result<(), TemplateError> {
        let key =
            KEYS.iter().find(|key| key.name == name).ok_or_else(|| TemplateError::Key { key: name.to_owned() })?;
        let (least, most) = (key.least, key.most);
        let number = u32::try_from(value).ok().filter(|number| (least..=most).contains(number));
        let number = number.ok_or(TemplateError::Range { key: key.name, value, least, most })?;
        let slot = self.numbers.iter_mut().find(|(known, _)| *known == key.name);
        if let Some((_, slot)) = slot {
            *slot = number;
        }
        Ok(())
    }

    /// As many pages as the requests need that run at once.
    pub fn fit_pages(&mut self) -> Result<(), TemplateError> {
        let [sequence, requests, page] = [SEQUENCE, REQUESTS, PAGE].map(|name| self.number(name).unwrap_or(1).max(1));
        self.set(PAGES, i64::from(sequence.div_ceil(page)) * i64::from(requests))
    }

    /// Checks what all of them have to fulfil together.
    ///
    /// # Errors
    /// [`TemplateError::Contradiction`].
    pub fn check(&self) -> Result<(), TemplateError> {
        let number = |name| self.number(name).unwrap_or(0);
        let contradiction = |key, other, why| {
            Err(TemplateError::Contradiction { key, value: number(key), other, limit: number(other), why })
        };
        if number(TOKENS) < number(REQUESTS) {
            return contradiction(TOKENS, REQUESTS, "a step has a token of each request that runs");
        }
        if number(LOCAL) > number(WORKERS) {
            return contradiction(LOCAL, WORKERS, "there are no more schedulers than workers");
        }
        if u64::from(number(PAGES)) * u64::from(number(PAGE)) < u64::from(number(SEQUENCE)) {
            return contradiction(PAGES, SEQUENCE, "all pages together hold one sequence of full length at least");
        }
        Ok(())
    }
}
