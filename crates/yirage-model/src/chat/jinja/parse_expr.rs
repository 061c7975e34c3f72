//! Expressions: Jinja's grammar, level by level as its own parser has them.

use std::sync::Arc;

use super::ast::{Arg, Binary, Call, Compare, Expr, Kind, Name, Unary};
use super::fault::{Fault, Outcome};
use super::lexer::Token;
use super::parser::Parser;
use crate::chat::limits;

impl Parser {
    /// A node over children that exist; their depth is bounded here and nowhere else.
    fn node(&self, line: u32, kind: Kind) -> Outcome<Expr> {
        let depth = kind.depth() + 1;
        if depth > limits::MAX_EXPRESSION_DEPTH {
            let limit = limits::MAX_EXPRESSION_DEPTH.into();
            return Err(Fault::limit("depth of an expression", limit).at(line));
        }
        Ok(Expr { line, depth, kind })
    }

    /// One expression.
    pub(super) fn expression(&mut self) -> Outcome<Expr> {
        self.nested(Self::conditional)
    }

    /// Expressions with commas in between: a tuple, or the one expression without a comma. `ends` are names that end
    /// it; `conditional` allows `a if b` within.
    pub(super) fn tuple(&mut self, conditional: bool, ends: &[&str]) -> Outcome<Expr> {
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
                self.node(line, Kind::Tuple(items))
            }
            None => Err(self.unexpected("an expression")),
        }
    }

    fn tuple_ends(&self, ends: &[&str]) -> bool {
        match self.peek() {
            Token::VariableEnd | Token::BlockEnd | Token::End | Token::Op(")") => true,
            Token::Name(name) => ends.contains(&name.as_str()),
            _ => false,
        }
    }

    fn conditional(&mut self) -> Outcome<Expr> {
        let mut then = self.or()?;
        while self.is_name("if") {
            let line = self.line();
            self.next();
            let condition = self.or()?;
            let otherwise = if self.skip_name("else") { Some(Box::new(self.expression()?)) } else { None };
            then = self.node(line, Kind::If(Box::new(then), Box::new(condition), otherwise))?;
        }
        Ok(then)
    }

    fn or(&mut self) -> Outcome<Expr> {
        let mut left = self.and()?;
        while self.is_name("or") {
            left = self.infix(Binary::Or, left, Self::and)?;
        }
        Ok(left)
    }

    fn and(&mut self) -> Outcome<Expr> {
        let mut left = self.not()?;
        while self.is_name("and") {
            left = self.infix(Binary::And, left, Self::not)?;
        }
        Ok(left)
    }

    /// The operator at hand between `left` and what `right` reads.
    fn infix(&mut self, op: Binary, left: Expr, right: fn(&mut Self) -> Outcome<Expr>) -> Outcome<Expr> {
        let line = self.line();
        self.next();
        let right = right(self)?;
        self.node(line, Kind::Binary(op, Box::new([left, right])))
    }

    fn not(&mut self) -> Outcome<Expr> {
        let line = self.line();
        if self.skip_name("not") {
            let inner = self.nested(Self::not)?;
            return self.node(line, Kind::Unary(Unary::Not, Box::new(inner)));
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Outcome<Expr> {
        let first = self.sum()?;
        let line = self.line();
        let mut rest = Vec::new();
        loop {
            let op = match self.peek() {
                Token::Op("==") => Compare::Eq,
                Token::Op("!=") => Compare::Ne,
                Token::Op("<") => Compare::Lt,
                Token::Op("<=") => Compare::Le,
                Token::Op(">") => Compare::Gt,
                Token::Op(">=") => Compare::Ge,
                Token::Name(name) if name == "in" => Compare::In,
                Token::Name(name) if name == "not" && self.name_after("in") => {
                    self.next();
                    Compare::NotIn
                }
                _ => break,
            };
            self.next();
            rest.push((op, self.sum()?));
        }
        if rest.is_empty() { Ok(first) } else { self.node(line, Kind::Compare(Box::new(first), rest)) }
    }

    fn sum(&mut self) -> Outcome<Expr> {
        let mut left = self.concat()?;
        loop {
            let op = match self.peek() {
                Token::Op("+") => Binary::Add,
                Token::Op("-") => Binary::Sub,
                _ => return Ok(left),
            };
            left = self.infix(op, left, Self::concat)?;
        }
    }

    fn concat(&mut self) -> Outcome<Expr> {
        let line = self.line();
        let first = self.product()?;
        if *self.peek() != Token::Op("~") {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.skip_op("~") {
            parts.push(self.product()?);
        }
        self.node(line, Kind::Concat(parts))
    }

    fn product(&mut self) -> Outcome<Expr> {
        let mut left = self.power()?;
        loop {
            let op = match self.peek() {
                Token::Op("*") => Binary::Mul,
                Token::Op("/") => Binary::Div,
                Token::Op("//") => Binary::FloorDiv,
                Token::Op("%") => Binary::Rem,
                _ => return Ok(left),
            };
            left = self.infix(op, left, Self::power)?;
        }
    }

    fn power(&mut self) -> Outcome<Expr> {
        let mut left = self.signed()?;
        while *self.peek() == Token::Op("**") {
            left = self.infix(Binary::Pow, left, Self::signed)?;
        }
        Ok(left)
    }

    fn signed(&mut self) -> Outcome<Expr> {
        let inner = self.sign()?;
        self.suffixes(inner, true)
    }

    /// A primary expression behind any number of signs; filters bind to all of it.
    fn sign(&mut self) -> Outcome<Expr> {
        let line = self.line();
        let op = match self.peek() {
            Token::Op("-") => Unary::Minus,
            Token::Op("+") => Unary::Plus,
            _ => {
                let primary = self.primary()?;
                return self.suffixes(primary, false);
            }
        };
        self.next();
        let inner = self.nested(Self::sign)?;
        self.node(line, Kind::Unary(op, Box::new(inner)))
    }

    pub(super) fn primary(&mut self) -> Outcome<Expr> {
        let line = self.line();
        let kind = match self.next() {
            Token::Name(name) => match name.as_str() {
                "true" | "True" => Kind::Bool(true),
                "false" | "False" => Kind::Bool(false),
                "none" | "None" => Kind::None,
                _ => {
                    self.note_use(&name);
                    Kind::Name(Arc::from(name))
                }
            },
            Token::Text(mut text) => {
                while let Token::Text(more) = self.peek() {
                    text.push_str(more);
                    self.next();
                }
                Kind::Text(self.constant(text))
            }
            Token::Int(value) => Kind::Int(value),
            Token::Float(value) => Kind::Float(value),
            Token::Op("(") if self.skip_op(")") => Kind::Tuple(Vec::new()),
            Token::Op("(") => {
                let inner = self.tuple(true, &[])?;
                self.expect_op(")")?;
                return Ok(inner);
            }
            Token::Op("[") => Kind::List(self.items("]", Self::expression)?),
            Token::Op("{") => Kind::Dict(self.items("}", Self::pair)?),
            other => {
                self.back(other);
                return Err(self.unexpected("an expression"));
            }
        };
        self.node(line, kind)
    }

    fn pair(&mut self) -> Outcome<(Expr, Expr)> {
        let key = self.expression()?;
        self.expect_op(":")?;
        Ok((key, self.expression()?))
    }

    /// Items with commas in between, up to `close`.
    fn items<T>(&mut self, close: &'static str, item: fn(&mut Self) -> Outcome<T>) -> Outcome<Vec<T>> {
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
    fn suffixes(&mut self, mut inner: Expr, filters: bool) -> Outcome<Expr> {
        loop {
            let line = self.line();
            let kind = match self.peek() {
                Token::Op(".") if !filters => {
                    self.next();
                    match self.next() {
                        Token::Name(name) => Kind::Attr(Box::new(inner), Arc::from(name)),
                        Token::Int(index) => {
                            let index = self.node(line, Kind::Int(index))?;
                            Kind::Item(Box::new(inner), Box::new(index))
                        }
                        other => {
                            self.back(other);
                            return Err(self.unexpected("the name of an attribute"));
                        }
                    }
                }
                Token::Op("[") if !filters => {
                    self.next();
                    self.subscript(inner)?
                }
                Token::Op("(") => Kind::Call(Box::new(inner), self.arguments()?),
                Token::Op("|") if filters => {
                    self.next();
                    Kind::Filter(Box::new(inner), self.filter()?)
                }
                Token::Name(name) if filters && name == "is" => {
                    self.next();
                    let negated = self.skip_name("not");
                    let test = Kind::Test(Box::new(inner), self.test()?);
                    if negated { Kind::Unary(Unary::Not, Box::new(self.node(line, test)?)) } else { test }
                }
                _ => return Ok(inner),
            };
            inner = self.node(line, kind)?;
        }
    }

    /// What stands in `[...]` behind `inner`.
    fn subscript(&mut self, inner: Expr) -> Outcome<Kind> {
        let line = self.line();
        let mut ends = [None, None, None];
        let mut at = 0;
        let mut indices = Vec::new();
        loop {
            match self.peek() {
                Token::Op("]") => break,
                Token::Op(":") if at < 2 => {
                    self.next();
                    at += 1;
                }
                Token::Op(",") if at == 0 && !indices.is_empty() => {
                    self.next();
                    indices.extend(ends[0].take());
                }
                _ if ends[at].is_none() => ends[at] = Some(Box::new(self.expression()?)),
                _ => return Err(self.unexpected("`]`")),
            }
            if at == 0 && indices.is_empty() && *self.peek() == Token::Op(",") {
                indices.extend(ends[0].take());
                self.next();
            }
        }
        self.expect_op("]")?;
        if at > 0 {
            return Ok(Kind::Slice(Box::new(inner), ends));
        }
        let index = match (ends, indices.is_empty()) {
            ([Some(index), ..], true) => index,
            (_, true) => return Err(self.unexpected("an index")),
            ([last, ..], false) => {
                indices.extend(last);
                Box::new(self.node(line, Kind::Tuple(indices.into_iter().map(|e| *e).collect()))?)
            }
        };
        Ok(Kind::Item(Box::new(inner), index))
    }

    fn arguments(&mut self) -> Outcome<Vec<Arg>> {
        self.expect_op("(")?;
        self.items(")", Self::argument)
    }

    fn argument(&mut self) -> Outcome<Arg> {
        if self.skip_op("*") {
            return Ok(Arg::Spread(self.expression()?));
        }
        if self.skip_op("**") {
            return Ok(Arg::SpreadNamed(self.expression()?));
        }
        match self.peek() {
            Token::Name(name) if self.op_after("=") => {
                let name = Name::from(name.as_str());
                self.next();
                self.next();
                Ok(Arg::Named(name, self.expression()?))
            }
            _ => Ok(Arg::Plain(self.expression()?)),
        }
    }

    /// A filter's name and arguments.
    pub(super) fn filter(&mut self) -> Outcome<Call> {
        let line = self.line();
        let name = self.dotted_name()?;
        let args = if *self.peek() == Token::Op("(") { self.arguments()? } else { Vec::new() };
        Ok(Call { name, args, line })
    }

    /// A test's name and arguments, which need no brackets where there is one.
    fn test(&mut self) -> Outcome<Call> {
        let line = self.line();
        let name = self.dotted_name()?;
        let args = match self.peek() {
            Token::Op("(") => self.arguments()?,
            Token::Name(word) if matches!(word.as_str(), "else" | "or" | "and") => Vec::new(),
            Token::Name(word) if word == "is" => return Err(self.unexpected("one test, and no chain of `is`,")),
            Token::Name(_) | Token::Text(_) | Token::Int(_) | Token::Float(_) | Token::Op("[" | "{") => {
                if self.is_name("if") || self.is_name("not") || self.is_name("in") {
                    Vec::new()
                } else {
                    let primary = self.nested(Self::primary)?;
                    vec![Arg::Plain(self.suffixes(primary, false)?)]
                }
            }
            _ => Vec::new(),
        };
        Ok(Call { name, args, line })
    }

    fn dotted_name(&mut self) -> Outcome<Name> {
        let mut name = self.name()?.to_string();
        while self.skip_op(".") {
            name.push('.');
            name.push_str(&self.name()?);
        }
        Ok(Name::from(name))
    }
}
