//! Element-wise expressions: what a [`map`](crate::op::Map) computes of one element of each input.
//!
//! An expression is a list of terms without cycles. Floats are computed with as f32, each function rounded once; f16 and
//! bf16 exist where values come in and where a cast makes them, so a result is narrow only where the expression says so.
//! Whole numbers wrap around. Deliberately unknown here: shapes, tensors, how terms are evaluated fast.

mod bound;
mod func;
mod text;
mod value;

pub use bound::Bounded;
pub use func::{Func, gelu_erf, gelu_tanh, is_float, silu};
pub use text::ExprError;
pub use value::Scalar;

use crate::dtype::DType;
use crate::quant::Format;
use crate::types::TypeError;
use func::Signature;

/// Most inputs of an expression.
pub const MAX_INPUTS: usize = 16;
/// Most terms of an expression.
pub const MAX_TERMS: usize = 256;

/// One value within an expression. Numbers name earlier terms.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Term {
    /// An element of input `0`.
    Input(u32),
    /// A constant.
    Const(Scalar),
    /// The value of a term as another type.
    Cast(DType, u32),
    /// A function of terms; those past its number of arguments are 0.
    Call(Func, [u32; 3]),
}

impl Term {
    /// The terms it reads.
    pub fn args(&self) -> &[u32] {
        match self {
            Term::Input(_) | Term::Const(_) => &[],
            Term::Cast(_, x) => std::slice::from_ref(x),
            Term::Call(func, args) => &args[..func.arity()],
        }
    }

    fn renamed(self, name: impl Fn(u32) -> u32) -> Term {
        match self {
            Term::Cast(to, x) => Term::Cast(to, name(x)),
            Term::Call(func, mut args) => {
                args[..func.arity()].iter_mut().for_each(|a| *a = name(*a));
                Term::Call(func, args)
            }
            leaf => leaf,
        }
    }
}

/// An expression: terms of which each reads earlier ones only; the last one is the result. No two terms are equal, and
/// the result depends on each.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Expr {
    terms: Vec<Term>,
}

impl Expr {
    /// An element of input `i`.
    pub fn input(i: u32) -> Expr {
        Expr { terms: vec![Term::Input(i)] }
    }

    /// A constant.
    pub fn constant(value: impl Into<Scalar>) -> Expr {
        Expr { terms: vec![Term::Const(value.into().canonical())] }
    }

    /// A function of expressions.
    ///
    /// # Panics
    /// If the number of arguments is not the function's, which is a bug of the caller.
    pub fn call(func: Func, args: &[Expr]) -> Expr {
        assert_eq!(args.len(), func.arity(), "arguments of {}", func.name());
        let mut out = Expr { terms: Vec::new() };
        let mut names = [0; 3];
        for (name, arg) in names.iter_mut().zip(args) {
            *name = out.absorb(arg);
        }
        out.push(Term::Call(func, names));
        out
    }

    /// `func(x0)`.
    pub fn unary(func: Func) -> Expr {
        Expr::call(func, &[Expr::input(0)])
    }

    /// `func(x0, x1)`.
    pub fn binary(func: Func) -> Expr {
        Expr::call(func, &[Expr::input(0), Expr::input(1)])
    }

    /// The same as another type.
    #[must_use]
    pub fn cast(&self, to: DType) -> Expr {
        let mut out = self.clone();
        let last = out.terms.len() as u32 - 1;
        out.push(Term::Cast(to, last));
        out
    }

    /// The expression with another one in place of each input.
    #[must_use]
    pub fn substitute(&self, with: impl Fn(u32) -> Expr) -> Expr {
        let mut out = Expr { terms: Vec::new() };
        let mut names: Vec<u32> = Vec::with_capacity(self.terms.len());
        for &term in &self.terms {
            let name = match term {
                Term::Input(i) => out.absorb(&with(i)),
                term => out.push(term.renamed(|t| names[t as usize])),
            };
            names.push(name);
        }
        out.closed(names[names.len() - 1])
    }

    /// The terms, the result last.
    pub fn terms(&self) -> &[Term] {
        &self.terms
    }

    /// One more than the highest number of an input.
    pub fn inputs(&self) -> usize {
        let highest =
            self.terms.iter().filter_map(|t| if let Term::Input(i) = t { Some(*i as usize + 1) } else { None });
        highest.max().unwrap_or(0)
    }

    /// The types of all terms for inputs of these types.
    ///
    /// # Errors
    /// The first term that its arguments do not fit; too many terms or inputs; an input that is not read.
    pub fn infer(&self, ins: &[DType]) -> Result<Vec<DType>, TypeError> {
        let (terms, inputs) = (self.terms.len(), self.inputs());
        if terms > MAX_TERMS || inputs > MAX_INPUTS {
            let most = format!("{MAX_TERMS} terms of {MAX_INPUTS} inputs are the most");
            return Err(TypeError::new(format!("an expression of {terms} terms and {inputs} inputs: {most}")));
        }
        if inputs > ins.len() {
            return Err(TypeError::new(format!("the expression reads {inputs} inputs, {} are given", ins.len())));
        }
        if let Some(i) = (0..ins.len()).find(|&i| !self.terms.contains(&Term::Input(i as u32))) {
            return Err(TypeError::new(format!("the expression does not read input {i}")));
        }
        let mut types = Vec::with_capacity(terms);
        for term in &self.terms {
            types.push(infer_term(term, ins, &types)?);
        }
        Ok(types)
    }

    /// Takes the terms of another expression in; where its result is now.
    fn absorb(&mut self, other: &Expr) -> u32 {
        let mut names: Vec<u32> = Vec::with_capacity(other.terms.len());
        for &term in &other.terms {
            names.push(self.push(term.renamed(|t| names[t as usize])));
        }
        names[names.len() - 1]
    }

    /// Adds a term, or finds it.
    fn push(&mut self, term: Term) -> u32 {
        let found = self.terms.iter().position(|t| *t == term);
        found.unwrap_or_else(|| {
            self.terms.push(term);
            self.terms.len() - 1
        }) as u32
    }

    /// Only the terms that `result` depends on, it last, each behind its arguments, which come in their order: equal
    /// expressions have equal lists.
    fn closed(self, result: u32) -> Expr {
        let mut names: Vec<Option<u32>> = vec![None; self.terms.len()];
        let name = |names: &[Option<u32>], t: u32| names[t as usize].unwrap_or(0);
        let mut terms = Vec::new();
        let mut open = vec![result];
        while let Some(&at) = open.last() {
            let term = self.terms[at as usize];
            let done = open.len();
            open.extend(term.args().iter().rev().filter(|&&a| names[a as usize].is_none()));
            if open.len() > done {
                continue;
            }
            open.pop();
            if names[at as usize].is_none() {
                let renamed = term.renamed(|t| name(&names, t));
                names[at as usize] = Some(terms.len() as u32);
                terms.push(renamed);
            }
        }
        Expr { terms }
    }
}

/// Types that an expression computes with.
fn scalar(dtype: DType) -> bool {
    is_float(dtype) || matches!(dtype, DType::I32 | DType::U32 | DType::Bool)
}

fn infer_term(term: &Term, ins: &[DType], types: &[DType]) -> Result<DType, TypeError> {
    match term {
        Term::Input(i) => match ins[*i as usize] {
            dtype if scalar(dtype) => Ok(dtype),
            other => Err(TypeError::new(format!("input {i} is {other}: f32, f16, bf16, i32, u32 or bool wanted"))),
        },
        Term::Const(value) => Ok(value.dtype()),
        Term::Cast(to, _) if scalar(*to) => Ok(*to),
        Term::Cast(to, _) => Err(TypeError::new(format!("nothing is cast to {to}"))),
        Term::Call(func, args) => infer_call(*func, &args.map(|a| types[a as usize])[..func.arity()]),
    }
}

/// The type that values of these types are computed in together, if there is one.
fn common(types: &[DType]) -> Option<DType> {
    if types.iter().all(|&t| is_float(t)) {
        return Some(DType::Stored(Format::F32));
    }
    types.iter().all(|t| t == &types[0]).then_some(types[0])
}

fn infer_call(func: Func, args: &[DType]) -> Result<DType, TypeError> {
    let wrong = || {
        let list: Vec<&str> = args.iter().map(|t| t.name()).collect();
        TypeError::new(format!("{}({}) is not defined", func.name(), list.join(", ")))
    };
    let chosen = if func.signature() == Signature::Choose { &args[1..] } else { args };
    let kind = common(chosen).ok_or_else(wrong)?;
    let fits = match func.signature() {
        Signature::Floats => is_float(kind),
        Signature::Numbers => kind != DType::Bool && !(kind == DType::U32 && func == Func::Neg),
        Signature::Compare => kind != DType::Bool || matches!(func, Func::Equal | Func::NotEqual),
        Signature::Choose => args[0] == DType::Bool,
    };
    match func.signature() {
        _ if !fits => Err(wrong()),
        Signature::Compare => Ok(DType::Bool),
        _ => Ok(kind),
    }
}
