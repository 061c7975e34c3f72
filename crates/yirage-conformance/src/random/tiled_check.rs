//! What must hold of a tiled region on a device: it is what it is by the reference, and has the bytes that its ops have
//! without tiles.

use super::check::{first_difference, same};
use super::{RandomGraphFailure, RandomGraphVerdict, RandomTiledGraph, with_random_inputs};
use crate::setup::{GraphSetup, Trouble};
use yirage_compile::CompileOptions;
use yirage_hal::Device;
use yirage_ir::Tensor;
use yirage_ir::tensor::Data;

/// What a tiled region is compared with, beside the reference.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TiledComparison {
    /// Nothing.
    Reference,
    /// The bytes of the graph without tiles, each op by itself on the same device. It has a node for each op of each
    /// iteration of each block.
    OpByOp,
}

impl RandomTiledGraph {
    /// How far results may be apart ([`apart`]): roundings of f32 differ in order; those to 16 bits may fall to the other side.
    pub fn tolerance(&self) -> f64 {
        if self.narrow { 0.05 } else { 2e-5 }
    }

    /// Whether all that must hold does on `device`, fused and not.
    pub fn check(&self, device: &dyn Device, beside: TiledComparison) -> RandomGraphVerdict {
        match self.try_check(device, beside) {
            Ok(()) => RandomGraphVerdict::Holds,
            Err(Trouble::Refused(why)) => RandomGraphVerdict::Refused(why),
            Err(Trouble::Failed(why)) => {
                RandomGraphVerdict::Wrong(RandomGraphFailure { value: "the graph".into(), why })
            }
        }
    }

    fn try_check(&self, device: &dyn Device, beside: TiledComparison) -> Result<(), Trouble> {
        let run = |setup: &GraphSetup, options: CompileOptions| setup.run_in(device, setup.dims, &options);
        let fused = run(&self.tiled, CompileOptions::new(self.tiled.precision))?;
        close(&fused, &self.tiled.reference()?, self.tolerance())?;
        let alone = run(&self.tiled, CompileOptions::new(self.tiled.precision).unfused())?;
        equal("fused and not fused", &fused, &alone)?;
        if beside == TiledComparison::OpByOp {
            let plain = run(&self.plain, CompileOptions::new(self.plain.precision).unfused())?;
            equal("with tiles and without", &fused, &plain)?;
        }
        Ok(())
    }
}

fn close(made: &[Data], wanted: &[Tensor], bound: f64) -> Result<(), String> {
    for (output, (made, wanted)) in made.iter().zip(wanted).enumerate() {
        let far = apart(&numbers(made), &numbers(&wanted.data));
        if far > bound {
            return Err(format!("output {output} is {far:e} from the reference, within {bound:e} wanted"));
        }
    }
    Ok(())
}

fn equal(which: &str, a: &[Data], b: &[Data]) -> Result<(), String> {
    for (output, (a, b)) in a.iter().zip(b).enumerate() {
        if !same(a, b) {
            return Err(format!("output {output} {which} differ{}", first_difference(a, b)));
        }
    }
    Ok(())
}

/// Elements as numbers.
pub fn numbers(data: &Data) -> Vec<f64> {
    match data {
        Data::F32(x) => x.iter().map(|&x| f64::from(x)).collect(),
        Data::I32(x) => x.iter().map(|&x| f64::from(x)).collect(),
        Data::U32(x) => x.iter().map(|&x| f64::from(x)).collect(),
        Data::Bool(x) => x.iter().map(|&x| f64::from(u8::from(x))).collect(),
        Data::Blocks(bytes) | Data::Quantized(_, bytes) => bytes.iter().map(|&x| f64::from(x)).collect(),
    }
}

/// How far numbers are apart at most, in parts of one more than the largest number wanted; infinite where there are not as
/// many, or one of two is no number.
pub fn apart(got: &[f64], want: &[f64]) -> f64 {
    if got.len() != want.len() {
        return f64::INFINITY;
    }
    let scale = 1.0 + want.iter().filter(|x| x.is_finite()).fold(0.0, |m: f64, x| m.max(x.abs()));
    let far = |(g, w): (&f64, &f64)| if g == w || (g.is_nan() && w.is_nan()) { 0.0 } else { (g - w).abs() / scale };
    got.iter().zip(want).map(far).fold(0.0, |m, x| if x.is_nan() { f64::INFINITY } else { m.max(x) })
}

/// A demonstration of Mirage as a tiled region written by hand, and the plain ops that it computes.
#[derive(Clone, Debug)]
pub struct TiledDemonstration {
    /// What it is.
    pub name: &'static str,
    /// With the region.
    pub tiled: GraphSetup,
    /// With plain ops.
    pub plain: GraphSetup,
    /// Whether both have the same bytes on every device, and not just close ones.
    pub has_same_bytes: bool,
}

impl TiledDemonstration {
    const TEXTS: [(&'static str, &'static str); 3] = [
        ("gated MLP", include_str!("tiled_demos/gated_mlp.txt")),
        ("RMSNorm with linear", include_str!("tiled_demos/norm_linear.txt")),
        ("attention with online softmax", include_str!("tiled_demos/attention.txt")),
    ];

    /// All of them.
    ///
    /// # Errors
    /// One that is not well formed.
    pub fn all() -> Result<Vec<TiledDemonstration>, String> {
        let parsed = |name, text: &str| match yirage_ir::text::parse(text) {
            Ok(graph) => Ok(with_random_inputs(graph, 5)),
            Err(why) => Err(format!("{name}: {why}")),
        };
        let one = |(name, content): (&'static str, &'static str)| {
            let parts = content.split_once("--- ").and_then(|(tiled, rest)| Some((tiled, rest.split_once('\n')?)));
            let (tiled, (how, plain)) = parts.ok_or_else(|| format!("{name}: two graphs are wanted"))?;
            let (tiled, plain) = (parsed(name, tiled)?, parsed(name, plain)?);
            Ok(TiledDemonstration { name, tiled, plain, has_same_bytes: how == "same bytes" })
        };
        TiledDemonstration::TEXTS.into_iter().map(one).collect()
    }
}
