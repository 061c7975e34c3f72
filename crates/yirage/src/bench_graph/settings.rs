//! From options to the graphs that are timed.

use crate::failure::CliFailure;
use crate::options::Layers;
use yirage_graph::workloads::ALL;
use yirage_graph::{Parameters, Scale, Workload};
use yirage_ir::DType;

/// Largest batch.
const MAX_BATCH: u32 = 256;
/// Most rounds.
const MAX_REPETITIONS: u32 = 10_000;

/// What to time, and how often.
pub(crate) struct GraphBenchSettings {
    /// The graphs.
    pub(crate) cases: Vec<GraphBenchCase>,
    /// Timed rounds of each.
    pub(crate) repetitions: u32,
    /// Whether each round waits for a line of standard input.
    pub(crate) paced: bool,
    /// Whether what a search finds is timed too.
    pub(crate) superoptimize: bool,
}

/// A workload with its batch and type.
#[derive(Clone, Copy)]
pub(crate) struct GraphBenchCase {
    /// What is computed.
    pub(crate) workload: Workload,
    /// Of how many.
    pub(crate) batch: u32,
    /// In what.
    pub(crate) dtype: DType,
}

impl GraphBenchCase {
    /// What its graph is made for.
    pub(crate) fn parameters(&self) -> Parameters {
        Parameters { batch: self.batch, dtype: self.dtype, scale: Scale::Mirage }
    }
}

impl GraphBenchSettings {
    /// Reads the options; `names` are the workloads that are wanted, none is all.
    ///
    /// # Errors
    /// [`CliFailure::Usage`] naming the option or the workload.
    pub(crate) fn resolve(layers: &Layers, names: &[String]) -> Result<GraphBenchSettings, CliFailure> {
        let known = || ALL.map(|w| w.name).join(", ");
        let unknown = |name: &str| CliFailure::Usage(format!("no workload is called {name:?}; there is: {}", known()));
        let workload = |name: &String| Workload::named(name).ok_or_else(|| unknown(name));
        let workloads: Vec<Workload> = match names {
            [] => ALL.to_vec(),
            names => names.iter().map(workload).collect::<Result<_, _>>()?,
        };
        let in_range = |n: &u32| (1..=MAX_BATCH).contains(n);
        let batch = |word: &str| word.parse().ok().filter(in_range);
        let batches = list(layers, "batch", vec![1], &batch, &format!("numbers from 1 to {MAX_BATCH}"))?;
        let dtype = |word: &str| ["f32", "f16", "bf16"].contains(&word).then(|| DType::parse(word))?;
        let dtypes = list(layers, "dtype", vec![DType::F32], &dtype, "f32, f16 or bf16")?;
        let mut cases = Vec::new();
        for &workload in &workloads {
            for &batch in &batches {
                cases.extend(dtypes.iter().map(|&dtype| GraphBenchCase { workload, batch, dtype }));
            }
        }
        let paced = layers.switch("paced")?;
        if paced && cases.len() > 1 {
            let what =
                format!("--paced times one graph, and {} are asked for: give a name, a batch and a type", cases.len());
            return Err(CliFailure::Usage(what));
        }
        let expected = format!("a number from 1 to {MAX_REPETITIONS}");
        let repetitions = layers.number("repetitions", &expected, |n| (1..=MAX_REPETITIONS).contains(n))?;
        let repetitions = repetitions.ok_or_else(|| layers.wrong("repetitions", &expected))?;
        let superoptimize = layers.switch("superoptimize")?;
        Ok(GraphBenchSettings { cases, repetitions, paced, superoptimize })
    }
}

/// Words separated by commas, of all times the option was given.
fn list<T>(
    layers: &Layers,
    name: &str,
    default: Vec<T>,
    read: &dyn Fn(&str) -> Option<T>,
    expected: &str,
) -> Result<Vec<T>, CliFailure> {
    let given = layers.texts(name);
    if given.is_empty() {
        return Ok(default);
    }
    let wrong = |word: &str| {
        CliFailure::Usage(format!("{}: expected {expected} with commas between, not {word:?}", layers.label(name)))
    };
    given.iter().flat_map(|text| text.split(',')).map(|word| read(word.trim()).ok_or_else(|| wrong(word))).collect()
}
