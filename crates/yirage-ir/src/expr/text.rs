//! The text form of expressions: `t0 = exp(x0); div(t0, add(t0, 1.0))`.
//!
//! `x0` is input 0; `1.0` is a float, `1i` and `1u` are whole numbers; `cast.f16(x0)` is a cast. What is read more than
//! once has a name. Printing and parsing round-trip exactly.

use super::{Expr, Func, MAX_TERMS, Scalar, Term};
use crate::attr::AttrValue;
use crate::dtype::DType;
use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// Why a text is no expression.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("no expression: {0}")]
pub struct ExprError(String);

impl AttrValue for Expr {}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::F32(x) => write!(f, "{x}"),
            Scalar::I32(x) => write!(f, "{x}i"),
            Scalar::U32(x) => write!(f, "{x}u"),
            Scalar::Bool(x) => write!(f, "{x}"),
        }
    }
}

impl FromStr for Scalar {
    type Err = ExprError;
    fn from_str(text: &str) -> Result<Scalar, ExprError> {
        let whole = text.strip_suffix('i').and_then(|n| n.parse::<i32>().ok()).map(Scalar::from);
        let whole = whole.or_else(|| text.strip_suffix('u').and_then(|n| n.parse::<u32>().ok()).map(Scalar::from));
        match (text, whole) {
            (_, Some(value)) => Ok(value),
            ("true", _) => Ok(true.into()),
            ("false", _) => Ok(false.into()),
            _ => text.parse::<f32>().map(Scalar::from).map_err(|_| ExprError(format!("`{text}` is no number"))),
        }
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut reads = vec![0usize; self.terms().len()];
        self.terms().iter().flat_map(Term::args).for_each(|&a| reads[a as usize] += 1);
        let mut texts: Vec<String> = Vec::with_capacity(reads.len());
        let mut named = 0;
        for (term, reads) in self.terms().iter().zip(reads) {
            let list = |args: &[u32]| args.iter().map(|&a| texts[a as usize].as_str()).collect::<Vec<_>>().join(", ");
            let text = match term {
                Term::Input(i) => format!("x{i}"),
                Term::Const(value) => value.to_string(),
                Term::Cast(to, _) => format!("cast.{to}({})", list(term.args())),
                Term::Call(func, _) => format!("{}({})", func.name(), list(term.args())),
            };
            if reads > 1 && !term.args().is_empty() {
                write!(f, "t{named} = {text}; ")?;
                texts.push(format!("t{named}"));
                named += 1;
            } else {
                texts.push(text);
            }
        }
        f.write_str(texts.last().map_or("", String::as_str))
    }
}

impl FromStr for Expr {
    type Err = ExprError;
    fn from_str(text: &str) -> Result<Expr, ExprError> {
        let mut names: HashMap<&str, u32> = HashMap::new();
        let mut out = Expr { terms: Vec::new() };
        let mut statements = text.split(';').map(str::trim).peekable();
        while let Some(statement) = statements.next() {
            let last = statements.peek().is_none();
            let (name, body) = match statement.split_once('=') {
                Some((name, body)) if !last => (Some(name.trim()), body),
                None if last => (None, statement),
                _ => return Err(ExprError(format!("`{statement}`: `NAME = TERM;` wanted, and one TERM last"))),
            };
            let mut parser = ExprParser { rest: body.trim(), names: &names, out: &mut out };
            let value = parser.term(0)?;
            parser.end()?;
            let Some(name) = name else { return whole(out.closed(value)) };
            let word = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if !word || leaf(name).is_some() {
                return Err(ExprError(format!("`{name}` cannot name a term")));
            }
            if names.insert(name, value).is_some() {
                return Err(ExprError(format!("two terms are called `{name}`")));
            }
        }
        Err(ExprError("it is empty".into()))
    }
}

fn whole(expr: Expr) -> Result<Expr, ExprError> {
    if expr.terms.len() > MAX_TERMS {
        return Err(ExprError(format!("more than {MAX_TERMS} terms")));
    }
    Ok(expr)
}

struct ExprParser<'a, 'b> {
    rest: &'a str,
    names: &'b HashMap<&'a str, u32>,
    out: &'b mut Expr,
}

impl<'a> ExprParser<'a, '_> {
    fn end(&self) -> Result<(), ExprError> {
        if self.rest.is_empty() { Ok(()) } else { Err(ExprError(format!("`{}` after its end", self.rest))) }
    }

    fn accept(&mut self, c: char) -> bool {
        let Some(rest) = self.rest.strip_prefix(c) else { return false };
        self.rest = rest.trim_start();
        true
    }

    fn word(&mut self) -> Result<&'a str, ExprError> {
        let end = self.rest.find(|c: char| matches!(c, '(' | ')' | ',') || c.is_whitespace());
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        if word.is_empty() {
            return Err(ExprError(format!("a term wanted before `{}`", self.rest)));
        }
        self.rest = rest.trim_start();
        Ok(word)
    }

    /// A term; where it is in the expression. Names and depth are bounded by the number of terms.
    fn term(&mut self, depth: usize) -> Result<u32, ExprError> {
        if depth > MAX_TERMS || self.out.terms.len() > MAX_TERMS {
            return Err(ExprError(format!("more than {MAX_TERMS} terms")));
        }
        let word = self.word()?;
        if !self.accept('(') {
            let leaf = leaf(word).or_else(|| self.names.get(word).map(|&t| Leaf::Named(t)));
            return match leaf.ok_or_else(|| ExprError(format!("`{word}` is no input, number or name")))? {
                Leaf::Term(term) => Ok(self.out.push(term)),
                Leaf::Named(term) => Ok(term),
            };
        }
        let mut args = Vec::new();
        while args.len() < 3 {
            args.push(self.term(depth + 1)?);
            if !self.accept(',') {
                break;
            }
        }
        if !self.accept(')') {
            return Err(ExprError(format!("`)` of `{word}` wanted, `{}` found", self.rest)));
        }
        if let (Some(to), [x]) = (word.strip_prefix("cast."), &args[..]) {
            let to = DType::parse(to).ok_or_else(|| ExprError(format!("there is no dtype `{to}`")))?;
            return Ok(self.out.push(Term::Cast(to, *x)));
        }
        let func = Func::parse(word).filter(|f| f.arity() == args.len());
        let func = func.ok_or_else(|| ExprError(format!("there is no function `{word}` of {} terms", args.len())))?;
        args.resize(3, 0);
        Ok(self.out.push(Term::Call(func, [args[0], args[1], args[2]])))
    }
}

enum Leaf {
    Term(Term),
    Named(u32),
}

fn leaf(word: &str) -> Option<Leaf> {
    if let Some(input) = word.strip_prefix('x') {
        return input.parse().ok().map(|i| Leaf::Term(Term::Input(i)));
    }
    // A name of a term does not read as a number: `t0`.
    word.parse().ok().map(|value| Leaf::Term(Term::Const(value)))
}
