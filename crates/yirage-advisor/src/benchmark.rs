//! Ops of ours, timed on each of some backends. What fails is an entry with its error, and the others go on.

use crate::error::AdvisorError;
use crate::loaded::{LoadedWorkload, OpThroughput};
use crate::workload::{ALL, BenchmarkSizes, Make};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;
use yirage_hal::{Device, OpenOptions};
use yirage_registry::Registry;
use yirage_tune::{TimedStep, Timing};

/// What is about to happen, told to whoever watches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BenchmarkEvent<'a> {
    /// An op is timed: its backend, its name and its sizes in words.
    Op(&'a str),
    /// One of its steps runs.
    Step,
}

/// Hears what happens next, and says whether it shall.
pub type BenchmarkWatcher<'a> = dyn FnMut(BenchmarkEvent<'_>) -> ControlFlow<()> + 'a;

/// What became of one backend.
#[derive(Debug)]
pub struct BackendBenchmark {
    /// The name that was asked for.
    pub backend: String,
    /// Its first device with every op; or why there is none.
    pub outcome: Result<DeviceBenchmark, AdvisorError>,
}

/// What became of one device.
#[derive(Debug)]
pub struct DeviceBenchmark {
    /// What the maker calls it.
    pub name: String,
    /// What the user should know of how it was opened.
    pub notes: Vec<String>,
    /// Every op.
    pub ops: Vec<OpBenchmark>,
}

/// What became of one op.
#[derive(Debug)]
pub struct OpBenchmark {
    /// The op.
    pub op: &'static str,
    /// Its sizes in words; nothing where it could not be made.
    pub shape: String,
    /// How fast it was, or why it did not run.
    pub outcome: Result<OpThroughput, AdvisorError>,
}

/// Times every op on the first device of each backend of `names`. All steps together take `time`, in equal parts, and one
/// step of each op more; beside that, ops are compiled and loaded. Where `watch` breaks, what was timed until then is given,
/// and the op that was stopped has [`AdvisorError::Stopped`].
pub fn benchmark(
    registry: &Registry,
    names: &[&str],
    options: &OpenOptions,
    sizes: &BenchmarkSizes,
    time: Duration,
    watch: &mut BenchmarkWatcher<'_>,
) -> Vec<BackendBenchmark> {
    let parts = u32::try_from(names.len() * ALL.len()).unwrap_or(u32::MAX).max(1);
    let each = time / parts;
    let mut results = Vec::with_capacity(names.len());
    for &name in names {
        let outcome = open(registry, name, options).map(|(device, notes)| DeviceBenchmark {
            name: device.info().name.clone(),
            notes,
            ops: on_device(&*device, name, sizes, each, watch),
        });
        let stopped = outcome.as_ref().is_ok_and(|device| device.ops.last().is_some_and(OpBenchmark::is_stopped));
        results.push(BackendBenchmark { backend: name.to_owned(), outcome });
        if stopped {
            break;
        }
    }
    results
}

/// An open device, and what the user should know of it.
type DeviceWithNotes = (Arc<dyn Device>, Vec<String>);

fn open(registry: &Registry, name: &str, options: &OpenOptions) -> Result<DeviceWithNotes, AdvisorError> {
    Ok(registry.select(name)?.open(0, options)?)
}

fn on_device(
    device: &dyn Device,
    name: &str,
    sizes: &BenchmarkSizes,
    time: Duration,
    watch: &mut BenchmarkWatcher<'_>,
) -> Vec<OpBenchmark> {
    let mut ops = Vec::with_capacity(ALL.len());
    for (op, make) in ALL {
        let of_op = timed(device, name, (op, make), sizes, time, watch);
        let stopped = of_op.is_stopped();
        ops.push(of_op);
        if stopped {
            break;
        }
    }
    ops
}

fn timed(
    device: &dyn Device,
    name: &str,
    (op, make): (&'static str, Make),
    sizes: &BenchmarkSizes,
    time: Duration,
    watch: &mut BenchmarkWatcher<'_>,
) -> OpBenchmark {
    let workload = match make(sizes) {
        Ok(workload) => workload,
        Err(error) => return OpBenchmark { op, shape: String::new(), outcome: Err(error) },
    };
    let shape = workload.shape.clone();
    if watch(BenchmarkEvent::Op(&format!("{name}: {op} {shape}"))).is_break() {
        return OpBenchmark { op, shape, outcome: Err(AdvisorError::Stopped) };
    }
    let outcome = LoadedWorkload::new(device, workload).and_then(|running| {
        let work = running.work();
        Ok(OpThroughput::new(Timing::for_time(time, &mut InterruptibleWorkload { running, watch })?, work))
    });
    OpBenchmark { op, shape, outcome }
}

/// A workload that is stopped between two steps.
struct InterruptibleWorkload<'a, 'b> {
    running: LoadedWorkload,
    watch: &'a mut BenchmarkWatcher<'b>,
}

impl TimedStep for InterruptibleWorkload<'_, '_> {
    type Error = AdvisorError;

    fn step(&mut self) -> Result<(), AdvisorError> {
        match (self.watch)(BenchmarkEvent::Step) {
            ControlFlow::Continue(()) => self.running.step(),
            ControlFlow::Break(()) => Err(AdvisorError::Stopped),
        }
    }
}

impl OpBenchmark {
    fn is_stopped(&self) -> bool {
        matches!(self.outcome, Err(AdvisorError::Stopped))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use yirage_hal::{Backend, DeviceInfo, HalError, Unavailable};
    use yirage_registry::ProbeEnvironment;

    const SMALL: BenchmarkSizes =
        BenchmarkSizes { hidden: 64, inner: 96, tokens: 5, positions: 70, heads: 4, kv_heads: 2, head: 32 };

    /// A backend that is there and cannot be opened.
    struct UnopenableBackend;

    impl Backend for UnopenableBackend {
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

    fn watched(names: &[&str], watch: &mut BenchmarkWatcher<'_>) -> Vec<BackendBenchmark> {
        let mut registry = Registry::new(ProbeEnvironment::of_this_process());
        registry.register(Arc::new(UnopenableBackend));
        benchmark(&registry, names, &OpenOptions::default(), &SMALL, Duration::from_millis(6), watch)
    }

    fn timed(names: &[&str]) -> (Vec<BackendBenchmark>, Vec<String>) {
        let mut said = Vec::new();
        let mut say = |next: BenchmarkEvent<'_>| {
            if let BenchmarkEvent::Op(text) = next {
                said.push(text.to_owned());
            }
            ControlFlow::Continue(())
        };
        (watched(names, &mut say), said)
    }

    #[test]
    fn whoever_watches_stops_it_before_any_op_and_step() {
        let all = ["reference", "reference"];
        let shown = |results: &[BackendBenchmark]| {
            let ops = |of: &BackendBenchmark| {
                of.outcome.as_ref().unwrap().ops.iter().map(OpBenchmark::is_stopped).collect::<Vec<_>>()
            };
            results.iter().map(ops).collect::<Vec<_>>()
        };
        let mut op = 0;
        let results = watched(&all, &mut |next| {
            op += usize::from(next != BenchmarkEvent::Step);
            if op == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert_eq!(shown(&results), [[false, true]], "the second op is not begun");
        let mut steps = 0;
        let results = watched(&all, &mut |next| {
            steps += usize::from(next == BenchmarkEvent::Step);
            if steps == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert_eq!((shown(&results), steps), (vec![vec![true]], 2), "the second step of the first op does not run");
    }

    #[test]
    fn a_backend_that_fails_is_an_entry_and_the_others_go_on() {
        let (results, said) = timed(&["broken", "warp", "reference"]);
        let [broken, unknown, reference] = results.as_slice() else { panic!("{results:?}") };
        let error = |of: &BackendBenchmark| of.outcome.as_ref().err().map(ToString::to_string).unwrap_or_default();
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
