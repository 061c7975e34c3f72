//! Expressions, calls of macros and of values.

use std::rc::Rc;
use std::sync::Arc;

use super::args::Args;
use super::ast::{Arg, Binary, Call, Compare, Expr, Kind, Name, Unary};
use super::budget::Writer;
use super::fault::{Fault, Outcome};
use super::render::Rendering;
use super::value::{Closure, HelperKind, Items, Loop, Value};
use super::{checks, filters, functions, methods, ops, python};

/// Steps of an argument out of `*list` or `**dict`: arguments take memory that no value holds, so that their steps
/// bound it.
const STEPS_PER_SPREAD: usize = 8;

impl Rendering {
    pub(super) fn eval(&mut self, expr: &Expr) -> Outcome<Value> {
        let begin = self.budget.work(1).and_then(|()| self.budget.enter());
        let value = begin.and_then(|()| self.node(&expr.kind)).map_err(|fault| fault.at(expr.line))?;
        self.budget.leave();
        Ok(value)
    }

    fn node(&mut self, kind: &Kind) -> Outcome<Value> {
        match kind {
            Kind::None => Ok(Value::None),
            Kind::Bool(value) => Ok(Value::Bool(*value)),
            Kind::Int(value) => Ok(Value::Int(*value)),
            Kind::Float(value) => Ok(Value::Float(*value)),
            Kind::Text(at) => Ok(self.texts[*at].clone()),
            Kind::Name(name) => self.name(name),
            Kind::List(items) => self.items(items)?.list(),
            Kind::Tuple(items) => self.items(items)?.tuple(),
            Kind::Dict(pairs) => self.dict(pairs),
            Kind::Attr(of, name) => {
                let of = self.eval(of)?;
                self.attr(&of, name)
            }
            Kind::Item(of, index) => {
                let (of, index) = (self.eval(of)?, self.eval(index)?);
                self.item(&of, &index)
            }
            Kind::Slice(of, ends) => {
                let of = self.eval(of)?;
                let [a, b, c] = ends;
                let mut end = |end: &Option<Box<Expr>>| end.as_ref().map_or(Ok(Value::None), |e| self.eval(e));
                let ends = [end(a)?, end(b)?, end(c)?];
                ops::slice(&of, ends, &self.budget)
            }
            Kind::Call(callee, args) => self.call_expr(callee, args),
            Kind::Filter(of, filter) => {
                let of = self.eval(of)?;
                self.apply(of, filter)
            }
            Kind::Test(of, test) => {
                let of = self.eval(of)?;
                let args = self.args(&test.args)?;
                checks::check(self, &test.name, &of, args).map(Value::Bool).map_err(|fault| fault.at(test.line))
            }
            Kind::Unary(op, of) => {
                let of = self.eval(of)?;
                unary(*op, &of)
            }
            Kind::Binary(op, pair) => self.binary(*op, pair),
            Kind::Compare(first, rest) => self.compare(first, rest),
            Kind::Concat(parts) => {
                let mut out = Writer::new(&self.budget)?;
                for part in parts {
                    python::str(&self.eval(part)?, &mut out)?;
                }
                Ok(Value::written(out))
            }
            Kind::If(then, condition, otherwise) => {
                if self.eval(condition)?.is_true() {
                    return self.eval(then);
                }
                otherwise.as_ref().map_or(Ok(Value::Undefined(None)), |otherwise| self.eval(otherwise))
            }
        }
    }

    fn name(&self, name: &Name) -> Outcome<Value> {
        Ok(match self.scope.get(name)? {
            Some(value) => value,
            None if functions::exists(name) => Value::Function(Arc::clone(name)),
            None => Value::Undefined(Some(Arc::clone(name))),
        })
    }

    fn items(&mut self, exprs: &[Expr]) -> Outcome<Items> {
        let mut items = Items::new(&self.budget);
        for expr in exprs {
            items.push(self.eval(expr)?)?;
        }
        Ok(items)
    }

    fn dict(&mut self, pairs: &[(Expr, Expr)]) -> Outcome<Value> {
        let mut entries = Vec::with_capacity(pairs.len());
        for (key, value) in pairs {
            let (key, value) = (self.eval(key)?, self.eval(value)?);
            functions::put(&mut entries, key, value, &self.budget)?;
        }
        Value::dict(&self.budget, entries)
    }

    fn binary(&mut self, op: Binary, pair: &[Expr; 2]) -> Outcome<Value> {
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

    fn compare(&mut self, first: &Expr, rest: &[(Compare, Expr)]) -> Outcome<Value> {
        let mut left = self.eval(first)?;
        for (op, right) in rest {
            let right = self.eval(right)?;
            if !checks::compare(*op, &left, &right, &self.budget)? {
                return Ok(Value::Bool(false));
            }
            left = right;
        }
        Ok(Value::Bool(true))
    }

    pub(super) fn attr(&self, of: &Value, name: &Name) -> Outcome<Value> {
        if let Some(fault) = of.undefined_fault() {
            return Err(fault);
        }
        if methods::exists(of, name) {
            return Value::method(&self.budget, of, name);
        }
        let found = match of {
            Value::Dict(dict) => ops::entry_of(dict.entries(), name, &self.budget)?,
            Value::Namespace(namespace) => {
                let entries = namespace.entries.borrow();
                self.budget.work(entries.len() / 8)?;
                entries.iter().find(|(found, _)| found == name).map(|(_, value)| value.clone())
            }
            Value::Loop(this) => loop_attr(this, name),
            Value::Macro(closure) if &**name == "name" => Some(Value::text(&self.budget, &closure.decl.name)?),
            Value::Helper(helper) => match &helper.kind {
                HelperKind::Cycler(items) if &**name == "current" => items.get(helper.at.get()).cloned(),
                _ => None,
            },
            _ => None,
        };
        Ok(found.unwrap_or_else(|| Value::Undefined(Some(Arc::clone(name)))))
    }

    /// `of[index]`: an item, or an attribute of that name.
    pub(super) fn item(&self, of: &Value, index: &Value) -> Outcome<Value> {
        let found = ops::item(of, index, &self.budget)?;
        match (&found, index.as_str()) {
            (Value::Undefined(_), Some(name)) if !matches!(of, Value::Dict(_)) || methods::exists(of, name) => {
                self.attr(of, &Name::from(name))
            }
            _ => Ok(found),
        }
    }

    fn call_expr(&mut self, callee: &Expr, args: &[Arg]) -> Outcome<Value> {
        if let Kind::Attr(of, name) = &callee.kind {
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

    pub(super) fn args(&mut self, args: &[Arg]) -> Outcome<Args> {
        let mut out = Args::default();
        for arg in args {
            let value = self.eval(arg.expr())?;
            match arg {
                Arg::Plain(_) => out.plain.push(value),
                Arg::Named(name, _) => out.named.push((Arc::clone(name), value)),
                Arg::Spread(_) => {
                    let items = value.iterate(&self.budget)?;
                    self.budget.work(items.len() * STEPS_PER_SPREAD)?;
                    out.plain.extend(items.iter().cloned());
                }
                Arg::SpreadNamed(_) => {
                    let Value::Dict(dict) = &value else {
                        return Err(Fault::wrong(format!("`**` takes a dict, and not a {}", value.kind())));
                    };
                    self.budget.work(dict.entries().len() * STEPS_PER_SPREAD)?;
                    for (key, value) in dict.entries() {
                        let name = key.as_str().ok_or_else(|| Fault::wrong("`**` takes keys that are strings"))?;
                        self.budget.work(name.len() / STEPS_PER_SPREAD)?;
                        out.named.push((Name::from(name), value.clone()));
                    }
                }
            }
        }
        Ok(out)
    }

    /// Applies a filter.
    pub(super) fn apply(&mut self, value: Value, filter: &Call) -> Outcome<Value> {
        let args = self.args(&filter.args)?;
        filters::apply(self, &filter.name, value, args).map_err(|fault| fault.at(filter.line))
    }

    /// Calls a value.
    pub(super) fn call(&mut self, function: &Value, args: Args) -> Outcome<Value> {
        self.budget.enter()?;
        let value = match function {
            Value::Macro(closure) => self.call_macro(closure, args),
            Value::Function(name) => functions::call(self, name, args),
            Value::Method(method) => methods::call(self, &method.of, &method.name, args),
            Value::Loop(this) => self.recurse(this, args),
            Value::Helper(helper) => match &helper.kind {
                HelperKind::Joiner(separator) => {
                    let [] = args.bind("joiner", [])?;
                    let used = helper.at.replace(1) != 0;
                    if used { Ok(separator.clone()) } else { Value::text(&self.budget, "") }
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

    fn recurse(&mut self, this: &Rc<Loop>, args: Args) -> Outcome<Value> {
        let [over] = args.bind("loop", ["iterable"])?;
        if !this.decl.recursive {
            return Err(Fault::wrong("`loop` can be called in a loop that is marked `recursive` only"));
        }
        let items = over.unwrap_or(Value::Undefined(None)).iterate(&self.budget)?;
        let mut out = Writer::new(&self.budget)?;
        self.run_loop(&this.decl, items, this.depth + 1, &mut out)?;
        Ok(Value::written(out))
    }

    fn call_macro(&mut self, closure: &Rc<Closure>, args: Args) -> Outcome<Value> {
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
                (None, None, None) => Value::Undefined(Some(Arc::clone(param))),
            };
            self.scope.set(param, value)?;
        }
        self.special(&decl.name, decl.uses, rest, named)?;
        let mut out = Writer::new(&self.budget)?;
        self.body(&decl.body, &mut out)?;
        self.scope.pop();
        Ok(Value::written(out))
    }

    /// Sets `caller`, `varargs` and `kwargs` where the macro names them.
    fn special(
        &mut self,
        callee: &str,
        uses: super::ast::Uses,
        rest: Vec<Value>,
        mut named: Vec<(Name, Value)>,
    ) -> Outcome<()> {
        if uses.caller {
            let caller = named.iter().position(|(name, _)| &**name == "caller").map(|at| named.remove(at));
            if let Some((name, value)) = caller {
                self.scope.set(&name, value)?;
            }
        }
        if uses.varargs {
            let rest = Value::list(&self.budget, rest, true)?;
            self.scope.set(&Name::from("varargs"), rest)?;
        }
        if uses.kwargs {
            let mut entries = Vec::new();
            for (name, value) in named.drain(..) {
                entries.push((Value::text(&self.budget, &name)?, value));
            }
            let entries = Value::dict(&self.budget, entries)?;
            self.scope.set(&Name::from("kwargs"), entries)?;
        }
        match named.first() {
            Some((name, _)) => Err(Fault::wrong(format!("macro `{callee}` has no argument `{name}`"))),
            None => Ok(()),
        }
    }
}

fn unary(op: Unary, of: &Value) -> Outcome<Value> {
    if op == Unary::Not {
        return Ok(Value::Bool(!of.is_true()));
    }
    let sign = if op == Unary::Minus { -1 } else { 1 };
    match of {
        Value::Float(value) => Ok(Value::Float(*value * f64::from(sign))),
        _ => match of.as_int() {
            Some(value) => {
                let value = value.checked_mul(sign.into());
                value.map(Value::Int).ok_or_else(|| Fault::wrong("an integer has more than 128 bits"))
            }
            None => Err(of
                .undefined_fault()
                .unwrap_or_else(|| Fault::wrong(format!("a value of kind {} has no sign", of.kind())))),
        },
    }
}

fn loop_attr(this: &Loop, name: &str) -> Option<Value> {
    let (at, len) = (this.at.get(), this.items.len());
    let int = |value: usize| Some(Value::Int(value as i128));
    match name {
        "index" => int(at + 1),
        "index0" => int(at),
        "revindex" => int(len.saturating_sub(at)),
        "revindex0" => int(len.saturating_sub(at + 1)),
        "first" => Some(Value::Bool(at == 0)),
        "last" => Some(Value::Bool(at + 1 >= len)),
        "length" => int(len),
        "depth" => int(this.depth + 1),
        "depth0" => int(this.depth),
        "previtem" => at.checked_sub(1).and_then(|at| this.items.get(at)).cloned(),
        "nextitem" => this.items.get(at + 1).cloned(),
        _ => None,
    }
}
