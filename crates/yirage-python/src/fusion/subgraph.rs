//! Sub-graphs as Python gives them: checked, and each operation with what its name stands for.

use crate::failure::{Class, PyFailure, PyOutcome};
use pyo3::prelude::*;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use yirage_graph::{KernelGraph, OpAttribute};
use yirage_plancache::BoundGraph;

/// Most operations of a sub-graph, with all that registered ones stand for.
const MAX_OPERATIONS: usize = 4096;

/// Most registered sub-graphs within each other: each takes some of the thread's stack.
const MAX_WITHIN: usize = 64;

/// `yirage.SubGraph`.
#[derive(FromPyObject)]
pub(super) struct SubGraph {
    nodes: Vec<OpNode>,
    pub(super) input_names: Vec<String>,
    pub(super) output_names: Vec<String>,
}

/// `yirage.OpNode`.
#[derive(FromPyObject)]
struct OpNode {
    op_type: String,
    inputs: Vec<String>,
    outputs: Vec<String>,
    attrs: Option<Vec<(String, Py<PyAny>)>>,
}

/// What `register_op` gave a name.
pub(super) enum Registered {
    Callable(Py<PyAny>),
    SubGraph(Arc<SubGraph>),
    Graph(Arc<BoundGraph>),
}

/// What computes a step.
pub(super) enum SubgraphWork {
    /// An operation of graphs, and the callable that computes it where no plan can.
    Operation { instead: Option<Py<PyAny>> },
    /// A callable of Python.
    Callable(Py<PyAny>),
    /// A graph that was registered.
    Graph(Arc<BoundGraph>),
}

/// One operation of a sub-graph.
pub(super) struct SubgraphStep {
    pub(super) op: String,
    pub(super) work: SubgraphWork,
    pub(super) inputs: Vec<String>,
    pub(super) outputs: Vec<String>,
    pub(super) attrs: Vec<(String, Py<PyAny>)>,
}

impl SubgraphStep {
    /// Whether so many results are what its outputs name.
    pub(super) fn check_count(&self, results: usize) -> PyOutcome<()> {
        match self.outputs.len() {
            named if named == results => Ok(()),
            named => wrong(format!("{} gives {results} values, and {named} outputs are named", self.op)),
        }
    }

    /// Its attributes, as operations of graphs take them.
    pub(super) fn attributes(&self, py: Python<'_>) -> PyOutcome<Vec<(String, OpAttribute)>> {
        let one = |(name, value): &(String, Py<PyAny>)| {
            let value = value.bind(py);
            // A bool of Python is a number as well.
            let found = if let Ok(flag) = value.extract::<bool>() {
                OpAttribute::Flag(flag)
            } else if let Ok(number) = value.extract::<f64>() {
                OpAttribute::Number(number)
            } else if let Ok(integers) = value.extract::<Vec<i64>>() {
                OpAttribute::Integers(integers)
            } else {
                let text = format!("{}: its attribute `{name}` is {value}: a number, a bool or sizes wanted", self.op);
                return Err(PyFailure::Ours(Class::Graph, text));
            };
            Ok((name.clone(), found))
        };
        self.attrs.iter().map(one).collect()
    }
}

fn wrong<T>(text: String) -> PyOutcome<T> {
    Err(PyFailure::Ours(Class::Graph, text))
}

impl SubGraph {
    /// Whether every name is made once and before it is used.
    ///
    /// # Errors
    /// A `GraphError` that says which is not.
    pub(super) fn check(&self) -> PyOutcome<()> {
        let mut known = HashSet::new();
        for name in &self.input_names {
            if !known.insert(name) {
                return wrong(format!("the sub-graph has two inputs called `{name}`"));
            }
        }
        for OpNode { op_type, inputs, outputs, .. } in &self.nodes {
            if let Some(name) = inputs.iter().find(|name| !known.contains(name)) {
                return wrong(format!(
                    "{op_type} reads `{name}`, which is no input and which no operation before it makes"
                ));
            }
            if outputs.is_empty() {
                return wrong(format!("{op_type} has no output: name what it makes"));
            }
            if let Some(name) = outputs.iter().find(|&name| !known.insert(name)) {
                return wrong(format!(
                    "{op_type} makes `{name}`, which is there already: each name stands for one value"
                ));
            }
        }
        if self.output_names.is_empty() {
            return wrong("the sub-graph has no output: output_names says what it gives back".into());
        }
        match self.output_names.iter().find(|name| !known.contains(name)) {
            Some(name) => {
                wrong(format!("the sub-graph gives `{name}` back, which is no input and which no operation makes"))
            }
            None => Ok(()),
        }
    }

    /// Whether it can stand for an operation: what it gives back is computed, each value once.
    ///
    /// # Errors
    /// As those of [`SubGraph::check`].
    pub(super) fn check_operation(&self) -> PyOutcome<()> {
        self.check()?;
        let mut seen: HashSet<&String> = self.input_names.iter().collect();
        match self.output_names.iter().find(|&name| !seen.insert(name)) {
            Some(name) => wrong(format!("an operation gives `{name}` back, which it was given or gives back already")),
            None => Ok(()),
        }
    }

    /// Its steps, with those of registered sub-graphs in their places.
    ///
    /// # Errors
    /// A `GraphError`: a name that is no operation's, a registered sub-graph that stands for itself, too many operations.
    pub(super) fn steps(&self, py: Python<'_>, ops: &HashMap<String, Registered>) -> PyOutcome<Vec<SubgraphStep>> {
        self.check()?;
        let mut found = SubgraphExpander { py, ops, steps: Vec::new(), within: Vec::new(), expanded: 0 };
        found.add(self, &|name| name.to_owned())?;
        Ok(found.steps)
    }
}

/// Steps as they are found.
struct SubgraphExpander<'a> {
    py: Python<'a>,
    ops: &'a HashMap<String, Registered>,
    steps: Vec<SubgraphStep>,
    /// The registered sub-graphs that it is in.
    within: Vec<String>,
    /// Registered sub-graphs so far, by which their own names are told apart.
    expanded: usize,
}

impl SubgraphExpander<'_> {
    fn add(&mut self, graph: &SubGraph, named: &dyn Fn(&str) -> String) -> PyOutcome<()> {
        for node in &graph.nodes {
            let all = |names: &[String]| names.iter().map(|name| named(name)).collect::<Vec<_>>();
            let (inputs, outputs) = (all(&node.inputs), all(&node.outputs));
            if let Some(Registered::SubGraph(inner)) = self.ops.get(&node.op_type) {
                let inner = inner.clone();
                self.expand(node, &inner, inputs, outputs)?;
                continue;
            }
            let py = self.py;
            let attrs = node.attrs.iter().flatten().map(|(name, value)| (name.clone(), value.clone_ref(py))).collect();
            let op = node.op_type.clone();
            self.steps.push(SubgraphStep { work: self.work(&op)?, op, inputs, outputs, attrs });
            if self.steps.len() > MAX_OPERATIONS {
                return wrong(format!("the sub-graph has more than {MAX_OPERATIONS} operations"));
            }
        }
        Ok(())
    }

    /// The steps of a sub-graph that stands for an operation.
    fn expand(&mut self, node: &OpNode, inner: &SubGraph, inputs: Vec<String>, outputs: Vec<String>) -> PyOutcome<()> {
        let op = &node.op_type;
        let counts =
            [(inner.input_names.len(), inputs.len(), "inputs"), (inner.output_names.len(), outputs.len(), "outputs")];
        if let Some((wanted, given, what)) = counts.into_iter().find(|(wanted, given, _)| wanted != given) {
            return wrong(format!("{op} was registered as a sub-graph of {wanted} {what}, and {given} are named"));
        }
        if let Some((name, _)) = node.attrs.iter().flatten().next() {
            return wrong(format!("{op}: its attribute `{name}`: a sub-graph that was registered has none"));
        }
        if self.within.contains(op) {
            return wrong(format!(
                "{op} was registered as a sub-graph that holds itself: {}",
                self.within.join(" in ")
            ));
        }
        if self.within.len() == MAX_WITHIN {
            return wrong(format!(
                "{op} was registered as a sub-graph and stands within {MAX_WITHIN} others: more are not taken"
            ));
        }
        self.expanded += 1;
        let own = format!("{op}#{}.", self.expanded);
        let outer = inner.input_names.iter().zip(inputs).chain(inner.output_names.iter().zip(outputs));
        let outer: HashMap<&str, String> = outer.map(|(inner, outer)| (inner.as_str(), outer)).collect();
        self.within.push(op.clone());
        self.add(inner, &|name| outer.get(name).cloned().unwrap_or_else(|| format!("{own}{name}")))?;
        self.within.pop();
        Ok(())
    }

    fn work(&self, op: &str) -> PyOutcome<SubgraphWork> {
        let py = self.py;
        let operation = KernelGraph::operations().any(|known| known == op);
        match self.ops.get(op) {
            Some(Registered::Callable(instead)) if operation => {
                Ok(SubgraphWork::Operation { instead: Some(instead.clone_ref(py)) })
            }
            None if operation => Ok(SubgraphWork::Operation { instead: None }),
            Some(Registered::Callable(callable)) => Ok(SubgraphWork::Callable(callable.clone_ref(py))),
            Some(Registered::Graph(graph)) => Ok(SubgraphWork::Graph(graph.clone())),
            _ => {
                let mut known: Vec<&str> = KernelGraph::operations().collect();
                known.extend(self.ops.keys().map(String::as_str));
                known.sort_unstable();
                known.dedup();
                wrong(format!("`{op}` is no operation: register_op gives it a meaning; there are {}", known.join(", ")))
            }
        }
    }
}
