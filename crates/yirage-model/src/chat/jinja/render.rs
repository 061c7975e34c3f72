//! Statements.

use std::rc::Rc;
use std::sync::Arc;

use serde_json::Value as Json;

use super::args::Args;
use super::ast::{
    AssignTarget, FilterCall, JinjaExpr, JinjaExprKind, JinjaForLoop, JinjaName, JinjaTemplate, Macro, Stmt, StmtKind,
};
use super::budget::{BudgetedWriter, RenderBudget};
use super::fault::{Fault, JinjaResult};
use super::python;
use super::scope::JinjaScope;
use super::value::{Items, JinjaList, JinjaValue, Loop, Namespace};
use crate::chat::limits::MAX_STEPS;
use crate::chat::trial_steps::TrialSteps;

/// What a template is given.
pub(in crate::chat) struct RenderInput<'a> {
    /// The variables; the last one of a name counts.
    pub(in crate::chat) variables: Vec<(&'a str, TemplateVariable<'a>)>,
    /// Seconds since 1970-01-01 UTC.
    pub(in crate::chat) now: i64,
    /// What the rendering takes its steps from, where it is a trial.
    pub(in crate::chat) trial: Option<&'a TrialSteps>,
}

/// The value of a variable.
pub(in crate::chat) enum TemplateVariable<'a> {
    None,
    Bool(bool),
    Text(&'a str),
    List(&'a [Json]),
    Json(&'a Json),
}

/// Renders a template.
pub(in crate::chat) fn render(tree: &JinjaTemplate, input: &RenderInput<'_>) -> JinjaResult<String> {
    let budget = RenderBudget::new(input.trial.map_or(MAX_STEPS, TrialSteps::left));
    let rendered = render_within(tree, input, &budget);
    if let Some(trial) = input.trial {
        trial.take(budget.steps());
    }
    rendered
}

fn render_within(tree: &JinjaTemplate, input: &RenderInput<'_>, budget: &Rc<RenderBudget>) -> JinjaResult<String> {
    let texts = tree.texts.iter().map(|text| JinjaValue::text(budget, text)).collect::<JinjaResult<Vec<_>>>()?;
    let given = input.variables.iter().map(|(name, value)| Ok((JinjaName::from(*name), value.value(budget)?)));
    let given = given.collect::<JinjaResult<Vec<_>>>()?;
    let scope = JinjaScope::new(budget, given)?;
    let mut rendering = Rendering {
        budget: Rc::clone(budget),
        texts,
        scope,
        namespaces: Vec::new(),
        now: input.now,
        name_of_loop: JinjaName::from("loop"),
    };
    let mut out = BudgetedWriter::new(&rendering.budget)?;
    let done = rendering.body(&tree.body, &mut out);
    rendering.end();
    done?;
    Ok(out.into_parts().0)
}

impl TemplateVariable<'_> {
    fn value(&self, budget: &Rc<RenderBudget>) -> JinjaResult<JinjaValue> {
        match self {
            Self::None => Ok(JinjaValue::None),
            Self::Bool(value) => Ok(JinjaValue::Bool(*value)),
            Self::Text(text) => JinjaValue::text(budget, text),
            Self::List(items) => list_of(items, budget),
            Self::Json(json) => from_json(json, budget),
        }
    }
}

fn list_of(items: &[Json], budget: &Rc<RenderBudget>) -> JinjaResult<JinjaValue> {
    let mut list = Items::new(budget);
    items.iter().try_for_each(|item| list.push(from_json(item, budget)?))?;
    list.list()
}

/// Key order stays as it was: templates print tools in the order their author wrote them.
fn from_json(json: &Json, budget: &Rc<RenderBudget>) -> JinjaResult<JinjaValue> {
    budget.enter()?;
    let value = match json {
        Json::Null => JinjaValue::None,
        Json::Bool(v) => JinjaValue::Bool(*v),
        Json::Number(n) => number(n.as_str(), budget)?,
        Json::String(text) => JinjaValue::text(budget, text)?,
        Json::Array(items) => list_of(items, budget)?,
        Json::Object(entries) => {
            let pair = |(key, value): (&String, &Json)| Ok((JinjaValue::text(budget, key)?, from_json(value, budget)?));
            JinjaValue::dict(budget, entries.iter().map(pair).collect::<JinjaResult<Vec<_>>>()?)?
        }
    };
    budget.leave();
    Ok(value)
}

/// A number as Python's `json.loads` takes it: an integer keeps every digit.
fn number(written: &str, budget: &Rc<RenderBudget>) -> JinjaResult<JinjaValue> {
    if written.contains(['.', 'e', 'E']) {
        return Ok(JinjaValue::Float(written.parse().unwrap_or(f64::NAN)));
    }
    JinjaValue::integer(budget, written)
}

/// One rendering at work.
pub(super) struct Rendering {
    pub(super) budget: Rc<RenderBudget>,
    /// The string constants of the tree.
    pub(super) texts: Vec<JinjaValue>,
    pub(super) scope: JinjaScope,
    namespaces: Vec<Rc<Namespace>>,
    pub(super) now: i64,
    name_of_loop: JinjaName,
}

/// How a statement ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    Next,
    Break,
    Continue,
}

impl Rendering {
    /// Empties the namespaces, so that those which hold each other are freed too.
    fn end(&mut self) {
        for namespace in self.namespaces.drain(..).collect::<Vec<_>>().iter() {
            namespace.entries.borrow_mut().clear();
        }
    }

    pub(super) fn new_namespace(&mut self, entries: Vec<(JinjaName, JinjaValue)>) -> JinjaResult<JinjaValue> {
        let names: usize = entries.iter().map(|(name, _)| 96 + name.len()).sum();
        let held = self.budget.reserve(128 + names)?;
        let namespace = Rc::new(Namespace { entries: entries.into(), _held: held });
        self.namespaces.push(Rc::clone(&namespace));
        Ok(JinjaValue::Namespace(namespace))
    }

    pub(super) fn body(&mut self, body: &[Stmt], out: &mut BudgetedWriter) -> JinjaResult<Flow> {
        for stmt in body {
            self.budget.work(1)?;
            self.budget.enter().map_err(|fault| fault.at(stmt.line))?;
            let flow = self.statement(stmt, out).map_err(|fault| fault.at(stmt.line))?;
            self.budget.leave();
            if flow != Flow::Next {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    fn statement(&mut self, stmt: &Stmt, out: &mut BudgetedWriter) -> JinjaResult<Flow> {
        match &stmt.kind {
            StmtKind::Data(text) => out.push_str(text)?,
            StmtKind::Emit(shown) => {
                let value = self.eval(shown)?;
                python::str(&value, out)?;
            }
            StmtKind::If(cases, otherwise) => return self.conditions(cases, otherwise, out),
            StmtKind::For(decl) => {
                let items = self.eval(&decl.over)?.iterate(&self.budget)?;
                self.run_loop(decl, items, 0, out)?;
            }
            StmtKind::Set(target, value) => {
                let value = self.eval(value)?;
                self.assign(target, value)?;
            }
            StmtKind::SetBlock(target, filters, body) => {
                let text = self.captured(filters, body)?;
                self.assign(target, text)?;
            }
            StmtKind::With(set, body) => return self.with(set, body, out),
            StmtKind::Macro(decl) => {
                let value = self.closure(decl)?;
                self.scope.set(&decl.name, value)?;
            }
            StmtKind::Call(caller, callee) => {
                let text = self.call_block(caller, callee)?;
                python::str(&text, out)?;
            }
            StmtKind::Filter(filters, body) => {
                let text = self.captured(filters, body)?;
                python::str(&text, out)?;
            }
            StmtKind::Do(value) => drop(self.eval(value)?),
            StmtKind::Break => return Ok(Flow::Break),
            StmtKind::Continue => return Ok(Flow::Continue),
        }
        Ok(Flow::Next)
    }

    fn conditions(
        &mut self,
        cases: &[(JinjaExpr, Vec<Stmt>)],
        otherwise: &[Stmt],
        out: &mut BudgetedWriter,
    ) -> JinjaResult<Flow> {
        for (condition, body) in cases {
            if self.eval(condition)?.is_true() {
                return self.body(body, out);
            }
        }
        self.body(otherwise, out)
    }

    fn with(
        &mut self,
        set: &[(AssignTarget, JinjaExpr)],
        body: &[Stmt],
        out: &mut BudgetedWriter,
    ) -> JinjaResult<Flow> {
        // The values are those outside of the block.
        let values = set.iter().map(|(_, value)| self.eval(value)).collect::<JinjaResult<Vec<_>>>()?;
        self.scope.push(None)?;
        set.iter().zip(values).try_for_each(|((target, _), value)| self.assign(target, value))?;
        let flow = self.body(body, out)?;
        self.scope.pop();
        Ok(flow)
    }

    /// What a block writes, through filters.
    fn captured(&mut self, filters: &[FilterCall], body: &[Stmt]) -> JinjaResult<JinjaValue> {
        let mut inner = BudgetedWriter::new(&self.budget)?;
        self.scope.push(None)?;
        self.body(body, &mut inner)?;
        self.scope.pop();
        let written = JinjaValue::written(inner);
        filters.iter().try_fold(written, |value, filter| self.apply(value, filter))
    }

    pub(super) fn assign(&mut self, target: &AssignTarget, value: JinjaValue) -> JinjaResult<()> {
        match target {
            AssignTarget::Name(name) => self.scope.set(name, value),
            AssignTarget::Attr(of, name) => match self.scope.get(of)? {
                Some(JinjaValue::Namespace(namespace)) => self.set_attr(&namespace, name, value),
                _ => Err(Fault::wrong(format!("`{of}.{name}` cannot be set: only a namespace takes attributes"))),
            },
            AssignTarget::Tuple(targets) => {
                let items = value.iterate(&self.budget)?;
                if items.len() != targets.len() {
                    let (wanted, found) = (targets.len(), items.len());
                    return Err(Fault::wrong(format!("{found} values cannot be assigned to {wanted} names")));
                }
                targets.iter().zip(items.iter()).try_for_each(|(target, item)| self.assign(target, item.clone()))
            }
        }
    }

    fn set_attr(&self, namespace: &Namespace, name: &JinjaName, value: JinjaValue) -> JinjaResult<()> {
        let mut entries = namespace.entries.borrow_mut();
        self.budget.work(entries.len() / 8)?;
        // What was there is dropped only when nothing is borrowed any more.
        let old = match entries.iter_mut().find(|(found, _)| found == name) {
            Some((_, slot)) => Some(std::mem::replace(slot, value)),
            None => {
                entries.push((Arc::clone(name), value));
                None
            }
        };
        drop(entries);
        drop(old);
        Ok(())
    }

    /// Runs the body of a loop over `items`; `depth` is the depth of its recursion.
    pub(super) fn run_loop(
        &mut self,
        decl: &Arc<JinjaForLoop>,
        items: Rc<JinjaList>,
        depth: usize,
        out: &mut BudgetedWriter,
    ) -> JinjaResult<()> {
        self.scope.push(None)?;
        let items = match &decl.only_if {
            Some(condition) => self.filtered(decl, condition, &items)?,
            None => items,
        };
        let this = JinjaValue::new_loop(&self.budget, decl, items, depth)?;
        let done = self.iterations(decl, &this, out);
        this.over.set(true);
        let kept = this.changed.borrow_mut().take();
        drop(kept);
        let whole = done?;
        self.scope.clear();
        // As the reference engine has it: what was left out by `continue` or `break` was none.
        if !whole {
            self.body(&decl.otherwise, out)?;
        }
        self.scope.pop();
        Ok(())
    }

    /// Whether some iteration came to the end of the body.
    fn iterations(&mut self, decl: &JinjaForLoop, this: &Rc<Loop>, out: &mut BudgetedWriter) -> JinjaResult<bool> {
        let mut whole = false;
        for (at, item) in this.items.iter().enumerate() {
            self.budget.work(1)?;
            this.at.set(at);
            self.scope.clear();
            let name = Arc::clone(&self.name_of_loop);
            self.scope.set(&name, JinjaValue::Loop(Rc::clone(this)))?;
            self.assign(&decl.target, item.clone())?;
            match self.body(&decl.body, out)? {
                Flow::Next => whole = true,
                Flow::Continue => {}
                Flow::Break => break,
            }
        }
        Ok(whole)
    }

    fn filtered(
        &mut self,
        decl: &JinjaForLoop,
        condition: &JinjaExpr,
        items: &JinjaList,
    ) -> JinjaResult<Rc<JinjaList>> {
        let mut kept = Items::new(&self.budget);
        for item in items.iter() {
            self.assign(&decl.target, item.clone())?;
            if self.eval(condition)?.is_true() {
                kept.push(item.clone())?;
            }
        }
        self.scope.clear();
        kept.list()?.iterate(&self.budget)
    }

    fn closure(&mut self, decl: &Arc<Macro>) -> JinjaResult<JinjaValue> {
        JinjaValue::closure(&self.budget, decl, self.scope.around()?, self.scope.is_nested())
    }

    fn call_block(&mut self, caller: &Arc<Macro>, callee: &JinjaExpr) -> JinjaResult<JinjaValue> {
        let JinjaExprKind::Call(function, args) = &callee.kind else { return Err(Fault::wrong("`call` needs a call")) };
        let function = self.eval(function)?;
        let mut args: Args = self.args(args)?;
        args.named.push((Arc::clone(&caller.name), self.closure(caller)?));
        self.call(&function, args)
    }
}
