//! Figures of a device that is one of several ranks, by steps of small graphs on all of them at once.
//!
//! All ranks run the same plan, so what a step takes on this one it takes while all others are at work. A graph with a
//! collective is a rank's own (the compiler divides nothing of it), so each rank has all of the weights here.

use super::figures::LinkFigures;
use super::rank_step::StepCollective;
use crate::error::AdvisorError;
use std::sync::Arc;
use yirage_compile::CompileOptions;
use yirage_hal::{Device, HalError, Record};
use yirage_ir::expr::{Expr, Func};
use yirage_ir::op::{AllGather, AllReduce, Linear, Map};
use yirage_ir::rng::Rng;
use yirage_ir::{Dims, Format, GraphBuilder, Sym, Type, ValueId};
use yirage_plan::Precision;
use yirage_tune::{LoadedGraph, PreparedGraph, Timing};

/// Steps that are timed of each graph.
const STEPS: usize = 21;
/// Gathers of a graph that does nothing else.
const GATHERS: usize = 8;
/// Elements that a rank gives to each of those.
const MANY: u32 = 1 << 16;
/// Products of a step that is timed.
const MOST_PRODUCTS: u32 = 1 << 12;
/// How often gathers are timed that other work hid.
const ATTEMPTS: usize = 5;

/// Products as ranks have them that share a model: each rank computes some rows, and all get those of all for the next one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RankProducts {
    /// The format of the weights.
    pub format: Format,
    /// Outputs of each product on a rank, a multiple of the format's block. It reads the outputs of all ranks.
    pub rows: u32,
    /// How many.
    pub count: u32,
    /// Tokens of a step.
    pub tokens: u32,
    /// How they are computed.
    pub precision: Precision,
}

/// What ranks do, all at once.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RankFigures {
    /// Seconds of the smallest step.
    pub smallest: f64,
    /// Bytes of weights that each rank reads a second in products.
    pub bytes_per_second: f64,
    /// What a collective between products takes; none of one rank alone.
    pub link: Option<LinkFigures>,
}

/// Measures the ranks of a device.
///
/// # Errors
/// What the compiler or the device says, and times that are lost in those of other work, however often they are taken.
pub fn measure_ranks(device: &dyn Device, sizes: &RankProducts) -> Result<RankFigures, AdvisorError> {
    let ranks = device.target().ranks;
    let smallest = timed(device, &gathers(1, 256, None)?)?;
    let lasting = LastingProducts::find(device, sizes, smallest)?;
    let bytes_per_second = lasting.bytes as f64 / (lasting.seconds - smallest);
    let link = match ranks {
        1 => None,
        _ => Some(link(device, &lasting.sizes, lasting.seconds)?),
    };
    Ok(RankFigures { smallest, bytes_per_second, link })
}

/// Products that take so long that what they take beside a step's own time is no noise.
struct LastingProducts {
    sizes: RankProducts,
    seconds: f64,
    /// Bytes of their weights.
    bytes: usize,
}

impl LastingProducts {
    /// As many as are given, or more of the same where those take less than twice the time of the smallest step.
    fn find(device: &dyn Device, sizes: &RankProducts, smallest: f64) -> Result<LastingProducts, AdvisorError> {
        let mut sizes = *sizes;
        loop {
            let alone = products(&sizes, device.target().ranks, false)?;
            let bytes = alone.weights.iter().map(|(_, bytes)| bytes.len()).sum();
            let seconds = timed(device, &alone)?;
            if seconds >= 2.0 * smallest {
                return Ok(LastingProducts { sizes, seconds, bytes });
            }
            let more = sizes.count.saturating_mul(2);
            if more > MOST_PRODUCTS {
                let what = format!("the time of {} products of {} rows", sizes.count, sizes.rows);
                let why = "they take no longer than the smallest step; leave the machine alone meanwhile".into();
                return Err(HalError::Unsupported { what, why }.into());
            }
            sizes.count = more;
        }
    }
}

/// The link between the ranks: bytes a second by gathers of many bytes, seconds of a message by gathers of few between products,
/// which take so many seconds without. Ranks that compute come to a gather one after the other, and may sleep until the last
/// has come: that is what a message takes.
fn link(device: &dyn Device, sizes: &RankProducts, products_alone: f64) -> Result<LinkFigures, AdvisorError> {
    let ranks = device.target().ranks;
    let unlinked = |what: String, why: &str| HalError::Unsupported { what, why: why.into() };
    let gather = |rows: u32, tokens: u32| {
        let bytes = f64::from(ranks) * f64::from(rows) * f64::from(tokens) * size_of::<f32>() as f64;
        let gathered = StepCollective::of(&AllGather { ranks }.into(), bytes);
        gathered.ok_or_else(|| unlinked(format!("a gather of {ranks} ranks"), "one rank has nothing to gather"))
    };
    let large = (large_gather(device, ranks)?, gather(MANY, 1)?);
    let between = timed(device, &products(sizes, ranks, true)?)? - products_alone;
    let small = ((between / f64::from(sizes.count)).max(0.0), gather(sizes.rows, sizes.tokens)?);
    Ok(LinkFigures::fitted(small, large))
}

/// Seconds of a gather of many elements. What is given to a step takes time as well, and is no message.
fn large_gather(device: &dyn Device, ranks: u32) -> Result<f64, AdvisorError> {
    let (with, without) = (gathers(GATHERS, MANY, Some(ranks))?, gathers(GATHERS, MANY, None)?);
    for _ in 0..ATTEMPTS {
        let seconds = (timed(device, &with)? - timed(device, &without)?) / GATHERS as f64;
        if seconds > 0.0 {
            return Ok(seconds);
        }
    }
    let what = format!("the time of a gather of {MANY} elements of each rank");
    let why = "it is lost in that of other work; leave the machine alone meanwhile".into();
    Err(HalError::Unsupported { what, why }.into())
}

fn timed(device: &dyn Device, prepared: &PreparedGraph) -> Result<f64, AdvisorError> {
    let mut loaded = LoadedGraph::new(device, prepared.clone())?;
    loaded.settle()?;
    Ok(Timing::of_steps(STEPS, &mut loaded)?.median())
}

/// A graph in the making.
struct ScaleGraph {
    builder: GraphBuilder,
    random: Rng,
    inputs: Vec<(String, Arc<Record>)>,
    weights: Vec<(String, Vec<u8>)>,
    tokens: u32,
}

impl ScaleGraph {
    fn new(tokens: u32) -> ScaleGraph {
        let builder = GraphBuilder::new("scale");
        ScaleGraph { builder, random: Rng::new(1), inputs: Vec::new(), weights: Vec::new(), tokens }
    }

    fn input(&mut self, width: u32) -> Result<ValueId, AdvisorError> {
        let name = format!("x{}", self.inputs.len());
        let elements = self.tokens as usize * width as usize;
        let numbers: Vec<f32> = (0..elements).map(|_| self.random.signed_f32()).collect();
        self.inputs.push((name.clone(), Arc::new(Record::of(&numbers))));
        Ok(self.builder.step_input(&name, Type::rows(Sym::Tokens, width))?)
    }

    fn prepared(self, precision: Precision) -> PreparedGraph {
        PreparedGraph {
            graph: self.builder.finish(),
            weights: self.weights,
            step_inputs: self.inputs,
            cache: None,
            dims: Dims { tokens: self.tokens, seqs: 1, blocks: 1, rows: 1 },
            options: CompileOptions::new(precision),
        }
    }
}

/// So many inputs of one row, each gathered from so many ranks, or negated where nothing is to be gathered.
fn gathers(count: usize, width: u32, ranks: Option<u32>) -> Result<PreparedGraph, AdvisorError> {
    let mut graph = ScaleGraph::new(1);
    for at in 0..count {
        let x = graph.input(width)?;
        let y = match ranks {
            Some(ranks) => graph.builder.op(&format!("y{at}"), AllGather { ranks }, &[x])?,
            None => {
                graph.builder.op(&format!("y{at}"), Map { expr: Expr::call(Func::Neg, &[Expr::input(0)]) }, &[x])?
            }
        };
        graph.builder.output(y);
    }
    Ok(graph.prepared(Precision::Exact))
}

/// Products whose weights each rank has whole: each of what all ranks have of the one before it, or all of the same input, with nothing
/// to gather between them. Their weights are zeros: what a product takes does not depend on them.
fn products(sizes: &RankProducts, ranks: u32, gathered: bool) -> Result<PreparedGraph, AdvisorError> {
    let mut graph = ScaleGraph::new(sizes.tokens);
    let ty = Type::new(sizes.format.into(), [sizes.rows, sizes.rows * ranks]);
    let zeros = vec![0u8; ty.bytes(&Dims::default())];
    let mut x = graph.input(sizes.rows * ranks)?;
    let mut last = x;
    for at in 0..sizes.count {
        let name = format!("w{at}");
        let weight = graph.builder.weight(&name, ty.clone())?;
        graph.weights.push((name, zeros.clone()));
        last = graph.builder.op(&format!("y{at}"), Linear { groups: 1 }, &[x, weight])?;
        match gathered {
            true => x = graph.builder.op(&format!("g{at}"), AllGather { ranks }, &[last])?,
            false => graph.builder.output(last),
        }
    }
    let end = match (gathered, ranks) {
        (true, _) => x,
        (false, 1) => return Ok(graph.prepared(sizes.precision)),
        (false, _) => graph.builder.op("sum", AllReduce { ranks }, &[last])?,
    };
    graph.builder.output(end);
    Ok(graph.prepared(sizes.precision))
}

#[cfg(test)]
mod tests {
    use super::*;
    use yirage_hal::reference::Reference;
    use yirage_hal::{Backend, OpenOptions};

    #[test]
    fn one_device_has_steps_and_products_and_no_link() {
        let (device, _) = Reference::new().open(0, &OpenOptions::default()).unwrap();
        for format in [Format::F32, Format::Q8_0] {
            let sizes = RankProducts { format, rows: 128, count: 8, tokens: 2, precision: Precision::Fast };
            let figures = measure_ranks(&*device, &sizes).unwrap();
            assert!(figures.smallest > 0.0 && figures.bytes_per_second.is_finite(), "{figures:?}");
            assert!(figures.bytes_per_second > 0.0 && figures.link.is_none(), "{figures:?}");
        }
    }
}
