//! A name of the list, and what stands behind it.

use std::sync::Arc;
use yirage_hal::{Backend, DeviceInfo, Unavailable};

/// A name of the list.
#[derive(Clone)]
pub(crate) struct RegistryEntry {
    pub(crate) name: &'static str,
    /// Other names of the same.
    pub(crate) aliases: &'static [&'static str],
    pub(crate) provider: Provider,
}

/// What stands behind a name.
#[derive(Clone)]
// A build for processors alone has no backend that is taken by name alone.
#[cfg_attr(
    not(any(
        feature = "cuda",
        feature = "hip",
        feature = "musa",
        feature = "ascend",
        feature = "cambricon",
        feature = "vulkan",
        feature = "mps",
        feature = "dx12",
        feature = "plugins"
    )),
    allow(dead_code)
)]
pub(crate) enum Provider {
    /// A backend that computes.
    Backend(Arc<dyn Backend>),
    /// A backend that computes, and is taken by its name alone: it has not run on hardware of its kind yet.
    ByName(Arc<dyn Backend>),
    /// A backend of other operating systems, which says so.
    Elsewhere(Arc<dyn Backend>),
    /// A backend of tests: it opens by name, and is never listed or taken by default.
    OfTests(Arc<dyn Backend>),
    /// Code that this build leaves out, and the feature that brings it in.
    #[allow(dead_code, reason = "a build with all features leaves nothing out")]
    LeftOut(&'static str),
    /// Devices that nobody here knows how to look for.
    NotLookedFor,
    /// A library that was named and cannot be taken, with the reason.
    #[cfg(feature = "plugins")]
    Refused(Unavailable),
}

/// A name of the list, and what was found behind it.
pub struct BackendSurvey {
    /// The name.
    pub name: &'static str,
    /// Other names of the same.
    pub aliases: &'static [&'static str],
    /// What was found.
    pub availability: BackendAvailability,
}

/// What was found behind a name.
pub enum BackendAvailability {
    /// A backend, and its devices, of which there is one at least.
    Usable(Arc<dyn Backend>, Vec<DeviceInfo>),
    /// No device, and the reason.
    Nothing(Unavailable),
}

impl RegistryEntry {
    /// Whether the name, or one of the others, is `name`. Case does not matter.
    pub(crate) fn is(&self, name: &str) -> bool {
        [self.name].iter().chain(self.aliases).any(|own| own.eq_ignore_ascii_case(name))
    }

    /// Whether a backend that computes stands behind it.
    pub(crate) fn is_backend(&self) -> bool {
        matches!(self.provider, Provider::Backend(_) | Provider::ByName(_))
    }

    /// Whether nothing here computes behind it, whatever features a build has.
    #[cfg(feature = "plugins")]
    pub(crate) fn has_no_backend(&self) -> bool {
        matches!(self.provider, Provider::NotLookedFor)
    }

    /// Whether it may be taken where no name is given.
    pub(crate) fn may_be_default(&self) -> bool {
        matches!(self.provider, Provider::Backend(_))
    }

    /// Whether a backend with these devices comes behind all others: nobody is given one of them who asked for none.
    pub(crate) fn comes_last(&self, devices: &[DeviceInfo]) -> bool {
        !self.may_be_default() || devices.iter().all(|device| device.software)
    }

    /// What is behind the name here.
    pub(crate) fn look(&self) -> BackendAvailability {
        match &self.provider {
            Provider::Backend(backend)
            | Provider::ByName(backend)
            | Provider::Elsewhere(backend)
            | Provider::OfTests(backend) => match backend.probe() {
                Ok(devices) if devices.is_empty() => self.nothing("it names no device, and no reason".into(), None),
                Ok(devices) => BackendAvailability::Usable(backend.clone(), devices),
                Err(why) => BackendAvailability::Nothing(why),
            },
            Provider::LeftOut(feature) => self.nothing("this build leaves it out".into(), Some(feature)),
            Provider::NotLookedFor => {
                self.nothing("yirage has no backend for it and does not look for its devices".into(), None)
            }
            #[cfg(feature = "plugins")]
            Provider::Refused(why) => BackendAvailability::Nothing(why.clone()),
        }
    }

    fn nothing(&self, why: String, feature: Option<&str>) -> BackendAvailability {
        let remedy = match feature {
            Some(feature) => format!("build with the feature `{feature}`, or choose another backend"),
            None => "choose another backend".into(),
        };
        BackendAvailability::Nothing(Unavailable { backend: self.name, why, remedy, present: false })
    }
}
