//! Ops of ours, timed on each of some backends. What fails is an entry with its error, and the others go on.

use crate::error::AdvisorError;
use crate::loaded::{Rates, Running};
use crate::workload::{ALL, Make, Sizes};
use std::sync::Arc;
use std::time::Duration;
use yirage_hal::{Device, OpenOptions};
use yirage_registry::Registry;
use yirage_tune::Timing;

/// What became of one backend.
#[derive(Debug)]
pub struct OfBackend {
    /// The name that was asked for.
    pub backend: String,
    /// Its first device with every op; or why there is none.
    pub outcome: Result<OfDevice, AdvisorError>,
}

/// What became of one device.
#[derive(Debug)]
pub struct OfDevice {
    /// What the maker calls it.
    pub name: String,
    /// What the user should know of how it was opened.
    pub notes: Vec<String>,
    /// Every op.
    pub ops: Vec<OfOp>,
}

/// What became of one op.
#[derive(Debug)]
pub struct OfOp {
    /// The op.
    pub op: &'static str,
    /// Its sizes in words; nothing where it could not be made.
    pub shape: String,
    /// How fast it was, or why it did not run.
    pub outcome: Result<Rates, AdvisorError>,
}

/// Times every op on the first device of each backend of `names`. All steps together take `time`, in equal parts, and one
/// step of each op more; beside that, ops are compiled and loaded. `progress` hears what is timed next.
pub fn benchmark(
    registry: &Registry,
    names: &[&str],
    options: &OpenOptions,
    sizes: &Sizes,
    time: Duration,
    progress: &mut dyn FnMut(&str),
) -> Vec<OfBackend> {
    let parts = u32::try_from(names.len() * ALL.len()).unwrap_or(u32::MAX).max(1);
    let each = time / parts;
    let of_backend = |&name: &&str| OfBackend {
        backend: name.to_owned(),
        outcome: open(registry, name, options).map(|(device, notes)| OfDevice {
            name: device.info().name.clone(),
            notes,
            ops: on_device(&*device, name, sizes, each, progress),
        }),
    };
    names.iter().map(of_backend).collect()
}

/// An open device, and what the user should know of it.
type Opened = (Arc<dyn Device>, Vec<String>);

fn open(registry: &Registry, name: &str, options: &OpenOptions) -> Result<Opened, AdvisorError> {
    Ok(registry.select(name)?.open(0, options)?)
}

fn on_device(
    device: &dyn Device,
    name: &str,
    sizes: &Sizes,
    time: Duration,
    progress: &mut dyn FnMut(&str),
) -> Vec<OfOp> {
    let mut of_op = |(op, make): (&'static str, Make)| {
        let workload = match make(sizes) {
            Ok(workload) => workload,
            Err(error) => return OfOp { op, shape: String::new(), outcome: Err(error) },
        };
        let shape = workload.shape.clone();
        progress(&format!("{name}: {op} {shape}"));
        let outcome = Running::new(device, workload).and_then(|mut loaded| {
            let work = loaded.work();
            Ok(Rates::new(Timing::for_time(time, &mut loaded)?, work))
        });
        OfOp { op, shape, outcome }
    };
    ALL.into_iter().map(&mut of_op).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use yirage_hal::{Backend, DeviceInfo, HalError, Unavailable};
    use yirage_registry::Surroundings;

    const SMALL: Sizes = Sizes { hidden: 64, inner: 96, tokens: 5, positions: 70, heads: 4, kv_heads: 2, head: 32 };

    /// A backend that is there and cannot be opened.
    struct Broken;

    impl Backend for Broken {
        fn name(&self) -> &'static str {
            "broken"
        }
        fn probe(&self) -> Result<Vec<DeviceInfo>, Unavailable> {
            Ok(vec![DeviceInfo::new("broken", 0, "Broken", "none")])
        }
        fn open(&self, _: u32, _: &OpenOptions) -> Result<(Arc<dyn Device>, Vec<String>), HalError> {
            Err(HalError::Device("it fell off the bus".into()))
        }
    }

    fn timed(names: &[&str]) -> (Vec<OfBackend>, Vec<String>) {
        let mut registry = Registry::new(Surroundings::of_this_process());
        registry.register(Arc::new(Broken));
        let mut said = Vec::new();
        let mut say = |text: &str| said.push(text.to_owned());
        let options = OpenOptions::default();
        (benchmark(&registry, names, &options, &SMALL, Duration::from_millis(6), &mut say), said)
    }

    #[test]
    fn a_backend_that_fails_is_an_entry_and_the_others_go_on() {
        let (results, said) = timed(&["broken", "warp", "reference"]);
        let [broken, unknown, reference] = results.as_slice() else { panic!("{results:?}") };
        let error = |of: &OfBackend| of.outcome.as_ref().err().map(ToString::to_string).unwrap_or_default();
        assert!(error(broken).contains("fell off the bus") && error(unknown).contains("\"warp\" is unknown"));
        let device = reference.outcome.as_ref().unwrap();
        assert_eq!((device.ops.len(), said.len()), (ALL.len(), ALL.len()));
        for of_op in &device.ops {
            let rates = of_op.outcome.as_ref().unwrap_or_else(|e| panic!("{}: {e}", of_op.op));
            assert!(rates.timing.steps() > 0 && rates.bytes_per_second().is_finite());
            assert!(rates.bytes_per_second() > 0.0, "{of_op:?}");
        }
    }

    #[test]
    fn rates_follow_from_the_ops_own_work_and_the_median() {
        let (results, _) = timed(&["reference"]);
        let ops = &results[0].outcome.as_ref().unwrap().ops;
        // Products: twice m, n and k; attention: twice the dot products and the sums of 70 positions and 4 heads of 32.
        let wanted = [2 * 96 * 64, 2 * 5 * 96 * 64, 2 * 5 * 64 * 64, 0, 0, 2 * 2 * 70 * 4 * 32];
        for (of_op, wanted) in ops.iter().zip(wanted) {
            let rates = of_op.outcome.as_ref().unwrap();
            assert_eq!(rates.ops, f64::from(wanted), "{} {}", of_op.op, of_op.shape);
            let rate = (wanted > 0).then(|| f64::from(wanted) / rates.timing.median());
            assert_eq!(rates.ops_per_second(), rate);
        }
        let bytes = |index: usize| ops[index].outcome.as_ref().unwrap().bytes;
        assert_eq!(bytes(3), f64::from(4 * (5 * 64 + 64 + 5 * 64)), "rows in, weight, rows out");
        assert_eq!(bytes(4), f64::from(2 * 4 * 5 * 70));
    }
}
