//! Terms: another form of a graph, for those who look at many graphs. Each term stands once, so equal subgraphs of all graphs that are looked at
//! are the same number, and comparing two graphs is comparing the numbers of their outputs.
//!
//! Maps are functions of single values here ([`MapCall`]): what is between two functions has a number of its own, and rules
//! need to look at one function at a time. Knows no rule, no cost and no target.

mod convert;
pub mod tiles;

pub use convert::{GraphSignature, export, inline};

use std::collections::HashMap;
use std::rc::Rc;
use yirage_ir::expr::{Func, Scalar, Term as ExprTerm};
use yirage_ir::op::{Map, View, ViewForm};
use yirage_ir::{DType, Dim, Expr, NodeKind, Op, Type};

/// An output of a term.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Val {
    /// The term.
    pub term: u32,
    /// Which of its outputs.
    pub out: u32,
}

/// What a term is.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum TermKind {
    /// An input of the graph, by its place among them.
    Input(u32),
    /// A node.
    Node(NodeKind),
}

/// A node with what it reads, or an input.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SearchTerm {
    /// What it is.
    pub kind: TermKind,
    /// What it reads.
    pub args: Vec<Val>,
    /// The types of its outputs.
    pub types: Vec<Type>,
}

/// What a function reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MapArg {
    /// A value, element by element.
    Val(Val),
    /// A constant.
    Const(Scalar),
}

impl MapArg {
    /// The value; none where it is a constant.
    pub fn val(self) -> Option<Val> {
        if let MapArg::Val(v) = self { Some(v) } else { None }
    }

    /// The constant, where it is an f32.
    pub fn float(self) -> Option<f32> {
        if let MapArg::Const(Scalar::F32(x)) = self { Some(x.0) } else { None }
    }
}

impl From<Val> for MapArg {
    fn from(v: Val) -> MapArg {
        MapArg::Val(v)
    }
}

impl From<f32> for MapArg {
    fn from(x: f32) -> MapArg {
        MapArg::Const(x.into())
    }
}

/// What a map of one step computes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MapFunc {
    /// A function.
    Func(Func),
    /// A conversion.
    Cast(DType),
}

/// A map of one step.
#[derive(Clone, PartialEq, Debug)]
pub struct MapCall {
    /// What it computes.
    pub step: MapFunc,
    /// Of what.
    pub args: Vec<MapArg>,
}

/// All terms. A term reads earlier ones only.
#[derive(Default)]
pub struct Terms {
    terms: Vec<Rc<SearchTerm>>,
    // Only looked up in, never walked.
    index: HashMap<Rc<SearchTerm>, u32>,
}

impl Terms {
    /// The term of a value.
    pub fn term(&self, v: Val) -> &SearchTerm {
        &self.terms[v.term as usize]
    }

    /// The type of a value.
    pub fn ty(&self, v: Val) -> &Type {
        &self.term(v).types[v.out as usize]
    }

    /// Its shape.
    pub fn shape(&self, v: Val) -> &[Dim] {
        &self.ty(v).shape
    }

    /// Its number of dimensions.
    pub fn rank(&self, v: Val) -> usize {
        self.ty(v).shape.len()
    }

    fn intern(&mut self, term: SearchTerm) -> u32 {
        let term = Rc::new(term);
        if let Some(&known) = self.index.get(&term) {
            return known;
        }
        let id = self.terms.len() as u32;
        self.terms.push(term.clone());
        self.index.insert(term, id);
        id
    }

    /// The input of a graph at a place.
    pub fn input(&mut self, at: u32, ty: Type) -> Val {
        Val { term: self.intern(SearchTerm { kind: TermKind::Input(at), args: Vec::new(), types: vec![ty] }), out: 0 }
    }

    /// A node; nothing where it does not take what it would read.
    pub fn node(&mut self, kind: NodeKind, args: &[Val]) -> Option<u32> {
        let types: Vec<Type> = args.iter().map(|&v| self.ty(v).clone()).collect();
        let outs = match &kind {
            NodeKind::Op(op) => op.infer(&types.iter().map(Type::dense).collect::<Vec<_>>()),
            NodeKind::Region(region) => region.infer(&types),
        };
        let types = outs.ok().filter(|outs| outs.iter().all(|ty| ty.check().is_ok()))?;
        Some(self.intern(SearchTerm { kind: TermKind::Node(kind), args: args.to_vec(), types }))
    }

    /// An op with one output.
    pub fn op(&mut self, op: impl Into<Op>, args: &[Val]) -> Option<Val> {
        let term = self.node(NodeKind::Op(op.into()), args)?;
        Some(Val { term, out: 0 })
    }

    /// The op that makes a value alone, and what it reads.
    pub fn producing_op(&self, v: Val) -> Option<(&Op, &[Val])> {
        let term = self.term(v);
        match &term.kind {
            TermKind::Node(NodeKind::Op(op)) if term.types.len() == 1 => Some((op, &term.args)),
            _ => None,
        }
    }

    /// The two sides of a contraction.
    pub fn contract(&self, v: Val) -> Option<(Val, Val)> {
        match self.producing_op(v)? {
            (Op::Contract(_), &[a, b]) => Some((a, b)),
            _ => None,
        }
    }

    /// A view's form and what it sees.
    pub fn view(&self, v: Val) -> Option<(&ViewForm, Val)> {
        match self.producing_op(v)? {
            (Op::View(view), &[x]) => Some((&view.form, x)),
            _ => None,
        }
    }

    /// A map of one step. A map of more steps is none: its expression could not be taken apart.
    pub fn call(&self, v: Val) -> Option<MapCall> {
        let (Op::Map(map), args) = self.producing_op(v)? else { return None };
        let (last, leaves) = map.expr.terms().split_last()?;
        let leaf = |&at: &u32| match leaves.get(at as usize)? {
            ExprTerm::Input(i) => Some(MapArg::Val(*args.get(*i as usize)?)),
            ExprTerm::Const(c) => Some(MapArg::Const(*c)),
            _ => None,
        };
        let args = last.args().iter().map(leaf).collect::<Option<Vec<_>>>()?;
        match last {
            ExprTerm::Call(func, _) => Some(MapCall { step: MapFunc::Func(*func), args }),
            ExprTerm::Cast(to, _) => Some(MapCall { step: MapFunc::Cast(*to), args }),
            _ => None,
        }
    }

    /// What one function reads, where a value is made by it.
    pub fn func(&self, v: Val, func: Func) -> Option<Vec<MapArg>> {
        self.call(v).filter(|call| call.step == MapFunc::Func(func)).map(|call| call.args)
    }

    /// The one value that a function of one argument reads.
    pub fn unary(&self, v: Val, func: Func) -> Option<Val> {
        self.func(v, func)?.first()?.val()
    }

    /// One step of constants is one.
    fn constant(step: MapFunc, args: &[Scalar]) -> Scalar {
        let args: Vec<Expr> = args.iter().map(|&c| Expr::constant(c)).collect();
        match step {
            MapFunc::Func(func) => Expr::call(func, &args).eval(&[]),
            MapFunc::Cast(to) => args[0].cast(to).eval(&[]),
        }
    }

    /// A map of one step; nothing where it is not defined for them. Arguments of functions that commute have one order.
    pub fn step(&mut self, step: MapFunc, args: &[MapArg]) -> Option<MapArg> {
        let constants: Vec<Scalar> =
            args.iter().filter_map(|a| if let MapArg::Const(c) = a { Some(*c) } else { None }).collect();
        if constants.len() == args.len() {
            let dtypes: Vec<DType> = Vec::new();
            let parts: Vec<Expr> = constants.iter().map(|&c| Expr::constant(c)).collect();
            let expr = match step {
                MapFunc::Func(func) => Expr::call(func, &parts),
                MapFunc::Cast(to) => parts.first()?.cast(to),
            };
            return expr.infer(&dtypes).ok().map(|_| MapArg::Const(Terms::constant(step, &constants)));
        }
        let mut args = args.to_vec();
        if matches!(step, MapFunc::Func(Func::Add | Func::Mul | Func::Min | Func::Max | Func::Equal | Func::NotEqual)) {
            // Constants last, else in the order in which they were met.
            args.sort_by_key(|a| (a.val().is_none(), a.val()));
        }
        let mut ins: Vec<Val> = Vec::new();
        let mut part = |arg: &MapArg| match *arg {
            MapArg::Const(c) => Expr::constant(c),
            MapArg::Val(v) => {
                let at = ins.iter().position(|&i| i == v).unwrap_or_else(|| {
                    ins.push(v);
                    ins.len() - 1
                });
                Expr::input(at as u32)
            }
        };
        let parts: Vec<Expr> = args.iter().map(&mut part).collect();
        let expr = match step {
            MapFunc::Func(func) => Expr::call(func, &parts),
            MapFunc::Cast(to) => parts.first()?.cast(to),
        };
        self.op(Map { expr }, &ins).map(MapArg::Val)
    }

    /// A function of values and constants; nothing where it is not defined for them, or is a constant.
    pub fn map(&mut self, func: Func, args: &[MapArg]) -> Option<Val> {
        self.step(MapFunc::Func(func), args)?.val()
    }

    /// A function of two.
    pub fn map2(&mut self, func: Func, a: impl Into<MapArg>, b: impl Into<MapArg>) -> Option<Val> {
        self.map(func, &[a.into(), b.into()])
    }

    /// A map taken apart into single steps, if the value stays what it is.
    pub fn steps(&mut self, expr: &Expr, args: &[Val]) -> Option<Val> {
        let whole = self.op(Map { expr: expr.clone() }, args)?;
        let mut made: Vec<MapArg> = Vec::with_capacity(expr.terms().len());
        for term in expr.terms() {
            let of: Vec<MapArg> = term.args().iter().map(|&a| made[a as usize]).collect();
            made.push(match term {
                ExprTerm::Input(i) => MapArg::Val(*args.get(*i as usize)?),
                ExprTerm::Const(c) => MapArg::Const(*c),
                ExprTerm::Cast(to, _) => self.step(MapFunc::Cast(*to), &of)?,
                ExprTerm::Call(func, _) => self.step(MapFunc::Func(*func), &of)?,
            });
        }
        let last = made.last()?.val()?;
        (self.ty(last) == self.ty(whole)).then_some(last)
    }

    /// A view of a value; nothing where the value has no such view.
    pub fn add_view(&mut self, form: ViewForm, x: Val) -> Option<Val> {
        self.op(View { form }, &[x])
    }

    /// The terms that some values depend on, each behind those that it reads.
    pub fn reachable(&self, roots: &[Val]) -> Vec<u32> {
        let mut seen = std::collections::HashSet::new();
        let mut order = Vec::new();
        let mut open: Vec<(u32, bool)> = roots.iter().rev().map(|v| (v.term, false)).collect();
        while let Some((term, done)) = open.pop() {
            if done {
                order.push(term);
                continue;
            }
            if seen.insert(term) {
                open.push((term, true));
                open.extend(self.terms[term as usize].args.iter().rev().map(|v| (v.term, false)));
            }
        }
        order
    }

    /// The same outputs with other values in place of some; nothing where a node does not take one of those.
    pub fn replaced(&mut self, outputs: &[Val], order: &[u32], with: &[(Val, Val)]) -> Option<Vec<Val>> {
        let mut is: HashMap<Val, Val> = with.iter().copied().collect();
        for &term in order {
            let old = self.terms[term as usize].clone();
            let args: Vec<Val> = old.args.iter().map(|v| is.get(v).copied().unwrap_or(*v)).collect();
            if args == old.args {
                continue;
            }
            let TermKind::Node(kind) = &old.kind else { continue };
            let new = self.node(kind.clone(), &args)?;
            for out in 0..old.types.len() as u32 {
                is.entry(Val { term, out }).or_insert(Val { term: new, out });
            }
        }
        Some(outputs.iter().map(|v| is.get(v).copied().unwrap_or(*v)).collect())
    }
}
