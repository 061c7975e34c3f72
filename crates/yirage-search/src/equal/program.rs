//! A graph as steps of general ops over known sizes: symbols are replaced, named ops lowered, regions inlined.
//!
//! Every element is a number here: a quantised weight is what its codes are worth, and so are activations in a layout.
//! An op without a general form stays closed: it is known by its name and attributes alone.

use super::error::NotEqual;
use std::rc::Rc;
use yirage_ir::expr::{Scalar, is_float};
use yirage_ir::hash::fnv128;
use yirage_ir::op::{Reduce, ViewForm};
use yirage_ir::region::unrolled;
use yirage_ir::{DType, Dims, Expr, Graph, Node, NodeKind, Op, RegionKind, Type, ValueId, ValueSource};

/// Most steps of a program: named ops and regions are a few each.
const MAX_STEPS: usize = 1 << 20;

/// The type of a value.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct EvalShape {
    /// A plain type.
    pub(super) dtype: DType,
    pub(super) sizes: Vec<usize>,
}

impl EvalShape {
    fn of(ty: &Type, dims: &Dims) -> EvalShape {
        EvalShape { dtype: numbers(ty.dtype), sizes: ty.shape.iter().map(|d| d.get(dims)).collect() }
    }

    fn ty(&self) -> Type {
        Type::new(self.dtype, self.sizes.iter().map(|&n| n as u32))
    }

    /// Number of elements; `None` where that is no number.
    pub(super) fn elements(&self) -> Option<usize> {
        self.sizes.iter().try_fold(1usize, |n, &size| n.checked_mul(size))
    }
}

/// The plain type of the numbers that elements stand for.
fn numbers(dtype: DType) -> DType {
    if dtype.is_plain() { dtype } else { DType::F32 }
}

/// Whether values of this type are whole numbers; bools are not: what decides may be unknown.
pub(super) fn is_whole(dtype: DType) -> bool {
    matches!(dtype, DType::I32 | DType::U32)
}

/// An op of which nothing is known but that equal inputs give equal outputs.
#[derive(Clone, Debug)]
pub(super) struct Closed {
    /// A hash of name and attributes.
    pub(super) key: u64,
    /// For each input, whether row t of it concerns row t of the outputs alone; `None` for ops that are not row-wise.
    pub(super) by_rows: Option<Vec<bool>>,
}

/// What a step does.
#[derive(Clone, Debug)]
pub(super) enum EvalOp {
    Map(Rc<Expr>),
    Reduce(Reduce),
    View(ViewForm),
    Contract,
    Concat(usize),
    Gather(usize),
    Fill(Scalar),
    Iota(usize),
    Closed(Closed),
}

/// A step; numbers are positions in [`EvalProgram::values`].
#[derive(Clone, Debug)]
pub(super) struct EvalStep {
    pub(super) kind: EvalOp,
    pub(super) ins: Vec<usize>,
    pub(super) outs: Vec<usize>,
}

/// A value that is given.
#[derive(Clone, Debug)]
pub(super) struct EvalInput {
    pub(super) value: usize,
    pub(super) name: String,
    /// What its random elements are named by.
    pub(super) key: u64,
    /// Whole numbers stay below this: what they choose slices of.
    pub(super) below: u32,
}

/// A value that is given back, or a state after the step.
#[derive(Clone, Debug)]
pub(super) struct EvalOutput {
    pub(super) value: usize,
    pub(super) name: String,
}

/// Steps in an order in which they can run.
#[derive(Clone, Debug, Default)]
pub(super) struct EvalProgram {
    pub(super) values: Vec<EvalShape>,
    pub(super) steps: Vec<EvalStep>,
    pub(super) inputs: Vec<EvalInput>,
    pub(super) outputs: Vec<EvalOutput>,
}

/// What whole numbers that choose nothing stay below.
const SMALL: u32 = 4;

impl EvalProgram {
    /// The program of a sound graph under `dims`.
    pub(super) fn of(graph: &Graph, dims: &Dims) -> Result<EvalProgram, NotEqual> {
        let mut program = EvalProgram::default();
        let mut given = Vec::with_capacity(graph.inputs.len());
        for &id in &graph.inputs {
            let v = graph.value(id);
            let value = program.value(EvalShape::of(&v.ty, dims))?;
            let key = fnv128(v.name.as_bytes()) as u64;
            program.inputs.push(EvalInput { value, name: v.name.clone(), key, below: SMALL });
            given.push(value);
        }
        let values = program.inline(graph, &given, dims)?;
        let find = |id: ValueId| values[id.index()];
        for (&id, at) in graph.outputs.iter().zip(0..) {
            program.outputs.push(EvalOutput { value: find(id), name: name_of(graph, id, at) });
        }
        let mut states: Vec<ValueId> = graph.inputs_of(ValueSource::KvCache).collect();
        states.sort_by_key(|&state| &graph.value(state).name);
        for state in states {
            let named = |&id: &ValueId| graph.kv_cache_of(id) == Some(state);
            let last = (0..graph.values.len() as u32).map(ValueId).rfind(named).unwrap_or(state);
            program.outputs.push(EvalOutput { value: find(last), name: graph.value(state).name.clone() });
        }
        program.bound_choices();
        Ok(program)
    }

    fn value(&mut self, shape: EvalShape) -> Result<usize, NotEqual> {
        if shape.elements().is_none() {
            let what = format!("a value of sizes {:?}", shape.sizes);
            return Err(NotEqual::Unsupported { what, why: "its elements are no number".into() });
        }
        self.values.push(shape);
        Ok(self.values.len() - 1)
    }

    /// Adds the nodes of a graph whose inputs are `given`; for each of its values, the one here. A value that nothing
    /// makes has none, and a sound graph has no such value that is read.
    fn inline(&mut self, graph: &Graph, given: &[usize], dims: &Dims) -> Result<Vec<usize>, NotEqual> {
        let mut here = vec![usize::MAX; graph.values.len()];
        graph.inputs.iter().zip(given).for_each(|(id, &value)| here[id.index()] = value);
        for node in &graph.nodes {
            let ins: Vec<usize> = node.ins.iter().map(|id| here[id.index()]).collect();
            let outs = match &node.kind {
                NodeKind::Op(op) => self.op(graph, node, op, ins, dims)?,
                NodeKind::Region(region) => match region.kind {
                    RegionKind::Rows | RegionKind::MatmulGroup | RegionKind::Chain => {
                        let inner = self.inline(&region.graph, &ins, dims)?;
                        region.graph.outputs.iter().map(|id| inner[id.index()]).collect()
                    }
                    RegionKind::Tiled => {
                        let types: Vec<Type> = ins.iter().map(|&i| self.values[i].ty()).collect();
                        let form = unrolled(region, &types).map_err(|why| NotEqual::Unsupported {
                            what: "a tiled region".into(),
                            why: why.to_string(),
                        })?;
                        let inner = self.inline(&form, &ins, dims)?;
                        form.outputs.iter().map(|id| inner[id.index()]).collect()
                    }
                },
            };
            node.outs.iter().zip(outs).for_each(|(id, value)| here[id.index()] = value);
        }
        Ok(here)
    }

    fn op(
        &mut self,
        graph: &Graph,
        node: &Node,
        op: &Op,
        ins: Vec<usize>,
        dims: &Dims,
    ) -> Result<Vec<usize>, NotEqual> {
        let shapes: Vec<EvalShape> = node.outs.iter().map(|&id| EvalShape::of(graph.ty(id), dims)).collect();
        let kind = match op {
            Op::Map(map) => EvalOp::Map(Rc::new(map.expr.clone())),
            Op::Reduce(reduce) => EvalOp::Reduce(reduce.clone()),
            Op::View(view) => EvalOp::View(view.form.clone()),
            Op::Contract(_) => EvalOp::Contract,
            Op::Concat(concat) => EvalOp::Concat(concat.axis as usize),
            Op::Gather(gather) => EvalOp::Gather(gather.axis as usize),
            Op::Fill(fill) => EvalOp::Fill(fill.value),
            Op::Iota(iota) => EvalOp::Iota(iota.axis as usize),
            named => {
                let types: Vec<Type> = ins.iter().map(|&i| self.values[i].ty()).collect();
                match named.lower(&types) {
                    Ok(form) => {
                        let inner = self.inline(&form, &ins, dims)?;
                        return Ok(form.outputs.iter().map(|id| inner[id.index()]).collect());
                    }
                    Err(_) => EvalOp::Closed(closed(named, &types)),
                }
            }
        };
        if self.steps.len() >= MAX_STEPS {
            let why = format!("its ops are more than {MAX_STEPS} general ones");
            return Err(NotEqual::Unsupported { what: format!("the graph `{}`", graph.name), why });
        }
        let outs = shapes.into_iter().map(|shape| self.value(shape)).collect::<Result<Vec<_>, _>>()?;
        self.steps.push(EvalStep { kind, ins, outs: outs.clone() });
        Ok(outs)
    }

    /// Whole numbers that are given to choose slices stay below the number of these.
    fn bound_choices(&mut self) {
        // For each value, the value that it is a view of.
        let mut seen: Vec<usize> = (0..self.values.len()).collect();
        for step in &self.steps {
            match step.kind {
                EvalOp::View(_) => seen[step.outs[0]] = seen[step.ins[0]],
                EvalOp::Gather(axis) => {
                    let (from, size) = (seen[step.ins[1]], self.values[step.ins[0]].sizes[axis]);
                    let size = u32::try_from(size).unwrap_or(u32::MAX).max(1);
                    for input in self.inputs.iter_mut().filter(|input| input.value == from) {
                        // The first one that is met is not smaller than another by chance.
                        input.below = if input.below == SMALL { size } else { input.below.min(size) };
                    }
                }
                _ => {}
            }
        }
    }

    /// The types of a step's inputs.
    pub(super) fn dtypes(&self, step: &EvalStep) -> Vec<DType> {
        step.ins.iter().map(|&i| self.values[i].dtype).collect()
    }
}

/// The name that a reader of a report knows an output by.
fn name_of(graph: &Graph, id: ValueId, at: usize) -> String {
    graph.values.get(id.index()).map_or_else(|| format!("{at}"), |v| v.name.clone())
}

fn closed(op: &Op, types: &[Type]) -> Closed {
    let attrs: Vec<String> = op.attrs().iter().map(|(name, value)| format!("{name}={value}")).collect();
    let key = fnv128(format!("{}{{{}}}", op.name(), attrs.join(",")).as_bytes()) as u64;
    let rows = types.first().and_then(|ty| ty.shape.first()).copied();
    let by_rows = (op.row_wise(types) && rows.is_some()).then(|| {
        let own = |(i, ty): (usize, &Type)| ty.shape.first().copied() == rows && !op.whole(i, ty);
        types.iter().enumerate().map(own).collect()
    });
    // A cache is appended to, which concerns all of it.
    let by_rows = if matches!(op, Op::KvAppend(_)) { None } else { by_rows };
    Closed { key, by_rows }
}

/// Whether the candidate can be called as the original is: it has no other inputs, all of the states, and the same
/// outputs.
pub(super) fn called_alike(original: &Graph, candidate: &Graph) -> Result<(), NotEqual> {
    let wrong = |what: String| Err(NotEqual::Interface(what));
    let given = |graph: &Graph, name: &str| graph.inputs.iter().copied().find(|&i| graph.value(i).name == name);
    for &id in &candidate.inputs {
        let w = candidate.value(id);
        let Some(v) = given(original, &w.name).map(|id| original.value(id)) else {
            return wrong(format!("the original has no input `{}`", w.name));
        };
        if (v.ty.dense(), v.source) != (w.ty.dense(), w.source) {
            return wrong(format!("`{}` is a {:?} of {} and a {:?} of {}", v.name, v.source, v.ty, w.source, w.ty));
        }
    }
    for v in original.inputs_of(ValueSource::KvCache).map(|id| original.value(id)) {
        if given(candidate, &v.name).is_none() {
            return wrong(format!("the candidate has no KV cache `{}`", v.name));
        }
    }
    let types = |graph: &Graph| graph.outputs.iter().map(|&o| graph.ty(o).dense().to_string()).collect::<Vec<_>>();
    let (a, b) = (types(original), types(candidate));
    if a == b { Ok(()) } else { wrong(format!("outputs [{}] and [{}]", a.join(", "), b.join(", "))) }
}

/// Whether values of this type are floats, in which rounding counts.
pub(super) fn rounds(dtype: DType) -> bool {
    is_float(dtype)
}
