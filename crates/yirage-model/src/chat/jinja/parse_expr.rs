//! Expressions: Jinja's grammar, level by level as its own parser has them.

use std::sync::Arc;

use super::ast::{Binary, Compare, FilterCall, JinjaArg, JinjaExpr, JinjaExprKind, JinjaName, Unary};
use super::fault::{Fault, JinjaResult};
use super::lexer::JinjaToken;
use super::parser::JinjaParser;
use crate::chat::limits;

impl JinjaParser {
    /// A node over children that exist; their depth is bounded here and nowhere else.
    fn node(&self, line: u32, kind: JinjaExprKind) -> JinjaResult<JinjaExpr> {
        let depth = kind.depth() + 1;
        if depth > limits::MAX_EXPRESSION_DEPTH {
            let limit = limits::MAX_EXPRESSION_DEPTH.into();
            return Err(Fault::limit("depth of an expression", limit).at(line));
        }
        Ok(JinjaExpr { line, depth, kind })
    }

    /// One expression.
    pub(super) fn expression(&mut self) -> JinjaResult<JinjaExpr> {
        self.nested(Self::conditional)
    }

    /// Expressions with commas in between: a tuple, or the one expression without a comma. `ends` are names that end
    /// it; `conditional` allows `a if b` within.
    pub(super) fn tuple(&mut self, conditional: bool, ends: &[&str]) -> JinjaResult<JinjaExpr> {
        let line = self.line();
        let mut items = Vec::new();
        let mut commas = false;
        while !self.tuple_ends(ends) {
            items.push(if conditional { self.expression()? } else { self.nested(Self::or)? });
            if !self.skip_op(",") {
                break;
            }
            commas = true;
        }
        match items.pop() {
            Some(only) if !commas => Ok(only),
            Some(last) => {
                items.push(last);
                self.node(line, JinjaExprKind::Tuple(items))
            }
            None => Err(self.unexpected("an expression")),
        }
    }

    fn tuple_ends(&self, ends: &[&str]) -> bool {
        match self.peek() {
            JinjaToken::VariableEnd | JinjaToken::BlockEnd | JinjaToken::End | JinjaToken::Op(")") => true,
            JinjaToken::Name(name) => ends.contains(&name.as_str()),
            _ => false,
        }
    }

    fn conditional(&mut self) -> JinjaResult<JinjaExpr> {
        let mut then = self.or()?;
        while self.is_name("if") {
            let line = self.line();
            self.next();
            let condition = self.or()?;
            let otherwise = if self.skip_name("else") { Some(Box::new(self.expression()?)) } else { None };
            then = self.node(line, JinjaExprKind::If(Box::new(then), Box::new(condition), otherwise))?;
        }
        Ok(then)
    }

    fn or(&mut self) -> JinjaResult<JinjaExpr> {
        let mut left = self.and()?;
        while self.is_name("or") {
            left = self.infix(Binary::Or, left, Self::and)?;
        }
        Ok(left)
    }

    fn and(&mut self) -> JinjaResult<JinjaExpr> {
        let mut left = self.not()?;
        while self.is_name("and") {
            left = self.infix(Binary::And, left, Self::not)?;
        }
        Ok(left)
    }

    /// The operator at hand between `left` and what `right` reads.
    fn infix(
        &mut self,
        op: Binary,
        left: JinjaExpr,
        right: fn(&mut Self) -> JinjaResult<JinjaExpr>,
    ) -> JinjaResult<JinjaExpr> {
        let line = self.line();
        self.next();
        let right = right(self)?;
        self.node(line, JinjaExprKind::Binary(op, Box::new([left, right])))
    }

    fn not(&mut self) -> JinjaResult<JinjaExpr> {
        let line = self.line();
        if self.skip_name("not") {
            let inner = self.nested(Self::not)?;
            return self.node(line, JinjaExprKind::Unary(Unary::Not, Box::new(inner)));
        }
        self.comparison()
    }

    fn comparison(&mut self) -> JinjaResult<JinjaExpr> {
        let first = self.sum()?;
        let line = self.line();
        let mut rest = Vec::new();
        loop {
            let op = match self.peek() {
                JinjaToken::Op("==") => Compare::Eq,
                JinjaToken::Op("!=") => Compare::Ne,
                JinjaToken::Op("<") => Compare::Lt,
                JinjaToken::Op("<=") => Compare::Le,
                JinjaToken::Op(">") => Compare::Gt,
                JinjaToken::Op(">=") => Compare::Ge,
                JinjaToken::Name(name) if name == "in" => Compare::In,
                JinjaToken::Name(name) if name == "not" && self.name_after("in") => {
                    self.next();
                    Compare::NotIn
                }
                _ => break,
            };
            self.next();
            rest.push((op, self.sum()?));
        }
        if rest.is_empty() { Ok(first) } else { self.node(line, JinjaExprKind::Compare(Box::new(first), rest)) }
    }

    fn sum(&mut self) -> JinjaResult<JinjaExpr> {
        let mut left = self.concat()?;
        loop {
            let op = match self.peek() {
                JinjaToken::Op("+") => Binary::Add,
                JinjaToken::Op("-") => Binary::Sub,
                _ => return Ok(left),
            };
            left = self.infix(op, left, Self::concat)?;
        }
    }

    fn concat(&mut self) -> JinjaResult<JinjaExpr> {
        let line = self.line();
        let first = self.product()?;
        if *self.peek() != JinjaToken::Op("~") {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.skip_op("~") {
            parts.push(self.product()?);
        }
        self.node(line, JinjaExprKind::Concat(parts))
    }

    fn product(&mut self) -> JinjaResult<JinjaExpr> {
        let mut left = self.power()?;
        loop {
            let op = match self.peek() {
                JinjaToken::Op("*") => Binary::Mul,
                JinjaToken::Op("/") => Binary::Div,
                JinjaToken::Op("//") => Binary::FloorDiv,
                JinjaToken::Op("%") => Binary::Rem,
                _ => return Ok(left),
            };
            left = self.infix(op, left, Self::power)?;
        }
    }

    fn power(&mut self) -> JinjaResult<JinjaExpr> {
        let mut left = self.signed()?;
        while *self.peek() == JinjaToken::Op("**") {
            left = self.infix(Binary::Pow, left, Self::signed)?;
        }
        Ok(left)
    }

    fn signed(&mut self) -> JinjaResult<JinjaExpr> {
        let inner = self.sign()?;
        self.suffixes(inner, true)
    }

    /// A primary expression behind any number of signs; filters bind to all of it.
    fn sign(&mut self) -> JinjaResult<JinjaExpr> {
        let line = self.line();
        let op = match self.peek() {
            JinjaToken::Op("-") => Unary::Minus,
            JinjaToken::Op("+") => Unary::Plus,
            _ => {
                let primary = self.primary()?;
                return self.suffixes(primary, false);
            }
        };
        self.next();
        let inner = self.nested(Self::sign)?;
        self.node(line, JinjaExprKind::Unary(op, Box::new(inner)))
    }

    pub(super) fn primary(&mut self) -> JinjaResult<JinjaExpr> {
        let line = self.line();
        let kind = match self.next() {
            JinjaToken::Name(name) => match name.as_str() {
                "true" | "True" => JinjaExprKind::Bool(true),
                "false" | "False" => JinjaExprKind::Bool(false),
                "none" | "None" => JinjaExprKind::None,
                _ => {
                    self.note_use(&name);
                    JinjaExprKind::Name(Arc::from(name))
                }
            },
            JinjaToken::Text(mut text) => {
                while let JinjaToken::Text(more) = self.peek() {
                    text.push_str(more);
                    self.next();
                }
                JinjaExprKind::Text(self.constant(text))
            }
            JinjaToken::Int(value) => JinjaExprKind::Int(value),
            JinjaToken::Float(value) => JinjaExprKind::Float(value),
            JinjaToken::Op("(") if self.skip_op(")") => JinjaExprKind::Tuple(Vec::new()),
            JinjaToken::Op("(") => {
                let inner = self.tuple(true, &[])?;
                self.expect_op(")")?;
                return Ok(inner);
            }
            JinjaToken::Op("[") => JinjaExprKind::List(self.items("]", Self::expression)?),
            JinjaToken::Op("{") => JinjaExprKind::Dict(self.items("}", Self::pair)?),
            other => {
                self.back(other);
                return Err(self.unexpected("an expression"));
            }
        };
        self.node(line, kind)
    }

    fn pair(&mut self) -> JinjaResult<(JinjaExpr, JinjaExpr)> {
        let key = self.expression()?;
        self.expect_op(":")?;
        Ok((key, self.expression()?))
    }

    /// Items with commas in between, up to `close`.
    fn items<T>(&mut self, close: &'static str, item: fn(&mut Self) -> JinjaResult<T>) -> JinjaResult<Vec<T>> {
        let mut items = Vec::new();
        while !self.skip_op(close) {
            if !items.is_empty() {
                self.expect_op(",")?;
                if self.skip_op(close) {
                    break;
                }
            }
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// Attributes, items and calls behind `inner`; filters and tests too, if asked for.
    fn suffixes(&mut self, mut inner: JinjaExpr, filters: bool) -> JinjaResult<JinjaExpr> {
        loop {
            let line = self.line();
            let kind = match self.peek() {
                JinjaToken::Op(".") if !filters => {
                    self.next();
                    match self.next() {
                        JinjaToken::Name(name) => JinjaExprKind::Attr(Box::new(inner), Arc::from(name)),
                        JinjaToken::Int(index) => {
                            let index = self.node(line, JinjaExprKind::Int(index))?;
                            JinjaExprKind::Item(Box::new(inner), Box::new(index))
                        }
                        other => {
                            self.back(other);
                            return Err(self.unexpected("the name of an attribute"));
                        }
                    }
                }
                JinjaToken::Op("[") if !filters => {
                    self.next();
                    self.subscript(inner)?
                }
                JinjaToken::Op("(") => JinjaExprKind::Call(Box::new(inner), self.arguments()?),
                JinjaToken::Op("|") if filters => {
                    self.next();
                    JinjaExprKind::Filter(Box::new(inner), self.filter()?)
                }
                JinjaToken::Name(name) if filters && name == "is" => {
                    self.next();
                    let negated = self.skip_name("not");
                    let test = JinjaExprKind::Test(Box::new(inner), self.test()?);
                    if negated { JinjaExprKind::Unary(Unary::Not, Box::new(self.node(line, test)?)) } else { test }
                }
                _ => return Ok(inner),
            };
            inner = self.node(line, kind)?;
        }
    }

    /// What stands in `[...]` behind `inner`.
    fn subscript(&mut self, inner: JinjaExpr) -> JinjaResult<JinjaExprKind> {
        let line = self.line();
        let mut ends = [None, None, None];
        let mut at = 0;
        let mut indices = Vec::new();
        loop {
            match self.peek() {
                JinjaToken::Op("]") => break,
                JinjaToken::Op(":") if at < 2 => {
                    self.next();
                    at += 1;
                }
                JinjaToken::Op(",") if at == 0 && !indices.is_empty() => {
                    self.next();
                    indices.extend(ends[0].take());
                }
                _ if ends[at].is_none() => ends[at] = Some(Box::new(self.expression()?)),
                _ => return Err(self.unexpected("`]`")),
            }
            if at == 0 && indices.is_empty() && *self.peek() == JinjaToken::Op(",") {
                indices.extend(ends[0].take());
                self.next();
            }
        }
        self.expect_op("]")?;
        if at > 0 {
            return Ok(JinjaExprKind::Slice(Box::new(inner), ends));
        }
        let index = match (ends, indices.is_empty()) {
            ([Some(index), ..], true) => index,
            (_, true) => return Err(self.unexpected("an index")),
            ([last, ..], false) => {
                indices.extend(last);
                Box::new(self.node(line, JinjaExprKind::Tuple(indices.into_iter().map(|e| *e).collect()))?)
            }
        };
        Ok(JinjaExprKind::Item(Box::new(inner), index))
    }

    fn arguments(&mut self) -> JinjaResult<Vec<JinjaArg>> {
        self.expect_op("(")?;
        self.items(")", Self::argument)
    }

    fn argument(&mut self) -> JinjaResult<JinjaArg> {
        if self.skip_op("*") {
            return Ok(JinjaArg::Spread(self.expression()?));
        }
        if self.skip_op("**") {
            return Ok(JinjaArg::SpreadNamed(self.expression()?));
        }
        match self.peek() {
            JinjaToken::Name(name) if self.op_after("=") => {
                let name = JinjaName::from(name.as_str());
                self.next();
                self.next();
                Ok(JinjaArg::Named(name, self.expression()?))
            }
            _ => Ok(JinjaArg::Plain(self.expression()?)),
        }
    }

    /// A filter's name and arguments.
    pub(super) fn filter(&mut self) -> JinjaResult<FilterCall> {
        let line = self.line();
        let name = self.dotted_name()?;
        let args = if *self.peek() == JinjaToken::Op("(") { self.arguments()? } else { Vec::new() };
        Ok(FilterCall { name, args, line })
    }

    /// A test's name and arguments, which need no brackets where there is one.
    fn test(&mut self) -> JinjaResult<FilterCall> {
        let line = self.line();
        let name = self.dotted_name()?;
        let args = match self.peek() {
            JinjaToken::Op("(") => self.arguments()?,
            JinjaToken::Name(word) if matches!(word.as_str(), "else" | "or" | "and") => Vec::new(),
            JinjaToken::Name(word) if word == "is" => return Err(self.unexpected("one test, and no chain of `is`,")),
            JinjaToken::Name(_)
            | JinjaToken::Text(_)
            | JinjaToken::Int(_)
            | JinjaToken::Float(_)
            | JinjaToken::Op("[" | "{") => {
                if self.is_name("if") || self.is_name("not") || self.is_name("in") {
                    Vec::new()
                } else {
                    let primary = self.nested(Self::primary)?;
                    vec![JinjaArg::Plain(self.suffixes(primary, false)?)]
                }
            }
            _ => Vec::new(),
        };
        Ok(FilterCall { name, args, line })
    }

    fn dotted_name(&mut self) -> JinjaResult<JinjaName> {
        let mut name = self.name()?.to_string();
        while self.skip_op(".") {
            name.push('.');
            name.push_str(&self.name()?);
        }
        Ok(JinjaName::from(name))
    }
}
