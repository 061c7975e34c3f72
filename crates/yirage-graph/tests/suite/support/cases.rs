//! The cases that NumPy computed, as graphs.

use yirage_graph::{KernelGraph, SplitBy};
use yirage_ir::tensor::Data;
use yirage_ir::{DType, Graph, Tensor, ValueId};

/// An operation with operands, and what it gives.
pub(crate) struct GraphCase {
    pub(crate) line: String,
    pub(crate) ins: Vec<Tensor>,
    pub(crate) outs: Vec<Tensor>,
}

pub(crate) fn all() -> Vec<GraphCase> {
    let text = include_str!("../../golden/operations.txt");
    let mut cases: Vec<GraphCase> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (kind, rest) = line.split_once(' ').unwrap();
        match kind {
            "case" => cases.push(GraphCase { line: rest.to_owned(), ins: Vec::new(), outs: Vec::new() }),
            "in" => cases.last_mut().unwrap().ins.push(tensor(rest)),
            _ => cases.last_mut().unwrap().outs.push(tensor(rest)),
        }
    }
    cases
}

fn tensor(text: &str) -> Tensor {
    let [dtype, shape, data] = text.split(' ').collect::<Vec<_>>()[..] else { panic!("{text}") };
    let dtype = DType::parse(dtype).unwrap();
    let shape: Vec<usize> = shape.split(',').filter(|n| *n != "-").map(|n| n.parse().unwrap()).collect();
    let digits = 2 * dtype.row_bytes(1);
    let word = |at: usize| u32::from_str_radix(&data[at..at + digits], 16).unwrap();
    let bytes =
        (0..shape.iter().product::<usize>()).flat_map(|i| word(i * digits).to_le_bytes()[..digits / 2].to_vec());
    let ty = yirage_ir::Type::new(dtype, shape.iter().map(|&n| n as u32));
    Tensor::from_memory(&ty, &yirage_ir::Dims::default(), &bytes.collect::<Vec<_>>())
}

impl GraphCase {
    fn argument(&self, name: &str) -> Option<&str> {
        self.line.split(' ').skip(1).find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
    }

    fn number<T: std::str::FromStr>(&self, name: &str) -> T {
        self.argument(name).and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{}: {name}", self.line))
    }

    fn numbers<T: std::str::FromStr>(&self, name: &str) -> Option<Vec<T>> {
        let number = |n: &str| n.parse().unwrap_or_else(|_| panic!("{}: {name}", self.line));
        Some(self.argument(name)?.split(',').map(number).collect())
    }

    /// The graph of the operation, its operands the inputs.
    pub(crate) fn graph(&self) -> Graph {
        let mut g = KernelGraph::new("case");
        let dims = |t: &Tensor| t.shape.iter().map(|&n| n as u32).collect::<Vec<_>>();
        let ins: Vec<ValueId> = self.ins.iter().map(|t| g.new_input(&dims(t), None, t.dtype).unwrap()).collect();
        for made in self.made(&mut g, &ins) {
            g.mark_output(made, None).unwrap();
        }
        g.finish().unwrap()
    }

    fn made(&self, g: &mut KernelGraph, x: &[ValueId]) -> Vec<ValueId> {
        let operation = self.line.split(' ').next().unwrap();
        let dim = || self.number("dim");
        let shape = || self.numbers("shape").unwrap();
        let made = match operation {
            "exp" => g.exp(x[0]),
            "silu" => g.silu(x[0]),
            "gelu" => g.gelu(x[0]),
            "relu" => g.relu(x[0]),
            "sqrt" => g.sqrt(x[0]),
            "square" => g.square(x[0]),
            "sigmoid" => g.sigmoid(x[0]),
            "log" => g.log(x[0]),
            "add" => g.add(x[0], x[1]),
            "sub" => g.sub(x[0], x[1]),
            "mul" => g.mul(x[0], x[1]),
            "div" => g.div(x[0], x[1]),
            "pow" => g.pow(x[0], x[1]),
            "clamp" => g.clamp(x[0], self.number("min_val"), self.number("max_val")),
            "mul_scalar" => g.mul_scalar(x[0], self.number("scalar")),
            "reduction" => g.reduction(x[0], dim()),
            "max" => g.max(x[0], dim()),
            "matmul" => g.matmul(x[0], x[1]),
            "concat" => g.concat(x, dim()),
            "reshape" => g.reshape(x[0], &self.numbers("dims").unwrap()),
            "permute" => g.permute(x[0], &self.numbers("dims").unwrap()),
            "rms_norm" => g.rms_norm(x[0], &shape()),
            "scaled_rms_norm" => g.scaled_rms_norm(x[0], &shape(), x.get(1).copied(), self.number("eps")),
            "layer_norm" => g.layer_norm(x[0], &shape(), x.get(1).copied(), x.get(2).copied(), self.number("eps")),
            "softmax" => g.softmax(x[0], dim()),
            "attention" => {
                let scale = self.argument("scale").map(|s| s.parse().unwrap());
                g.attention(x[0], x[1], x[2], self.argument("causal") == Some("1"), scale)
            }
            "chunk" => return g.chunk(x[0], self.number("chunks"), dim()).unwrap(),
            "split" => {
                let sizes = self.numbers("sizes");
                let by = sizes.as_ref().map_or_else(|| SplitBy::Size(self.number("size")), |s| SplitBy::Sizes(s));
                return g.split(x[0], by, dim()).unwrap();
            }
            other => panic!("the operation {other} has no place in this test"),
        };
        vec![made.unwrap_or_else(|e| panic!("{}: {e}", self.line))]
    }

    /// Compares results with NumPy's; `factor` widens the tolerances of the exact reference.
    pub(crate) fn check(&self, got: &[Data], factor: f64) {
        assert_eq!(got.len(), self.outs.len(), "{}", self.line);
        for (got, want) in got.iter().zip(&self.outs) {
            let Data::F32(got) = got else { panic!("{}: no floats", self.line) };
            assert_eq!(got.len(), want.floats().len(), "{}", self.line);
            for (&g, &w) in got.iter().zip(want.floats()) {
                let same = g == w || (g.is_nan() && w.is_nan());
                let (abs, rel) = tolerance(want.dtype);
                let near = f64::from((g - w).abs()) <= factor * (abs + rel * f64::from(w.abs()));
                assert!(same || (w.is_finite() && near), "{} {}: {g} is not {w}", want.dtype, self.line);
            }
        }
    }
}

/// Of one rounding to the type, and of f32 within an operation.
fn tolerance(dtype: DType) -> (f64, f64) {
    match dtype.name() {
        "f32" => (1e-6, 4e-6),
        "f16" => (1e-6, 1e-3),
        _ => (1e-6, 8e-3),
    }
}
