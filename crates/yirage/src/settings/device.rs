//! Which device computes, and how it is opened.

use crate::failure::CliFailure;
use crate::options::Layers;
use crate::ranks::RankSettings;
use std::sync::Arc;
use yirage_hal::{Backend, Device, DeviceInfo, HalError, OpenOptions};
use yirage_model::Checkpoint;
use yirage_registry::{AUTO, ProbeEnvironment, Registry, most_threads};

/// A backend, the number of its device, and how that is opened.
pub(crate) struct DeviceSettings {
    backend: Arc<dyn Backend>,
    /// The backends of further pipeline stages, where each has its own.
    others: Vec<&'static str>,
    ordinal: u32,
    open: OpenOptions,
    /// The ranks that compute together; none where one device computes.
    ranks: Option<RankSettings>,
}

impl DeviceSettings {
    /// The first device of a backend, opened as it likes.
    ///
    /// # Errors
    /// [`CliFailure::Backend`] for an unknown name, and where the backend has no device here.
    pub(crate) fn named(backend: &str) -> Result<DeviceSettings, CliFailure> {
        let registry = Registry::new(ProbeEnvironment::of_this_process());
        let (backend, open) = (registry.select(backend)?, OpenOptions::default());
        Ok(DeviceSettings { backend, others: Vec::new(), ordinal: 0, open, ranks: None })
    }

    /// Reads the options, but for the number of threads, which is given.
    ///
    /// # Errors
    /// [`CliFailure::Usage`] naming the option; [`CliFailure::Backend`] where the backend has no device here.
    pub(crate) fn for_threads(layers: &Layers, threads: Option<usize>) -> Result<DeviceSettings, CliFailure> {
        let settings = DeviceSettings::read(layers, threads)?;
        match settings.others.is_empty() {
            true => Ok(settings),
            false => Err(layers.wrong("backend", "one backend, as there are no stages of a pipeline (--pp)")),
        }
    }

    /// Reads the options of a command that computes a model, on several ranks where that is asked for.
    ///
    /// # Errors
    /// As [`DeviceSettings::for_threads`].
    pub(crate) fn of_model(layers: &Layers, threads: Option<usize>) -> Result<DeviceSettings, CliFailure> {
        let ranks = RankSettings::resolve(layers)?;
        let Some(stages) = ranks.as_ref().and_then(RankSettings::stages) else {
            return Ok(DeviceSettings { ranks, ..DeviceSettings::for_threads(layers, threads)? });
        };
        let settings = DeviceSettings::read(layers, threads)?;
        match settings.others.len() as u32 {
            0 => Ok(DeviceSettings { ranks, ..settings }),
            others if others + 1 == stages => Ok(DeviceSettings { ranks, ..settings }),
            _ => Err(layers.wrong("backend", format!("one backend, or {stages}, one for each stage of --pp"))),
        }
    }

    /// The same with so many ranks of this machine that share every layer, whatever the options say of ranks.
    pub(crate) fn on_local_ranks(self, ranks: u32) -> DeviceSettings {
        DeviceSettings { ranks: RankSettings::local(ranks), ..self }
    }

    fn read(layers: &Layers, threads: Option<usize>) -> Result<DeviceSettings, CliFailure> {
        let registry = Registry::new(surroundings(layers)?);
        let mut names = layers.text("backend").unwrap_or(AUTO).split(',').map(str::trim);
        Ok(DeviceSettings {
            backend: registry.select(names.next().unwrap_or(AUTO))?,
            others: names.map(|name| Ok(registry.select(name)?.name())).collect::<Result<_, CliFailure>>()?,
            ordinal: layers.number("device", "the number of a device", |_| true)?.unwrap_or(0),
            open: open_options(layers, threads)?,
            ranks: None,
        })
    }

    /// Refuses a model that cannot be divided among the ranks; gives what the user should know of how it is.
    ///
    /// # Errors
    /// [`CliFailure::Usage`] with the numbers of ranks that there may be.
    pub(crate) fn check_division(
        &self,
        checkpoint: &Checkpoint,
        layers: &Layers,
    ) -> Result<Option<String>, CliFailure> {
        self.ranks.as_ref().map_or(Ok(None), |ranks| ranks.check_division(checkpoint, layers))
    }

    /// Reads the options.
    ///
    /// # Errors
    /// As [`DeviceSettings::for_threads`].
    pub(crate) fn resolve(layers: &Layers) -> Result<DeviceSettings, CliFailure> {
        DeviceSettings::for_threads(layers, threads(layers)?)
    }

    /// What is known of the device without opening it.
    ///
    /// # Errors
    /// [`CliFailure::Usage`] where the backend has no device of that number.
    pub(crate) fn info(&self, layers: &Layers) -> Result<DeviceInfo, CliFailure> {
        let devices = self.backend.probe().map_err(|why| CliFailure::Other(why.to_string()))?;
        let found = devices.iter().find(|device| device.ordinal == self.ordinal);
        let numbers: Vec<String> = devices.iter().map(|device| device.ordinal.to_string()).collect();
        let expected = format!("a device of {}: {}", self.backend.name(), numbers.join(", "));
        found.cloned().ok_or_else(|| layers.wrong("device", expected))
    }

    /// Opens the device; the second value holds what the user should know.
    ///
    /// # Errors
    /// [`CliFailure::Usage`] naming an option that the device refuses as it was given; [`CliFailure::Device`] for the rest.
    pub(crate) fn open(&self, layers: &Layers) -> Result<(Arc<dyn Device>, Vec<String>), CliFailure> {
        let opened = match &self.ranks {
            Some(ranks) => {
                let backends: Vec<&'static str> =
                    [self.backend.name()].into_iter().chain(self.others.clone()).collect();
                return ranks.open(&backends, self.ordinal, &self.open, layers);
            }
            None => self.backend.open(self.ordinal, &self.open),
        };
        opened.map_err(|error| refused(error, layers))
    }
}

/// The surroundings of devices: this process's, where compiled kernels are kept beside compiled plans unless a variable says where, or
/// nothing is kept.
///
/// # Errors
/// [`CliFailure::Usage`] naming the option.
fn surroundings(layers: &Layers) -> Result<ProbeEnvironment, CliFailure> {
    const FOLDER: &str = "YIRAGE_KERNEL_CACHE";
    let own = ProbeEnvironment::of_this_process();
    let kept = super::packed::resolve(layers)?.0.filter(|_| own.variable(FOLDER).is_none());
    let Some(kept) = kept else { return Ok(own) };
    // A variable whose name is no text is none that is asked for.
    let variables = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
    Ok(ProbeEnvironment::new("/", variables.chain([(FOLDER.into(), kept.texts().into())])))
}

/// What a device says of how it was to be opened.
pub(crate) fn refused(error: HalError, layers: &Layers) -> CliFailure {
    match error {
        HalError::Option { option, why } if layers.knows(option) => {
            CliFailure::Usage(format!("{}: {why}", layers.label(option)))
        }
        error => error.into(),
    }
}

/// How a device is opened with so many threads.
///
/// # Errors
/// [`CliFailure::Usage`] naming the option.
pub(crate) fn open_options(layers: &Layers, threads: Option<usize>) -> Result<OpenOptions, CliFailure> {
    let (isa, keep_stalled) = (layers.text("isa").map(str::to_owned), layers.switch("keep-stalled")?);
    Ok(OpenOptions { threads, isa, keep_stalled, ..OpenOptions::default() })
}

/// The number of threads that the options ask for, if they do.
///
/// # Errors
/// [`CliFailure::Usage`] naming the option.
pub(crate) fn threads(layers: &Layers) -> Result<Option<usize>, CliFailure> {
    let most = most_threads();
    let expected = format!("a number from 1 to {most}, beyond which threads only wait for the processors here");
    layers.number("threads", &expected, |n| (1..=most).contains(n))
}
