//! Text to graph. The input may be a file from disk: every error is typed and names its line.

use super::lexer::{GraphToken, tokens};
use super::version::{OUTDATED, outdated_word};
use crate::activation::ActivationFormat;
use crate::dim::{Dim, Sym};
use crate::dtype::DType;
use crate::graph::{Graph, GraphBuilder, NodeKind, ValueId, ValueSource};
use crate::op::Op;
use crate::region::{Region, RegionKind, Tiled};
use crate::types::{MAX_RANK, Type};
use crate::verify::MAX_REGION_DEPTH;
use std::collections::HashMap;
use thiserror::Error;

/// Why a text is not a graph.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("line {line}: {what}")]
pub struct ParseError {
    /// Line, from 1.
    pub line: usize,
    /// What was wanted or is wrong.
    pub what: String,
}

/// Most values a parsed graph may have.
const MAX_VALUES: usize = 1 << 20;

/// Parses the text form of a graph.
pub fn parse(text: &str) -> Result<Graph, ParseError> {
    let mut parser = GraphParser { tokens: tokens(text), at: 0 };
    let graph = parser.graph(0)?;
    match parser.peek() {
        None => Ok(graph),
        Some(t) => Err(parser.error(format!("`{t}` after the end of the graph"))),
    }
}

/// Parses the text form of a type, the inverse of its `Display`.
pub fn parse_type(text: &str) -> Result<Type, ParseError> {
    let mut parser = GraphParser { tokens: tokens(text), at: 0 };
    let ty = parser.ty()?;
    ty.check().map_err(|e| parser.error(e.to_string()))?;
    match parser.peek() {
        None => Ok(ty),
        Some(t) => Err(parser.error(format!("`{t}` after the end of the type"))),
    }
}

struct GraphParser<'a> {
    tokens: Vec<GraphToken<'a>>,
    at: usize,
}

type ValueNames = HashMap<String, ValueId>;

impl<'a> GraphParser<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.tokens.get(self.at).map(|t| t.text)
    }

    fn line(&self) -> usize {
        self.tokens.get(self.at).or(self.tokens.last()).map_or(1, |t| t.line)
    }

    fn error(&self, what: impl Into<String>) -> ParseError {
        ParseError { line: self.line(), what: what.into() }
    }

    fn next(&mut self) -> Result<&'a str, ParseError> {
        let text = self.peek().ok_or_else(|| self.error("the text ends too early"))?;
        self.at += 1;
        Ok(text)
    }

    fn expect(&mut self, want: &str) -> Result<(), ParseError> {
        match self.peek() {
            Some(got) if got == want => {
                self.at += 1;
                Ok(())
            }
            got => Err(self.error(format!("`{want}` wanted, `{}` found", got.unwrap_or("end of text")))),
        }
    }

    fn accept(&mut self, want: &str) -> bool {
        let hit = self.peek() == Some(want);
        self.at += usize::from(hit);
        hit
    }

    fn graph(&mut self, depth: usize) -> Result<Graph, ParseError> {
        if depth > MAX_REGION_DEPTH {
            return Err(self.error(format!("regions nest deeper than {MAX_REGION_DEPTH}")));
        }
        self.expect("graph")?;
        let mut builder = GraphBuilder::new(self.next()?);
        let mut names = ValueNames::new();
        self.expect("{")?;
        while !self.accept("}") {
            if names.len() > MAX_VALUES {
                return Err(self.error(format!("more than {MAX_VALUES} values")));
            }
            self.statement(&mut builder, &mut names, depth)?;
        }
        Ok(builder.finish())
    }

    fn statement(
        &mut self,
        builder: &mut GraphBuilder,
        names: &mut ValueNames,
        depth: usize,
    ) -> Result<(), ParseError> {
        let word = self.peek();
        let source = match word {
            Some("input") => ValueSource::StepInput,
            Some("weight") => ValueSource::Weight,
            Some("kv_cache") => ValueSource::KvCache,
            Some("output") => {
                self.at += 1;
                for id in self.operands(names)? {
                    builder.output(id);
                }
                return Ok(());
            }
            _ => {
                return match word.and_then(|word| outdated_word(&OUTDATED, word)) {
                    Some(why) => Err(self.error(why)),
                    None => self.node(builder, names, depth),
                };
            }
        };
        self.at += 1;
        let name = self.name()?;
        self.expect(":")?;
        let ty = self.ty()?;
        let id = builder.declare(&name, ty, source).map_err(|e| self.error(e.to_string()))?;
        names.insert(name, id);
        Ok(())
    }

    fn name(&mut self) -> Result<String, ParseError> {
        self.expect("%")?;
        Ok(self.next()?.to_string())
    }

    fn operands(&mut self, names: &ValueNames) -> Result<Vec<ValueId>, ParseError> {
        let mut ids = Vec::new();
        loop {
            let name = self.name()?;
            ids.push(*names.get(&name).ok_or_else(|| self.error(format!("nothing is called `%{name}`")))?);
            if !self.accept(",") {
                return Ok(ids);
            }
        }
    }

    fn node(&mut self, builder: &mut GraphBuilder, names: &mut ValueNames, depth: usize) -> Result<(), ParseError> {
        let mut outs = vec![self.name()?];
        while self.accept(",") {
            outs.push(self.name()?);
        }
        self.expect("=")?;
        let op = self.next()?;
        let kind = if op == "region" { Some(self.region_kind()?) } else { None };
        let has_attrs = kind.is_none_or(|kind| kind == RegionKind::Tiled);
        let attrs = if has_attrs { self.attrs()? } else { Vec::new() };
        self.expect("(")?;
        let ins = if self.peek() == Some(")") { Vec::new() } else { self.operands(names)? };
        self.expect(")")?;
        self.expect(":")?;
        let mut types = vec![self.ty()?];
        while self.accept(",") {
            types.push(self.ty()?);
        }
        let kind = match kind {
            Some(kind) => NodeKind::Region(Box::new(self.region(kind, attrs, depth + 1)?)),
            None => match Op::from_attrs(op, attrs) {
                None => return Err(self.error(format!("there is no op `{op}`"))),
                Some(made) => NodeKind::Op(made.map_err(|e| self.error(format!("{op}: {e}")))?),
            },
        };
        let ids = builder.node(kind, &ins, &outs).map_err(|e| self.error(e.to_string()))?;
        for ((id, name), ty) in ids.into_iter().zip(outs).zip(types) {
            if *builder.ty(id) != ty {
                return Err(self.error(format!("`%{name}` is declared {ty} but is {}", builder.ty(id))));
            }
            names.insert(name, id);
        }
        Ok(())
    }

    fn region_kind(&mut self) -> Result<RegionKind, ParseError> {
        let name = self.next()?;
        let unknown =
            || outdated_word(&OUTDATED, name).unwrap_or_else(|| format!("there is no kind of region `{name}`"));
        RegionKind::parse(name).ok_or_else(|| self.error(unknown()))
    }

    fn region(&mut self, kind: RegionKind, attrs: Vec<(String, String)>, depth: usize) -> Result<Region, ParseError> {
        let graph = self.graph(depth)?;
        if kind != RegionKind::Tiled {
            return Ok(Region::new(kind, graph));
        }
        let block = self.graph(depth)?;
        let tiled = Tiled::from_attrs(attrs, block).map_err(|e| self.error(format!("region {}: {e}", kind.name())))?;
        Ok(Region::tiled(graph, tiled))
    }

    fn attrs(&mut self) -> Result<Vec<(String, String)>, ParseError> {
        let mut list = Vec::new();
        if !self.accept("{") {
            return Ok(list);
        }
        loop {
            let name = self.next()?.to_string();
            self.expect("=")?;
            list.push((name, self.next()?.to_string()));
            if self.accept("}") {
                return Ok(list);
            }
            self.expect(",")?;
        }
    }

    fn ty(&mut self) -> Result<Type, ParseError> {
        let name = self.next()?;
        let layout = ActivationFormat::parse(name);
        let dtype = layout.map(|layout| layout.info().dtype).or_else(|| DType::parse(name));
        let dtype = dtype.ok_or_else(|| self.error(format!("there is no dtype `{name}`")))?;
        let shape = self.list(|p| {
            let text = p.next()?;
            let sym = Sym::ALL.into_iter().find(|s| s.name() == text).map(Dim::Sym);
            let dim = sym.or_else(|| text.parse().ok().map(Dim::Const));
            dim.ok_or_else(|| p.error(format!("`{text}` is no dimension")))
        })?;
        let strides = if self.accept("/") {
            Some(self.list(|p| {
                let text = p.next()?;
                text.parse().map_err(|_| p.error(format!("`{text}` is no stride")))
            })?)
        } else {
            None
        };
        Ok(Type { dtype, shape, strides, activation_format: layout })
    }

    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Result<T, ParseError>) -> Result<Vec<T>, ParseError> {
        self.expect("[")?;
        let mut out = Vec::new();
        while !self.accept("]") {
            if out.len() >= MAX_RANK {
                return Err(self.error(format!("more than {MAX_RANK} dimensions")));
            }
            if !out.is_empty() {
                self.expect(",")?;
            }
            out.push(item(self)?);
        }
        Ok(out)
    }
}
