//! The registry: names to backends, and the order among them.

use crate::builtin;
use crate::entry::{BackendAvailability, BackendSurvey, Provider, RegistryEntry};
use crate::error::RegistryError;
use std::sync::Arc;
use yirage_hal::{Backend, DeviceInfo};
use yirage_probe::ProbeEnvironment;
use yirage_ranks::RankGroup;

/// The name that stands for the default backend.
pub const AUTO: &str = "auto";

/// The backends of this build, and those that were added.
#[derive(Clone)]
pub struct Registry {
    surroundings: ProbeEnvironment,
    /// In the order of choice.
    list: Vec<RegistryEntry>,
    /// What was set as the default.
    default: Option<&'static str>,
}

impl Registry {
    /// The backends of this build, on a machine with these surroundings. Nothing is looked for yet.
    pub fn new(surroundings: ProbeEnvironment) -> Registry {
        let list = builtin::list(&surroundings);
        Registry { surroundings, list, default: None }
    }

    /// Adds a backend. One with a name of the list takes that name's place; one with a new name comes before all others,
    /// since somebody wanted it.
    pub fn register(&mut self, backend: Arc<dyn Backend>) {
        let name = backend.name();
        let provider = Provider::Backend(backend);
        match self.list.iter_mut().find(|listed| listed.is(name)) {
            Some(listed) => listed.provider = provider,
            None => self.list.insert(0, RegistryEntry { name, aliases: &[], provider }),
        }
    }

    /// The backend of this name, or other name, if it has a device here.
    pub fn get(&self, name: &str) -> Option<Arc<dyn Backend>> {
        self.select(name).ok()
    }

    /// The backend of this name, or other name; `auto` is the default.
    ///
    /// # Errors
    /// [`RegistryError`] with the reason, what to do, and the backends that there are.
    pub fn select(&self, name: &str) -> Result<Arc<dyn Backend>, RegistryError> {
        if name.eq_ignore_ascii_case(AUTO) {
            return self.get_default();
        }
        let listed = self.list.iter().find(|listed| listed.is(name)).ok_or_else(|| self.unknown(name))?;
        match listed.look() {
            BackendAvailability::Usable(backend, _) => Ok(backend),
            BackendAvailability::Nothing(why) => Err(RegistryError::Unavailable(why, self.list_available())),
        }
    }

    /// The name of what [`Registry::select`] gives, if its devices can be ranks of a group.
    ///
    /// # Errors
    /// As there, and [`RegistryError::NoRank`].
    pub fn select_for_ranks(&self, name: &str) -> Result<&'static str, RegistryError> {
        let backend = self.select(name)?.name();
        let able = builtin::backends_of_ranks();
        match able.contains(&backend) {
            true => Ok(backend),
            // A backend of tests is no advice.
            false => {
                Err(RegistryError::NoRank { backend, able: able.into_iter().filter(|name| *name != "sim").collect() })
            }
        }
    }

    /// The backend of this name, whose one device is a rank of a group.
    ///
    /// # Errors
    /// As [`Registry::select_for_ranks`].
    pub fn as_rank(&self, name: &str, group: &Arc<RankGroup>) -> Result<Arc<dyn Backend>, RegistryError> {
        Ok(builtin::as_rank(self.select_for_ranks(name)?, &self.surroundings, group))
    }

    /// The number of the device of the pipeline stage that is the one so many behind the first of this backend, which has the device
    /// `ordinal`: the backend's next ones in turn, so that stages on one machine have devices of their own as far as there are.
    pub fn device_of_stage(&self, backend: &str, ordinal: u32, stage: usize) -> u32 {
        let devices = self.select(backend).ok().and_then(|backend| backend.probe().ok()).unwrap_or_default();
        let first = devices.iter().position(|device| device.ordinal == ordinal);
        first.map_or(ordinal, |first| devices[(first + stage) % devices.len()].ordinal)
    }

    /// The backend that was set, else the first of the order that has a device.
    ///
    /// # Errors
    /// [`RegistryError`] where none has one, or the one that was set has none any more.
    pub fn get_default(&self) -> Result<Arc<dyn Backend>, RegistryError> {
        if let Some(name) = self.default {
            return self.select(name);
        }
        let (mut played, mut reasons) = (None, Vec::new());
        // Behind the first that will do, nobody is asked: asking may start a maker's driver.
        for listed in self.list.iter().filter(|listed| listed.may_be_default()) {
            match listed.look() {
                BackendAvailability::Usable(backend, devices) if !listed.comes_last(&devices) => return Ok(backend),
                BackendAvailability::Usable(backend, _) => played = played.or(Some(backend)),
                BackendAvailability::Nothing(why) => reasons.push(why.to_string()),
            }
        }
        played.ok_or(RegistryError::None { reasons })
    }

    /// Makes this backend the default; `auto` goes back to the order. Nothing changes where that fails.
    ///
    /// # Errors
    /// As [`Registry::select`].
    pub fn set_default(&mut self, name: &str) -> Result<(), RegistryError> {
        let chosen = if name.eq_ignore_ascii_case(AUTO) { None } else { Some(self.select(name)?.name()) };
        self.default = chosen;
        Ok(())
    }

    /// The names of the backends of this build that compute, in the order of choice. Nothing is looked for.
    pub fn backends(&self) -> Vec<&'static str> {
        self.list.iter().filter(|listed| listed.is_backend()).map(|listed| listed.name).collect()
    }

    /// The names of the backends that have a device, in the order of choice.
    pub fn list_available(&self) -> Vec<&'static str> {
        self.usable().iter().map(|(backend, _)| backend.name()).collect()
    }

    /// The devices of all backends, in the order of choice.
    pub fn discover(&self) -> Vec<DeviceInfo> {
        self.usable().into_iter().flat_map(|(_, devices)| devices).collect()
    }

    /// Forgets what was registered and set.
    pub fn reset(&mut self) {
        self.list = builtin::list(&self.surroundings);
        self.default = None;
    }

    /// Every name but those of the backends of tests, with its other names, in the order of choice. Nothing is looked for.
    pub fn names(&self) -> Vec<(&'static str, &'static [&'static str])> {
        let shown = self.list.iter().filter(|listed| !matches!(listed.provider, Provider::OfTests(_)));
        shown.map(|listed| (listed.name, listed.aliases)).collect()
    }

    /// Every name with what is behind it here, but for the backends of tests: what can be used in the order of
    /// [`Registry::discover`], the rest in that of choice. Libraries of devices are loaded for it.
    pub fn survey(&self) -> Vec<BackendSurvey> {
        let shown = self.list.iter().filter(|listed| !matches!(listed.provider, Provider::OfTests(_)));
        let finding = |listed: &RegistryEntry| BackendSurvey {
            name: listed.name,
            aliases: listed.aliases,
            availability: listed.look(),
        };
        let mut findings: Vec<_> = shown.map(|listed| (listed, finding(listed))).collect();
        findings.sort_by_key(|(listed, finding)| match &finding.availability {
            BackendAvailability::Usable(_, devices) => listed.comes_last(devices),
            BackendAvailability::Nothing(_) => false,
        });
        findings.into_iter().map(|(_, finding)| finding).collect()
    }

    /// The backends that have a device, with their devices. Those that are taken by their names alone, and those whose
    /// devices a processor plays, come last.
    fn usable(&self) -> Vec<(Arc<dyn Backend>, Vec<DeviceInfo>)> {
        let backends = self.list.iter().filter(|listed| listed.is_backend());
        let found = backends.filter_map(|listed| match listed.look() {
            BackendAvailability::Usable(backend, devices) => Some((listed.comes_last(&devices), backend, devices)),
            _ => None,
        });
        let mut usable: Vec<_> = found.collect();
        usable.sort_by_key(|&(last, ..)| last);
        usable.into_iter().map(|(_, backend, devices)| (backend, devices)).collect()
    }

    fn unknown(&self, name: &str) -> RegistryError {
        let known = [AUTO].into_iter().chain(self.list.iter().map(|listed| listed.name));
        RegistryError::Unknown { name: name.to_owned(), known: known.collect() }
    }
}
