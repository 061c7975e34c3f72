//! Statements: tokens to the tree, nesting bounded.

use std::sync::Arc;

use super::ast::{
    AssignTarget, JinjaExpr, JinjaExprKind, JinjaForLoop, JinjaName, JinjaTemplate, Macro, Stmt, StmtKind, Uses,
};
use super::fault::{Fault, JinjaResult};
use super::lexer::{self, JinjaToken, LocatedToken};
use crate::chat::limits;

/// Parses a template.
pub(in crate::chat) fn parse(source: &str) -> JinjaResult<JinjaTemplate> {
    let mut tokens = lexer::tokens(source)?;
    tokens.reverse();
    let mut parser = JinjaParser { tokens, line: 1, nesting: 0, loops: 0, texts: Vec::new(), uses: Uses::default() };
    let body = parser.body(&[]).map_err(|fault| fault.at(parser.line()))?;
    Ok(JinjaTemplate { body, texts: parser.texts })
}

pub(super) struct JinjaParser {
    /// The last one is next.
    tokens: Vec<LocatedToken>,
    line: u32,
    nesting: u32,
    /// Loops around the statement, within its macro.
    loops: u32,
    texts: Vec<String>,
    /// Special variables named since the innermost macro began.
    uses: Uses,
}

impl JinjaParser {
    pub(super) fn peek(&self) -> &JinjaToken {
        self.tokens.last().map_or(&JinjaToken::End, |placed| &placed.token)
    }

    fn after(&self) -> &JinjaToken {
        self.tokens.len().checked_sub(2).map_or(&JinjaToken::End, |at| &self.tokens[at].token)
    }

    pub(super) fn next(&mut self) -> JinjaToken {
        let Some(placed) = self.tokens.pop() else { return JinjaToken::End };
        self.line = placed.line;
        placed.token
    }

    /// Takes a token back.
    pub(super) fn back(&mut self, token: JinjaToken) {
        self.tokens.push(LocatedToken { token, line: self.line });
    }

    pub(super) fn line(&self) -> u32 {
        self.tokens.last().map_or(self.line, |placed| placed.line)
    }

    pub(super) fn is_name(&self, word: &str) -> bool {
        matches!(self.peek(), JinjaToken::Name(name) if name == word)
    }

    pub(super) fn name_after(&self, word: &str) -> bool {
        matches!(self.after(), JinjaToken::Name(name) if name == word)
    }

    pub(super) fn op_after(&self, op: &str) -> bool {
        matches!(self.after(), JinjaToken::Op(found) if *found == op)
    }

    pub(super) fn skip_name(&mut self, word: &str) -> bool {
        let found = self.is_name(word);
        if found {
            self.next();
        }
        found
    }

    pub(super) fn skip_op(&mut self, op: &str) -> bool {
        let found = matches!(self.peek(), JinjaToken::Op(found) if *found == op);
        if found {
            self.next();
        }
        found
    }

    pub(super) fn expect_op(&mut self, op: &str) -> JinjaResult<()> {
        if self.skip_op(op) { Ok(()) } else { Err(self.unexpected(&format!("`{op}`"))) }
    }

    fn expect_name(&mut self, word: &str) -> JinjaResult<()> {
        if self.skip_name(word) { Ok(()) } else { Err(self.unexpected(&format!("`{word}`"))) }
    }

    fn block_end(&mut self) -> JinjaResult<()> {
        match self.next() {
            JinjaToken::BlockEnd => Ok(()),
            other => {
                self.back(other);
                Err(self.unexpected("the end of the tag"))
            }
        }
    }

    pub(super) fn name(&mut self) -> JinjaResult<JinjaName> {
        match self.next() {
            JinjaToken::Name(name) => Ok(JinjaName::from(name)),
            other => {
                self.back(other);
                Err(self.unexpected("a name"))
            }
        }
    }

    pub(super) fn unexpected(&self, wanted: &str) -> Fault {
        let found = match self.peek() {
            JinjaToken::Data(_) => "text".to_owned(),
            JinjaToken::VariableBegin => "`{{`".to_owned(),
            JinjaToken::VariableEnd => "`}}`".to_owned(),
            JinjaToken::BlockBegin => "`{%`".to_owned(),
            JinjaToken::BlockEnd => "`%}`".to_owned(),
            JinjaToken::Name(name) => format!("`{name}`"),
            JinjaToken::Text(_) => "a string".to_owned(),
            JinjaToken::Int(_) | JinjaToken::Float(_) => "a number".to_owned(),
            JinjaToken::Op(op) => format!("`{op}`"),
            JinjaToken::End => "the end of the template".to_owned(),
        };
        Fault::wrong(format!("expected {wanted}, found {found}")).at(self.line())
    }

    /// Reads something one level deeper.
    pub(super) fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> JinjaResult<T>) -> JinjaResult<T> {
        if self.nesting >= limits::MAX_NESTING {
            return Err(Fault::limit("depth of nesting", limits::MAX_NESTING.into()).at(self.line()));
        }
        self.nesting += 1;
        let read = read(self);
        self.nesting -= 1;
        read
    }

    /// Keeps a string constant and gives its index.
    pub(super) fn constant(&mut self, text: String) -> usize {
        self.texts.push(text);
        self.texts.len() - 1
    }

    /// Remembers that a special variable of macros is named.
    pub(super) fn note_use(&mut self, name: &str) {
        match name {
            "varargs" => self.uses.varargs = true,
            "kwargs" => self.uses.kwargs = true,
            "caller" => self.uses.caller = true,
            _ => {}
        }
    }

    /// Statements up to one of the tags `ends`, whose name is next then; up to the end where there are none.
    fn body(&mut self, ends: &[&str]) -> JinjaResult<Vec<Stmt>> {
        let mut body = Vec::new();
        loop {
            let line = self.line();
            match self.next() {
                JinjaToken::Data(text) => body.push(Stmt { line, kind: StmtKind::Data(text) }),
                JinjaToken::VariableBegin => {
                    let shown = self.tuple(true, &[])?;
                    match self.next() {
                        JinjaToken::VariableEnd => body.push(Stmt { line, kind: StmtKind::Emit(shown) }),
                        other => {
                            self.back(other);
                            return Err(self.unexpected("`}}`"));
                        }
                    }
                }
                JinjaToken::BlockBegin => {
                    if ends.iter().any(|end| self.is_name(end)) {
                        return Ok(body);
                    }
                    let kind = self.nested(Self::statement)?;
                    body.push(Stmt { line, kind });
                    self.block_end()?;
                }
                JinjaToken::End if ends.is_empty() => return Ok(body),
                other => {
                    self.back(other);
                    return Err(self.unexpected(&format!("`{}`", ends.join("` or `"))));
                }
            }
        }
    }

    /// The rest of the opening tag, the body, and the name of the closing tag.
    fn inside(&mut self, end: &str) -> JinjaResult<Vec<Stmt>> {
        self.block_end()?;
        let body = self.body(&[end])?;
        self.next();
        Ok(body)
    }

    fn statement(&mut self) -> JinjaResult<StmtKind> {
        let word = self.name()?;
        Ok(match &*word {
            "if" => self.conditions()?,
            "for" => StmtKind::For(Arc::new(self.for_loop()?)),
            "set" => self.set()?,
            "with" => self.with()?,
            "macro" => {
                let name = self.name()?;
                StmtKind::Macro(Arc::new(self.macro_body(name)?))
            }
            "call" => self.call()?,
            "filter" => {
                let mut filters = vec![self.filter()?];
                while self.skip_op("|") {
                    filters.push(self.filter()?);
                }
                StmtKind::Filter(filters, self.inside("endfilter")?)
            }
            "block" => {
                self.name()?;
                while self.skip_name("scoped") || self.skip_name("required") {}
                let body = self.inside("endblock")?;
                if matches!(self.peek(), JinjaToken::Name(_)) {
                    self.next();
                }
                StmtKind::With(Vec::new(), body)
            }
            "generation" => StmtKind::With(Vec::new(), self.inside("endgeneration")?),
            "do" => StmtKind::Do(self.tuple(true, &[])?),
            "break" | "continue" if self.loops == 0 => {
                return Err(Fault::wrong(format!("`{word}` stands outside of a loop")));
            }
            "break" => StmtKind::Break,
            "continue" => StmtKind::Continue,
            "include" | "import" | "from" | "extends" => {
                return Err(Fault::wrong(format!(
                    "`{word}` needs other templates, which a chat template does not have"
                )));
            }
            _ => return Err(Fault::wrong(format!("tag `{word}` is unknown"))),
        })
    }

    fn conditions(&mut self) -> JinjaResult<StmtKind> {
        let mut cases = Vec::new();
        let mut otherwise = Vec::new();
        loop {
            let condition = self.tuple(false, &[])?;
            self.block_end()?;
            cases.push((condition, self.body(&["elif", "else", "endif"])?));
            if self.skip_name("elif") {
                continue;
            }
            if self.skip_name("else") {
                otherwise = self.inside("endif")?;
            } else {
                self.next();
            }
            return Ok(StmtKind::If(cases, otherwise));
        }
    }

    fn for_loop(&mut self) -> JinjaResult<JinjaForLoop> {
        let target = self.targets("in")?;
        self.expect_name("in")?;
        let over = self.tuple(false, &["recursive"])?;
        let only_if = if self.skip_name("if") { Some(self.expression()?) } else { None };
        let recursive = self.skip_name("recursive");
        self.block_end()?;
        self.loops += 1;
        let body = self.body(&["endfor", "else"]);
        self.loops -= 1;
        let body = body?;
        let otherwise = if self.skip_name("else") {
            self.inside("endfor")?
        } else {
            self.next();
            Vec::new()
        };
        Ok(JinjaForLoop { target, over, only_if, recursive, body, otherwise })
    }

    fn set(&mut self) -> JinjaResult<StmtKind> {
        let target = self.targets("")?;
        if self.skip_op("=") {
            return Ok(StmtKind::Set(target, self.tuple(true, &[])?));
        }
        let mut filters = Vec::new();
        while self.skip_op("|") {
            filters.push(self.filter()?);
        }
        Ok(StmtKind::SetBlock(target, filters, self.inside("endset")?))
    }

    fn with(&mut self) -> JinjaResult<StmtKind> {
        let mut set = Vec::new();
        while *self.peek() != JinjaToken::BlockEnd {
            if !set.is_empty() {
                self.expect_op(",")?;
            }
            let target = self.target()?;
            self.expect_op("=")?;
            set.push((target, self.expression()?));
        }
        Ok(StmtKind::With(set, self.inside("endwith")?))
    }

    fn call(&mut self) -> JinjaResult<StmtKind> {
        // The parameters of the caller come first, the call behind them: both are read before the body.
        let params = if *self.peek() == JinjaToken::Op("(") { self.parameters()? } else { Vec::new() };
        let callee = self.expression()?;
        if !matches!(callee.kind, JinjaExprKind::Call(..)) {
            return Err(Fault::wrong("`call` is not followed by a call"));
        }
        let (body, uses) = self.isolated(|parser| parser.inside("endcall"))?;
        let caller = Macro { name: JinjaName::from("caller"), params, body, uses };
        Ok(StmtKind::Call(Arc::new(caller), callee))
    }

    fn macro_body(&mut self, name: JinjaName) -> JinjaResult<Macro> {
        let params = self.parameters()?;
        let (body, uses) = self.isolated(|parser| parser.inside("endmacro"))?;
        Ok(Macro { name, params, body, uses })
    }

    /// Reads a body that is a macro of its own: loops around it cannot be left, special variables are its own.
    fn isolated<T>(&mut self, read: impl FnOnce(&mut Self) -> JinjaResult<T>) -> JinjaResult<(T, Uses)> {
        let (loops, uses) = (std::mem::take(&mut self.loops), std::mem::take(&mut self.uses));
        let read = read(self)?;
        self.loops = loops;
        Ok((read, std::mem::replace(&mut self.uses, uses)))
    }

    fn parameters(&mut self) -> JinjaResult<Vec<(JinjaName, Option<JinjaExpr>)>> {
        self.expect_op("(")?;
        let mut params = Vec::new();
        while !self.skip_op(")") {
            if !params.is_empty() {
                self.expect_op(",")?;
            }
            let name = self.name()?;
            let default = if self.skip_op("=") { Some(self.expression()?) } else { None };
            params.push((name, default));
        }
        Ok(params)
    }

    /// What is assigned to: one target, or several with commas in between, up to the name `end`.
    fn targets(&mut self, end: &str) -> JinjaResult<AssignTarget> {
        let first = self.target()?;
        if *self.peek() != JinjaToken::Op(",") {
            return Ok(first);
        }
        let mut all = vec![first];
        while self.skip_op(",") {
            if self.is_name(end) || *self.peek() == JinjaToken::Op("=") {
                break;
            }
            all.push(self.target()?);
        }
        Ok(AssignTarget::Tuple(all))
    }

    fn target(&mut self) -> JinjaResult<AssignTarget> {
        if self.skip_op("(") {
            let inner = self.nested(|parser| parser.targets(""))?;
            self.expect_op(")")?;
            return Ok(inner);
        }
        let name = self.name()?;
        if matches!(&*name, "true" | "True" | "false" | "False" | "none" | "None") {
            return Err(Fault::wrong(format!("`{name}` cannot be assigned to")));
        }
        if self.skip_op(".") {
            return Ok(AssignTarget::Attr(name, self.name()?));
        }
        Ok(AssignTarget::Name(name))
    }
}
