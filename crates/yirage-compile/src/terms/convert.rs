//! Graphs become terms and terms graphs: maps are taken apart into single functions, and put together again on the way back.

use super::{MapArg, MapFunc, SearchTerm, TermKind, Terms, Val};
use std::collections::{HashMap, HashSet};
use yirage_ir::op::Map;
use yirage_ir::{BuildError, Expr, Graph, GraphBuilder, NodeKind, Op, Type, ValueId, ValueSource};

/// The terms of a graph's outputs for these inputs; nothing where a node does not take what it would read.
pub fn inline(graph: &Graph, inputs: &[Val], terms: &mut Terms) -> Option<Vec<Val>> {
    let mut is: HashMap<ValueId, Val> = graph.inputs.iter().copied().zip(inputs.iter().copied()).collect();
    for node in &graph.nodes {
        let args = node.ins.iter().map(|i| is.get(i).copied()).collect::<Option<Vec<_>>>()?;
        if let NodeKind::Op(Op::Map(map)) = &node.kind
            && let Some(v) = terms.steps(&map.expr, &args)
        {
            is.insert(node.outs[0], v);
            continue;
        }
        let term = terms.node(node.kind.clone(), &args)?;
        let outs = node.outs.iter().enumerate();
        is.extend(outs.map(|(out, &id)| (id, Val { term, out: out as u32 })));
    }
    graph.outputs.iter().map(|o| is.get(o).copied()).collect()
}

/// What a graph is called by: its name, its inputs and the names of its outputs.
#[derive(Clone, Debug)]
pub struct GraphSignature {
    /// The graph's name.
    pub name: String,
    /// Names, types and sources of what it takes.
    pub inputs: Vec<(String, Type, ValueSource)>,
    /// Names of what it gives.
    pub outputs: Vec<String>,
}

impl GraphSignature {
    /// What `graph` is called by.
    pub fn of(graph: &Graph) -> GraphSignature {
        let input = |&id: &ValueId| {
            let value = graph.value(id);
            (value.name.clone(), value.ty.clone(), value.source)
        };
        GraphSignature {
            name: graph.name.clone(),
            inputs: graph.inputs.iter().map(input).collect(),
            outputs: graph.outputs.iter().map(|&id| graph.value(id).name.clone()).collect(),
        }
    }
}

/// The graph of these outputs, with all inputs of `like` and the names of its outputs.
///
/// # Errors
/// A node that does not take what the terms give it: a mistake of whoever made the terms.
pub fn export(like: &GraphSignature, terms: &Terms, outputs: &[Val], order: &[u32]) -> Result<Graph, BuildError> {
    let mut b = GraphBuilder::new(like.name.clone());
    let mut is: HashMap<Val, ValueId> = HashMap::new();
    let mut inputs = Vec::with_capacity(like.inputs.len());
    for (name, ty, source) in &like.inputs {
        inputs.push(b.declare(name, ty.clone(), *source)?);
    }
    let mut names = ValueNamer::new(like, outputs);
    let groups = Groups::of(terms, outputs, order);
    for &term in order {
        let here = terms.term(Val { term, out: 0 });
        match &here.kind {
            TermKind::Input(at) => drop(is.insert(Val { term, out: 0 }, inputs[*at as usize])),
            TermKind::Node(kind) => {
                let Some(members) = groups.at(term) else { continue };
                if let Some((expr, args)) = groups.expression(terms, term, members) {
                    let ins: Vec<ValueId> = args.iter().map(|v| is[v]).collect();
                    let v = Val { term, out: 0 };
                    is.insert(v, b.op(&names.of(v), Map { expr }, &ins)?);
                    continue;
                }
                // What is too large for one map stays single functions.
                for &member in members.iter().filter(|&&m| m != term) {
                    add_node(&mut b, terms, member, &mut is, &mut names)?;
                }
                add(&mut b, kind, here, term, &mut is, &mut names)?;
            }
        }
    }
    outputs.iter().for_each(|v| b.output(is[v]));
    Ok(b.finish())
}

fn add_node(
    b: &mut GraphBuilder,
    terms: &Terms,
    term: u32,
    is: &mut HashMap<Val, ValueId>,
    names: &mut ValueNamer,
) -> Result<(), BuildError> {
    let here = terms.term(Val { term, out: 0 });
    if let TermKind::Node(kind) = &here.kind { add(b, kind, here, term, is, names) } else { Ok(()) }
}

fn add(
    b: &mut GraphBuilder,
    kind: &NodeKind,
    here: &SearchTerm,
    term: u32,
    is: &mut HashMap<Val, ValueId>,
    names: &mut ValueNamer,
) -> Result<(), BuildError> {
    let ins: Vec<ValueId> = here.args.iter().map(|v| is[v]).collect();
    let vals: Vec<Val> = (0..here.types.len() as u32).map(|out| Val { term, out }).collect();
    let made: Vec<String> = vals.iter().map(|&v| names.of(v)).collect();
    is.extend(vals.into_iter().zip(b.node(kind.clone(), &ins, &made)?));
    Ok(())
}

/// Names of values: outputs keep theirs, the others are numbered.
struct ValueNamer {
    by_value: HashMap<Val, String>,
    taken: HashSet<String>,
    next: u32,
}

impl ValueNamer {
    fn new(like: &GraphSignature, outputs: &[Val]) -> ValueNamer {
        let mut given = HashMap::new();
        for (v, name) in outputs.iter().zip(&like.outputs) {
            given.entry(*v).or_insert_with(|| name.clone());
        }
        let inputs = like.inputs.iter().map(|(name, ..)| name.clone());
        ValueNamer { by_value: given, taken: inputs.chain(like.outputs.iter().cloned()).collect(), next: 0 }
    }

    fn of(&mut self, v: Val) -> String {
        if let Some(name) = self.by_value.get(&v) {
            return name.clone();
        }
        loop {
            self.next += 1;
            let name = format!("s{}", self.next);
            if !self.taken.contains(&name) {
                return name;
            }
        }
    }
}

/// Which functions become one map: those whose values only functions of the same map read.
struct Groups {
    /// For each term that is not inside of another's map, the terms that are made with it, ascending in the order.
    members: HashMap<u32, Vec<u32>>,
}

impl Groups {
    fn of(terms: &Terms, outputs: &[Val], order: &[u32]) -> Groups {
        let value = |term: u32| Val { term, out: 0 };
        let mut readers: HashMap<u32, Vec<u32>> = HashMap::new();
        for &term in order {
            for v in &terms.term(value(term)).args {
                readers.entry(v.term).or_default().push(term);
            }
        }
        let calls: HashSet<u32> = order.iter().copied().filter(|&t| terms.call(value(t)).is_some()).collect();
        // What functions of inputs alone make, nothing but a map could make beside it.
        let mut of_inputs: HashSet<u32> = HashSet::new();
        for &term in order {
            let here = terms.term(value(term));
            let plain = |v: &Val| of_inputs.contains(&v.term);
            if matches!(here.kind, TermKind::Input(_)) || (calls.contains(&term) && here.args.iter().all(plain)) {
                of_inputs.insert(term);
            }
        }
        let mut root: HashMap<u32, u32> = HashMap::new();
        for &term in order.iter().rev() {
            let joined = || {
                let roots: HashSet<Option<u32>> =
                    readers.get(&term)?.iter().map(|r| root.get(r).filter(|_| calls.contains(r)).copied()).collect();
                let one = roots.iter().next().copied().flatten().filter(|_| roots.len() == 1)?;
                let same = terms.shape(value(one)) == terms.shape(value(term));
                (same || of_inputs.contains(&term)).then_some(one)
            };
            let inner = calls.contains(&term) && outputs.iter().all(|v| v.term != term);
            let at = if inner { joined() } else { None };
            root.insert(term, at.unwrap_or(term));
        }
        let mut members: HashMap<u32, Vec<u32>> = HashMap::new();
        order.iter().for_each(|&term| members.entry(root[&term]).or_default().push(term));
        Groups { members }
    }

    fn at(&self, term: u32) -> Option<&[u32]> {
        self.members.get(&term).map(Vec::as_slice)
    }

    /// The expression of a map with everything that is inside of it, and what it reads.
    fn expression(&self, terms: &Terms, root: u32, members: &[u32]) -> Option<(Expr, Vec<Val>)> {
        let mut made: HashMap<u32, Expr> = HashMap::new();
        let mut ins: Vec<Val> = Vec::new();
        for &term in members {
            let call = terms.call(Val { term, out: 0 })?;
            let mut part = |arg: &MapArg| match *arg {
                MapArg::Const(c) => Expr::constant(c),
                MapArg::Val(v) => made.get(&v.term).cloned().unwrap_or_else(|| {
                    let at = ins.iter().position(|&i| i == v).unwrap_or_else(|| {
                        ins.push(v);
                        ins.len() - 1
                    });
                    Expr::input(at as u32)
                }),
            };
            let parts: Vec<Expr> = call.args.iter().map(&mut part).collect();
            let expr = match call.step {
                MapFunc::Func(func) => Expr::call(func, &parts),
                MapFunc::Cast(to) => parts.first()?.cast(to),
            };
            made.insert(term, expr);
        }
        let expr = made.remove(&root)?;
        let dtypes: Vec<_> = ins.iter().map(|&v| terms.ty(v).dtype).collect();
        let fits = |expr: &Expr| expr.terms().len() <= yirage_ir::expr::MAX_TERMS && expr.infer(&dtypes).is_ok();
        // An input that was met inside of a part which folding has dropped is not read any more.
        Some(expr).filter(fits).map(|expr| (expr, ins))
    }
}
