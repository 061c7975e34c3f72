//! Expressions, calls of macros and of values.

use std::rc::Rc;
use std::sync::Arc;

use super::args::Args;
use super::ast::{Binary, Compare, FilterCall, JinjaArg, JinjaExpr, JinjaExprKind, JinjaName, Unary};
use super::budget::BudgetedWriter;
use super::fault::{Fault, JinjaResult};
use super::render::Rendering;
use super::value::{Closure, HelperKind, Items, JinjaValue, Loop};
use super::{checks, filters, functions, methods, ops, python};

/// Steps of an argument out of `*list` or `**dict`: arguments take memory that no value holds, so that their steps
/// bound it.
const STEPS_PER_SPREAD: usize = 8;

impl Rendering {
    pub(super) fn eval(&mut self, expr: &JinjaExpr) -> JinjaResult<JinjaValue> {
        let begin = self.budget.work(1).and_then(|()| self.budget.enter());
        let value = begin.and_then(|()| self.node(&expr.kind)).map_err(|fault| fault.at(expr.line))?;
        self.budget.leave();
        Ok(value)
    }

    fn node(&mut self, kind: &JinjaExprKind) -> JinjaResult<JinjaValue> {
        match kind {
            JinjaExprKind::None => Ok(JinjaValue::None),
            JinjaExprKind::Bool(value) => Ok(JinjaValue::Bool(*value)),
            JinjaExprKind::Int(value) => Ok(JinjaValue::Int(*value)),
            JinjaExprKind::Float(value) => Ok(JinjaValue::Float(*value)),
            JinjaExprKind::Text(at) => Ok(self.texts[*at].clone()),
            JinjaExprKind::Name(name) => self.name(name),
            JinjaExprKind::List(items) => self.items(items)?.list(),
            JinjaExprKind::Tuple(items) => self.items(items)?.tuple(),
            JinjaExprKind::Dict(pairs) => self.dict(pairs),
            JinjaExprKind::Attr(of, name) => {
                let of = self.eval(of)?;
                self.attr(&of, name)
            }
            JinjaExprKind::Item(of, index) => {
                let (of, index) = (self.eval(of)?, self.eval(index)?);
                self.item(&of, &index)
            }
            JinjaExprKind::Slice(of, ends) => {
                let of = self.eval(of)?;
                let [a, b, c] = ends;
                let mut end =
                    |end: &Option<Box<JinjaExpr>>| end.as_ref().map_or(Ok(JinjaValue::None), |e| self.eval(e));
                let ends = [end(a)?, end(b)?, end(c)?];
                ops::slice(&of, ends, &self.budget)
            }
            JinjaExprKind::Call(callee, args) => self.call_expr(callee, args),
            JinjaExprKind::Filter(of, filter) => {
                let of = self.eval(of)?;
                self.apply(of, filter)
            }
            JinjaExprKind::Test(of, test) => {
                let of = self.eval(of)?;
                let args = self.args(&test.args)?;
                checks::check(self, &test.name, &of, args).map(JinjaValue::Bool).map_err(|fault| fault.at(test.line))
            }
            JinjaExprKind::Unary(op, of) => {
                let of = self.eval(of)?;
                unary(*op, &of)
            }
            JinjaExprKind::Binary(op, pair) => self.binary(*op, pair),
            JinjaExprKind::Compare(first, rest) => self.compare(first, rest),
            JinjaExprKind::Concat(parts) => {
                let mut out = BudgetedWriter::new(&self.budget)?;
                for part in parts {
                    python::str(&self.eval(part)?, &mut out)?;
                }
                Ok(JinjaValue::written(out))
            }
            JinjaExprKind::If(then, condition, otherwise) => {
                if self.eval(condition)?.is_true() {
                    return self.eval(then);
                }
                otherwise.as_ref().map_or(Ok(JinjaValue::Undefined(None)), |otherwise| self.eval(otherwise))
            }
        }
    }

    fn name(&self, name: &JinjaName) -> JinjaResult<JinjaValue> {
        Ok(match self.scope.get(name)? {
            Some(value) => value,
            None if functions::exists(name) => JinjaValue::Function(Arc::clone(name)),
            None => JinjaValue::Undefined(Some(Arc::clone(name))),
        })
    }

    fn items(&mut self, exprs: &[JinjaExpr]) -> JinjaResult<Items> {
        let mut items = Items::new(&self.budget);
        for expr in exprs {
            items.push(self.eval(expr)?)?;
        }
        Ok(items)
    }

    fn dict(&mut self, pairs: &[(JinjaExpr, JinjaExpr)]) -> JinjaResult<JinjaValue> {
        let mut entries = Vec::with_capacity(pairs.len());
        for (key, value) in pairs {
            let (key, value) = (self.eval(key)?, self.eval(value)?);
            functions::put(&mut entries, key, value, &self.budget)?;
        }
        JinjaValue::dict(&self.budget, entries)
    }

    fn binary(&mut self, op: Binary, pair: &[JinjaExpr; 2]) -> JinjaResult<JinjaValue> {
        let [a, b] = pair;
        let a = self.eval(a)?;
        match op {
            Binary::And if !a.is_true() => Ok(a),
            Binary::Or if a.is_true() => Ok(a),
            Binary::And | Binary::Or => self.eval(b),
            _ => {
                let b = self.eval(b)?;
                ops::binary(op, &a, &b, &self.budget)
            }
        }
    }

    fn compare(&mut self, first: &JinjaExpr, rest: &[(Compare, JinjaExpr)]) -> JinjaResult<JinjaValue> {
        let mut left = self.eval(first)?;
        for (op, right) in rest {
            let right = self.eval(right)?;
            if !checks::compare(*op, &left, &right, &self.budget)? {
                return Ok(JinjaValue::Bool(false));
            }
            left = right;
        }
        Ok(JinjaValue::Bool(true))
    }

    pub(super) fn attr(&self, of: &JinjaValue, name: &JinjaName) -> JinjaResult<JinjaValue> {
        if let Some(fault) = of.undefined_fault() {
            return Err(fault);
        }
        if methods::exists(of, name) {
            return JinjaValue::method(&self.budget, of, name);
        }
        let found = match of {
            JinjaValue::Dict(dict) => ops::entry_of(dict.entries(), name, &self.budget)?,
            JinjaValue::Namespace(namespace) => {
                let entries = namespace.entries.borrow();
                self.budget.work(entries.len() / 8)?;
                entries.iter().find(|(found, _)| found == name).map(|(_, value)| value.clone())
            }
            JinjaValue::Loop(this) => loop_attr(this, name),
            JinjaValue::Macro(closure) if &**name == "name" => {
                Some(JinjaValue::text(&self.budget, &closure.decl.name)?)
            }
            JinjaValue::Helper(helper) => match &helper.kind {
                HelperKind::Cycler(items) if &**name == "current" => items.get(helper.at.get()).cloned(),
                _ => None,
            },
            _ => None,
        };
        Ok(found.unwrap_or_else(|| JinjaValue::Undefined(Some(Arc::clone(name)))))
    }

    /// `of[index]`: an item, or an attribute of that name.
    pub(super) fn item(&self, of: &JinjaValue, index: &JinjaValue) -> JinjaResult<JinjaValue> {
        let found = ops::item(of, index, &self.budget)?;
        match (&found, index.as_str()) {
            (JinjaValue::Undefined(_), Some(name))
                if !matches!(of, JinjaValue::Dict(_)) || methods::exists(of, name) =>
            {
                self.attr(of, &JinjaName::from(name))
            }
            _ => Ok(found),
        }
    }

    fn call_expr(&mut self, callee: &JinjaExpr, args: &[JinjaArg]) -> JinjaResult<JinjaValue> {
        if let JinjaExprKind::Attr(of, name) = &callee.kind {
            let of = self.eval(of)?;
            if methods::exists(&of, name) {
                let args = self.args(args)?;
                return methods::call(self, &of, name, args).map_err(|fault| fault.at(callee.line));
            }
            let function = self.attr(&of, name).map_err(|fault| fault.at(callee.line))?;
            let args = self.args(args)?;
            return self.call(&function, args);
        }
        let function = self.eval(callee)?;
        let args = self.args(args)?;
        self.call(&function, args)
    }

    pub(super) fn args(&mut self, args: &[JinjaArg]) -> JinjaResult<Args> {
        let mut out = Args::default();
        for arg in args {
            let value = self.eval(arg.expr())?;
            match arg {
                JinjaArg::Plain(_) => out.plain.push(value),
                JinjaArg::Named(name, _) => out.named.push((Arc::clone(name), value)),
                JinjaArg::Spread(_) => {
                    let items = value.iterate(&self.budget)?;
                    self.budget.work(items.len() * STEPS_PER_SPREAD)?;
                    out.plain.extend(items.iter().cloned());
                }
                JinjaArg::SpreadNamed(_) => {
                    let JinjaValue::Dict(dict) = &value else {
                        return Err(Fault::wrong(format!("`**` takes a dict, and not a {}", value.kind())));
                    };
                    self.budget.work(dict.entries().len() * STEPS_PER_SPREAD)?;
                    for (key, value) in dict.entries() {
                        let name = key.as_str().ok_or_else(|| Fault::wrong("`**` takes keys that are strings"))?;
                        self.budget.work(name.len() / STEPS_PER_SPREAD)?;
                        out.named.push((JinjaName::from(name), value.clone()));
                    }
                }
            }
        }
        Ok(out)
    }

    /// Applies a filter.
    pub(super) fn apply(&mut self, value: JinjaValue, filter: &FilterCall) -> JinjaResult<JinjaValue> {
        let args = self.args(&filter.args)?;
        filters::apply(self, &filter.name, value, args).map_err(|fault| fault.at(filter.line))
    }

    /// Calls a value.
    pub(super) fn call(&mut self, function: &JinjaValue, args: Args) -> JinjaResult<JinjaValue> {
        self.budget.enter()?;
        let value = match function {
            JinjaValue::Macro(closure) => self.call_macro(closure, args),
            JinjaValue::Function(name) => functions::call(self, name, args),
            JinjaValue::Method(method) => methods::call(self, &method.of, &method.name, args),
            JinjaValue::Loop(this) => self.recurse(this, args),
            JinjaValue::Helper(helper) => match &helper.kind {
                HelperKind::Joiner(separator) => {
                    let [] = args.bind("joiner", [])?;
                    let used = helper.at.replace(1) != 0;
                    if used { Ok(separator.clone()) } else { JinjaValue::text(&self.budget, "") }
                }
                HelperKind::Cycler(_) => Err(Fault::wrong("a cycler cannot be called")),
            },
            other => Err(other
                .undefined_fault()
                .unwrap_or_else(|| Fault::wrong(format!("a value of kind {} cannot be called", other.kind())))),
        }?;
        self.budget.leave();
        Ok(value)
    }

    fn recurse(&mut self, this: &Rc<Loop>, args: Args) -> JinjaResult<JinjaValue> {
        let [over] = args.bind("loop", ["iterable"])?;
        if !this.decl.recursive {
            return Err(Fault::wrong("`loop` can be called in a loop that is marked `recursive` only"));
        }
        let items = over.unwrap_or(JinjaValue::Undefined(None)).iterate(&self.budget)?;
        let mut out = BudgetedWriter::new(&self.budget)?;
        self.run_loop(&this.decl, items, this.depth + 1, &mut out)?;
        Ok(JinjaValue::written(out))
    }

    fn call_macro(&mut self, closure: &Rc<Closure>, args: Args) -> JinjaResult<JinjaValue> {
        let decl = Arc::clone(&closure.decl);
        let Args { mut plain, mut named } = args;
        let rest = plain.split_off(plain.len().min(decl.params.len()));
        if !rest.is_empty() && !decl.uses.varargs {
            return Err(Fault::wrong(format!("macro `{}` takes at most {} arguments", decl.name, decl.params.len())));
        }
        self.scope.push(Some(Rc::clone(closure)))?;
        let mut given = plain.into_iter();
        for (param, default) in &decl.params {
            self.budget.work(1 + named.len() / 8)?;
            let by_name = named.iter().position(|(name, _)| name == param).map(|at| named.remove(at).1);
            let value = match (given.next(), by_name, default) {
                (Some(_), Some(_), _) => {
                    return Err(Fault::wrong(format!("macro `{}` was given `{param}` twice", decl.name)));
                }
                (Some(value), None, _) | (None, Some(value), _) => value,
                (None, None, Some(default)) => self.eval(default)?,
                (None, None, None) => JinjaValue::Undefined(Some(Arc::clone(param))),
            };
            self.scope.set(param, value)?;
        }
        self.special(&decl.name, decl.uses, rest, named)?;
        let mut out = BudgetedWriter::new(&self.budget)?;
        self.body(&decl.body, &mut out)?;
        self.scope.pop();
        Ok(JinjaValue::written(out))
    }

    /// Sets `caller`, `varargs` and `kwargs` where the macro names them.
    fn special(
        &mut self,
        callee: &str,
        uses: super::ast::Uses,
        rest: Vec<JinjaValue>,
        mut named: Vec<(JinjaName, JinjaValue)>,
    ) -> JinjaResult<()> {
        if uses.caller {
            let caller = named.iter().position(|(name, _)| &**name == "caller").map(|at| named.remove(at));
            if let Some((name, value)) = caller {
                self.scope.set(&name, value)?;
            }
        }
        if uses.varargs {
            let rest = JinjaValue::list(&self.budget, rest, true)?;
            self.scope.set(&JinjaName::from("varargs"), rest)?;
        }
        if uses.kwargs {
            let mut entries = Vec::new();
            for (name, value) in named.drain(..) {
                entries.push((JinjaValue::text(&self.budget, &name)?, value));
            }
            let entries = JinjaValue::dict(&self.budget, entries)?;
            self.scope.set(&JinjaName::from("kwargs"), entries)?;
        }
        match named.first() {
            Some((name, _)) => Err(Fault::wrong(format!("macro `{callee}` has no argument `{name}`"))),
            None => Ok(()),
        }
    }
}

fn unary(op: Unary, of: &JinjaValue) -> JinjaResult<JinjaValue> {
    if op == Unary::Not {
        return Ok(JinjaValue::Bool(!of.is_true()));
    }
    let sign = if op == Unary::Minus { -1 } else { 1 };
    match of {
        JinjaValue::Float(value) => Ok(JinjaValue::Float(*value * f64::from(sign))),
        _ => match of.as_int() {
            Some(value) => {
                let value = value.checked_mul(sign.into());
                value.map(JinjaValue::Int).ok_or_else(|| Fault::wrong("an integer has more than 128 bits"))
            }
            None => Err(of
                .undefined_fault()
                .unwrap_or_else(|| Fault::wrong(format!("a value of kind {} has no sign", of.kind())))),
        },
    }
}

fn loop_attr(this: &Loop, name: &str) -> Option<JinjaValue> {
    let (at, len) = (this.at.get(), this.items.len());
    let int = |value: usize| Some(JinjaValue::Int(value as i128));
    match name {
        "index" => int(at + 1),
        "index0" => int(at),
        "revindex" => int(len.saturating_sub(at)),
        "revindex0" => int(len.saturating_sub(at + 1)),
        "first" => Some(JinjaValue::Bool(at == 0)),
        "last" => Some(JinjaValue::Bool(at + 1 >= len)),
        "length" => int(len),
        "depth" => int(this.depth + 1),
        "depth0" => int(this.depth),
        "previtem" => at.checked_sub(1).and_then(|at| this.items.get(at)).cloned(),
        "nextitem" => this.items.get(at + 1).cloned(),
        _ => None,
    }
}
