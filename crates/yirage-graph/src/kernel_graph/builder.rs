//! Inputs, outputs, names, and what all operations share.

use super::error::GraphError;
use std::collections::{BTreeMap, HashSet};
use yirage_ir::expr::is_float;
use yirage_ir::op::{Map, View, ViewForm};
use yirage_ir::{BuildError, DType, Dim, Expr, Graph, GraphBuilder, NodeKind, Op, Region, Type, ValueId, ValueSource};

/// Most dimensions of an input, as Mirage has it. Values within a graph may have as many as the IR allows.
pub const MAX_INPUT_RANK: usize = 4;

/// A graph under construction.
///
/// All operands of an operation have one element type, f32, f16 or bf16, and so has its result. An operation on 16-bit
/// elements computes in f32 and rounds its result once.
///
/// Values belong to the graph whose method gave them: those of another graph are refused where this one has no value of
/// that number, and name other values where it has.
#[derive(Clone, Debug, Default)]
pub struct KernelGraph {
    builder: GraphBuilder,
    /// Names that are taken, by people or by numbering.
    names: HashSet<String>,
    /// Names of marked outputs, which the finished graph has.
    renamed: BTreeMap<ValueId, String>,
    node_count: usize,
}

/// The result of an operation.
pub(super) type KernelGraphResult = Result<ValueId, GraphError>;

impl KernelGraph {
    /// An empty graph.
    pub fn new(name: impl Into<String>) -> KernelGraph {
        KernelGraph { builder: GraphBuilder::new(name), ..KernelGraph::default() }
    }

    /// Declares an input, which is given anew for each call. It is called `in0`, `in1` and so on.
    ///
    /// `strides` are those of row-major order (which `None` is as well) or of column-major order: the first dimension is
    /// the one whose neighbours lie together.
    ///
    /// # Errors
    /// More than [`MAX_INPUT_RANK`] dimensions, other strides, another type than f32, f16 and bf16.
    pub fn new_input(&mut self, dims: &[u32], strides: Option<&[u32]>, dtype: DType) -> KernelGraphResult {
        let name = self.free_name("in", self.builder.graph().inputs.len());
        self.input(&name, dims, strides, dtype, ValueSource::StepInput)
    }

    /// [`KernelGraph::new_input`] with a name of its own.
    ///
    /// # Errors
    /// As those of [`KernelGraph::new_input`]; a name that is taken or has other characters than letters, digits, `_` and
    /// `.`.
    pub fn named_input(
        &mut self,
        name: &str,
        dims: &[u32],
        strides: Option<&[u32]>,
        dtype: DType,
    ) -> KernelGraphResult {
        self.input(name, dims, strides, dtype, ValueSource::StepInput)
    }

    /// Declares a weight: given once, before the first call.
    ///
    /// # Errors
    /// As those of [`KernelGraph::named_input`].
    pub fn new_weight(&mut self, name: &str, dims: &[u32], strides: Option<&[u32]>, dtype: DType) -> KernelGraphResult {
        self.input(name, dims, strides, dtype, ValueSource::Weight)
    }

    fn input(
        &mut self,
        name: &str,
        dims: &[u32],
        strides: Option<&[u32]>,
        dtype: DType,
        source: ValueSource,
    ) -> KernelGraphResult {
        if dims.len() > MAX_INPUT_RANK {
            return Err(GraphError::Rank { rank: dims.len() });
        }
        if !is_float(dtype) {
            return Err(GraphError::DType { what: "new_input", dtype });
        }
        let dense = Type::new(dtype, dims.iter().copied());
        let ty = Type { strides: strides_of(dims, strides)?, ..dense };
        if self.names.contains(name) {
            return Err(BuildError::Duplicate(name.to_owned()).into());
        }
        let id = self.builder.declare(name, ty, source)?;
        self.names.insert(name.to_owned());
        Ok(id)
    }

    /// Declares that the graph gives `a` back. Outputs come in the order in which they are marked.
    ///
    /// # Errors
    /// Strides that are not those of row-major order: results lie dense. An input: what a graph gives back is computed.
    pub fn mark_output(&mut self, a: ValueId, strides: Option<&[u32]>) -> Result<(), GraphError> {
        let value = self.value("mark_output", a)?;
        if !matches!(value.source, ValueSource::Node { .. }) {
            return Err(GraphError::Unsupported {
                what: format!("mark_output of the input `{}`", value.name),
                why: "a graph gives back what it computes, and the caller has this value already".into(),
            });
        }
        if let Some(given) = strides {
            dense_strides(&value.ty, given)?;
        }
        self.builder.output(a);
        Ok(())
    }

    /// [`KernelGraph::mark_output`] of a value that the finished graph calls `name`.
    ///
    /// # Errors
    /// As those of [`KernelGraph::mark_output`]; a name that is taken, and a value that has one: an input, or an output
    /// that was named before.
    pub fn named_output(&mut self, name: &str, a: ValueId, strides: Option<&[u32]>) -> Result<(), GraphError> {
        let value = self.value("named_output", a)?;
        if !matches!(value.source, ValueSource::Node { .. }) || self.renamed.contains_key(&a) {
            let has = self.renamed.get(&a).unwrap_or(&value.name);
            let given = format!("{name}, and the value is called `{has}`");
            return Err(GraphError::Argument {
                what: "named_output",
                argument: "name",
                given,
                wanted: "a value without a name",
            });
        }
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.') {
            return Err(BuildError::BadName(name.to_owned()).into());
        }
        if self.names.contains(name) {
            return Err(BuildError::Duplicate(name.to_owned()).into());
        }
        self.mark_output(a, strides)?;
        self.names.insert(name.to_owned());
        self.renamed.insert(a, name.to_owned());
        Ok(())
    }

    /// Sizes of a value.
    ///
    /// # Errors
    /// A value that is not of this graph.
    pub fn dims(&self, a: ValueId) -> Result<Vec<u32>, GraphError> {
        Ok(sizes(self.ty("dims", a)?))
    }

    /// Strides of a value: those an input was declared with, of row-major order else.
    ///
    /// # Errors
    /// As those of [`KernelGraph::dims`].
    pub fn strides(&self, a: ValueId) -> Result<Vec<u32>, GraphError> {
        let ty = self.ty("strides", a)?;
        let given = ty.strides.clone().or_else(|| row_major(&sizes(ty)));
        given.ok_or_else(|| too_large("strides", ty))
    }

    /// Element type of a value.
    ///
    /// # Errors
    /// As those of [`KernelGraph::dims`].
    pub fn dtype(&self, a: ValueId) -> Result<DType, GraphError> {
        Ok(self.ty("dtype", a)?.dtype)
    }

    /// The finished graph.
    ///
    /// # Errors
    /// A graph without outputs.
    pub fn finish(self) -> Result<Graph, GraphError> {
        let mut graph = self.builder.finish();
        if graph.outputs.is_empty() {
            return Err(GraphError::NoOutput { graph: graph.name });
        }
        for (id, name) in self.renamed {
            graph.values[id.index()].name = name;
        }
        Ok(graph)
    }

    fn value(&self, what: &'static str, a: ValueId) -> Result<&yirage_ir::Value, GraphError> {
        let values = &self.builder.graph().values;
        values.get(a.index()).ok_or(GraphError::NoValue { what, value: a.0, values: values.len() })
    }

    pub(super) fn ty(&self, what: &'static str, a: ValueId) -> Result<&Type, GraphError> {
        Ok(&self.value(what, a)?.ty)
    }

    /// The element type that all operands have.
    pub(super) fn common(&self, what: &'static str, ins: &[ValueId]) -> Result<DType, GraphError> {
        let types = ins.iter().map(|&i| self.ty(what, i)).collect::<Result<Vec<_>, _>>()?;
        match types.first() {
            Some(first) if types.iter().all(|t| t.dtype == first.dtype) => Ok(first.dtype),
            _ => Err(operands(what, &types, "operands of one element type wanted")),
        }
    }

    /// Which of a value's dimensions `dim` is, and the size along it.
    pub(super) fn along(&self, what: &'static str, a: ValueId, dim: i64) -> Result<(u32, u32), GraphError> {
        let ty = self.ty(what, a)?;
        let rank = ty.shape.len();
        let found = axis(rank, dim).ok_or_else(|| GraphError::Dim { what, dim, ty: ty.to_string(), rank })?;
        Ok((found as u32, sizes(ty)[found]))
    }

    /// A node with one output.
    pub(super) fn op(&mut self, op: impl Into<Op>, ins: &[ValueId]) -> KernelGraphResult {
        let op = op.into();
        let name = self.free_name(op.name(), self.node_count);
        let made = self.builder.op(&name, op, ins)?;
        self.node_count += 1;
        self.names.insert(name);
        Ok(made)
    }

    /// The graph so far with these outputs, inputs among them.
    pub(super) fn giving(&self, outputs: impl IntoIterator<Item = ValueId>) -> Graph {
        let mut builder = self.builder.clone();
        outputs.into_iter().for_each(|id| builder.output(id));
        builder.finish()
    }

    /// A region, which may have several outputs.
    pub(super) fn region(&mut self, region: Region, ins: &[ValueId]) -> Result<Vec<ValueId>, GraphError> {
        let outputs = region.tiled.as_ref().map_or(region.graph.outputs.len(), |tiled| tiled.outs.len());
        let mut names = Vec::with_capacity(outputs);
        for output in 0..outputs {
            names.push(self.free_name(region.kind.name(), self.node_count + output));
        }
        let made = self.builder.node(NodeKind::Region(Box::new(region)), ins, &names)?;
        self.node_count += outputs;
        self.names.extend(names);
        Ok(made)
    }

    /// An expression of operands, whose result has their element type.
    pub(super) fn map(&mut self, what: &'static str, expr: Expr, ins: &[ValueId]) -> KernelGraphResult {
        let dtype = self.common(what, ins)?;
        let expr = if dtype == DType::F32 { expr } else { expr.cast(dtype) };
        self.op(Map { expr }, ins)
    }

    /// A value as f32.
    pub(super) fn widened(&mut self, what: &'static str, a: ValueId) -> KernelGraphResult {
        self.cast(what, a, DType::F32)
    }

    /// Whether a value is a weight as it was declared.
    pub(super) fn is_weight(&self, what: &'static str, a: ValueId) -> Result<bool, GraphError> {
        Ok(self.value(what, a)?.source == ValueSource::Weight)
    }

    /// A value as another element type.
    pub(super) fn cast(&mut self, what: &'static str, a: ValueId, to: DType) -> KernelGraphResult {
        if self.ty(what, a)?.dtype == to {
            return Ok(a);
        }
        self.op(Map { expr: Expr::input(0).cast(to) }, &[a])
    }

    /// A value in another shape of as many elements.
    pub(super) fn reshaped(&mut self, what: &'static str, a: ValueId, dims: &[u32]) -> KernelGraphResult {
        if sizes(self.ty(what, a)?) == dims {
            return Ok(a);
        }
        self.op(View { form: ViewForm::Reshape(dims.iter().map(|&n| Dim::Const(n)).collect()) }, &[a])
    }

    /// The nodes of a general form, whose inputs are `ins`.
    pub(super) fn inlined(&mut self, form: &Graph, ins: &[ValueId]) -> KernelGraphResult {
        let mut is: Vec<Option<ValueId>> = vec![None; form.values.len()];
        form.inputs.iter().zip(ins).for_each(|(id, &given)| is[id.index()] = Some(given));
        for node in &form.nodes {
            let ins: Option<Vec<ValueId>> = node.ins.iter().map(|i| is[i.index()]).collect();
            let (NodeKind::Op(op), Some(ins), [out]) = (&node.kind, ins, &node.outs[..]) else { break };
            is[out.index()] = Some(self.op(op.clone(), &ins)?);
        }
        let made = form.outputs.first().and_then(|o| is[o.index()]);
        Ok(made.unwrap_or_else(|| unreachable!("general forms are verified graphs of ops with one output")))
    }

    fn free_name(&self, stem: &str, from: usize) -> String {
        let mut number = from;
        loop {
            let name = format!("{stem}{number}");
            if !self.names.contains(&name) {
                return name;
            }
            number += 1;
        }
    }
}

/// Which of `rank` dimensions `dim` is: below 0 they are counted from the last one, which is -1, as NumPy and PyTorch do.
/// None where there is no such dimension.
pub fn axis(rank: usize, dim: i64) -> Option<usize> {
    let from_first = if dim < 0 { dim.checked_add_unsigned(rank as u64)? } else { dim };
    usize::try_from(from_first).ok().filter(|&dim| dim < rank)
}

/// Sizes of a type; those of kernel graphs are all fixed.
pub(super) fn sizes(ty: &Type) -> Vec<u32> {
    let size = |dim: &Dim| match dim {
        Dim::Const(n) => *n,
        Dim::Sym(sym) => unreachable!("{} in a kernel graph, whose inputs have fixed sizes", sym.name()),
    };
    ty.shape.iter().map(size).collect()
}

/// The product of sizes, where it is one.
pub(super) fn product(what: &'static str, ty: &Type, dims: &[u32]) -> Result<u32, GraphError> {
    let product = dims.iter().try_fold(1u32, |n, &d| n.checked_mul(d));
    product.ok_or_else(|| too_large(what, ty))
}

pub(super) fn operands(what: &'static str, types: &[&Type], wanted: impl Into<String>) -> GraphError {
    let given: Vec<String> = types.iter().map(|t| t.to_string()).collect();
    GraphError::Operands { what, given: given.join(", "), wanted: wanted.into() }
}

fn too_large(what: &'static str, ty: &Type) -> GraphError {
    GraphError::Unsupported {
        what: format!("{what} of {ty}"),
        why: "dimensions that are taken together have 2^32 elements or more".into(),
    }
}

/// Strides of an input, none for row-major ones.
fn strides_of(dims: &[u32], given: Option<&[u32]>) -> Result<Option<Vec<u32>>, GraphError> {
    let Some(given) = given else { return Ok(None) };
    let (rows, columns) = (row_major(dims), column_major(dims));
    match Some(given) {
        given if given == rows.as_deref() => Ok(None),
        given if given == columns.as_deref() => Ok(columns),
        _ => {
            let text = |strides: &Option<Vec<u32>>| strides.as_ref().map_or("none".into(), |s| format!("{s:?}"));
            let wanted = format!("{} (row-major) or {} (column-major)", text(&rows), text(&columns));
            Err(GraphError::Strides { dims: dims.to_vec(), given: given.to_vec(), wanted })
        }
    }
}

/// Whether these are the strides that a result of this type has.
fn dense_strides(ty: &Type, given: &[u32]) -> Result<(), GraphError> {
    let rank = ty.shape.len();
    if given.len() != rank {
        let (what, argument) = ("mark_output", "strides");
        let given = format!("{given:?} for {rank} dimensions");
        return Err(GraphError::Argument { what, argument, given, wanted: "a stride for each dimension" });
    }
    let possible = row_major(&sizes(ty));
    if possible.as_deref() == Some(given) {
        return Ok(());
    }
    Err(GraphError::Unsupported {
        what: format!("mark_output of {ty} with strides {given:?}"),
        why: format!(
            "results lie dense in row-major order: strides {:?} are possible; mark `permute` of the value for another order, and \
             copy the result into a padded array",
            possible.unwrap_or_default()
        ),
    })
}

/// None where a stride is no number.
fn row_major(dims: &[u32]) -> Option<Vec<u32>> {
    let turned: Vec<u32> = dims.iter().rev().copied().collect();
    let mut strides = column_major(&turned)?;
    strides.reverse();
    Some(strides)
}

fn column_major(dims: &[u32]) -> Option<Vec<u32>> {
    let mut strides = Vec::with_capacity(dims.len());
    let mut next = Some(1u32);
    for &n in dims {
        strides.push(next?);
        next = next.and_then(|s| s.checked_mul(n));
    }
    Some(strides)
}
