//! Figures of a device that is one of several ranks, by steps of small graphs on all of them at once.
//!
//! All ranks run the same plan, so what a step takes on this one it takes while all others are at work. A graph with a
//! collective is a rank's own ([`yirage_compile`] divides nothing of it), so that each rank has all of the weights here.

use super::figures::LinkFigures;
use super::rank_step::{Collective, CollectiveKind};
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
/// Gathers of a graph that has some.
const GATHERS: usize = 8;
/// Elements that a rank gives to a gather: few, and many.
const WIDTHS: [u32; 2] = [256, 1 << 16];

/// Products as a model has them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ProductSizes {
    /// The format of the weights.
    pub format: Format,
    /// Inputs and outputs of each: a multiple of the format's block.
    pub width: u32,
    /// How many, one after the other.
    pub count: u32,
    /// Tokens of a step.
    pub tokens: u32,
    /// How they are computed.
    pub precision: Precision,
}

/// Seconds of the smallest step, which all ranks take.
///
/// # Errors
/// What the compiler or the device says.
pub fn measure_smallest(device: &dyn Device) -> Result<f64, AdvisorError> {
    timed(device, &gathers(1, WIDTHS[0], None)?)
}

/// Bytes a second of weights that each rank reads in such products, all ranks at once; `smallest` seconds of a step are not the
/// products'.
///
/// # Errors
/// What the compiler or the device says.
pub fn measure_products(device: &dyn Device, sizes: &ProductSizes, smallest: f64) -> Result<f64, AdvisorError> {
    let ranks = device.target().ranks;
    let prepared = products(sizes, ranks)?;
    let bytes: usize = prepared.weights.iter().map(|(_, bytes)| bytes.len()).sum();
    let seconds = timed(device, &prepared)? - smallest;
    match seconds > 0.0 {
        true => Ok(bytes as f64 / seconds),
        false => {
            let what = format!("the time of {} products of {} inputs and outputs", sizes.count, sizes.width);
            let why = "they take less than the smallest step; take more".into();
            Err(HalError::Unsupported { what, why }.into())
        }
    }
}

/// The link between the ranks of a device, by gathers of few and of many bytes.
///
/// # Errors
/// A device that is no rank of several; what the compiler or the device says.
pub fn measure_link(device: &dyn Device) -> Result<LinkFigures, AdvisorError> {
    let ranks = device.target().ranks;
    if ranks < 2 {
        let why = "it is one rank alone".into();
        return Err(HalError::Unsupported { what: "the link of a device to others".into(), why }.into());
    }
    let mut times = [0.0; 2];
    let mut sizes = [Collective { kind: CollectiveKind::AllGather, bytes: 0.0 }; 2];
    for ((width, seconds), collective) in WIDTHS.into_iter().zip(&mut times).zip(&mut sizes) {
        // What is given to a step takes time as well, and is no message.
        let with = timed(device, &gathers(GATHERS, width, Some(ranks))?)?;
        let without = timed(device, &gathers(GATHERS, width, None)?)?;
        *seconds = (with - without).max(0.0) / GATHERS as f64;
        collective.bytes = f64::from(ranks) * f64::from(width) * size_of::<f32>() as f64;
    }
    if times[1] <= 0.0 {
        let what = format!("the time of a gather of {} bytes", sizes[1].bytes);
        return Err(HalError::Unsupported { what, why: "it is lost in the noise of other steps".into() }.into());
    }
    Ok(LinkFigures::fitted((&sizes[0], times[0]), (&sizes[1], times[1]), ranks))
}

fn timed(device: &dyn Device, prepared: &PreparedGraph) -> Result<f64, AdvisorError> {
    let mut loaded = LoadedGraph::new(device, prepared.clone())?;
    loaded.settle()?;
    Ok(Timing::of_steps(STEPS, &mut loaded)?.median())
}

/// A graph of one token's rows in the making.
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

/// Products one after the other, whose weights each rank has whole. Their weights are zeros: what a product takes does not depend
/// on them.
fn products(sizes: &ProductSizes, ranks: u32) -> Result<PreparedGraph, AdvisorError> {
    let mut graph = ScaleGraph::new(sizes.tokens);
    let ty = Type::new(sizes.format.into(), [sizes.width, sizes.width]);
    let zeros = vec![0u8; ty.bytes(&Dims::default())];
    let mut x = graph.input(sizes.width)?;
    for at in 0..sizes.count {
        let name = format!("w{at}");
        let weight = graph.builder.weight(&name, ty.clone())?;
        graph.weights.push((name, zeros.clone()));
        x = graph.builder.op(&format!("y{at}"), Linear { groups: 1 }, &[x, weight])?;
    }
    if ranks > 1 {
        x = graph.builder.op("sum", AllReduce { ranks }, &[x])?;
    }
    graph.builder.output(x);
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
        let smallest = measure_smallest(&*device).unwrap();
        assert!(smallest > 0.0);
        for format in [Format::F32, Format::Q8_0] {
            let sizes = ProductSizes { format, width: 64, count: 40, tokens: 2, precision: Precision::Fast };
            let rate = measure_products(&*device, &sizes, 0.0).unwrap();
            assert!(rate.is_finite() && rate > 0.0);
            let none = measure_products(&*device, &sizes, 1e9).unwrap_err().to_string();
            assert!(none.contains("take less than the smallest step"), "{none}");
        }
        let alone = measure_link(&*device).unwrap_err().to_string();
        assert!(alone.contains("it is one rank alone"), "{alone}");
    }
}
