//! Variables: what a name means where.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use super::ast::JinjaName;
use super::budget::{BudgetReservation, RenderBudget};
use super::fault::JinjaResult;
use super::value::{Closure, JinjaValue};

type Variables = HashMap<JinjaName, JinjaValue, foldhash::fast::RandomState>;

/// What a variable takes in a frame.
const VARIABLE_BYTES: usize = 96;

/// The variables of one block.
struct JinjaFrame {
    variables: Variables,
    /// The frame is a macro's: behind it come the variables around the macro, then the outermost ones.
    of: Option<Rc<Closure>>,
    reservation: BudgetReservation,
}

/// All variables, the innermost block last.
pub(super) struct JinjaScope {
    budget: Rc<RenderBudget>,
    /// What the template was given.
    globals: Variables,
    frames: Vec<JinjaFrame>,
}

impl JinjaScope {
    pub(super) fn new(budget: &Rc<RenderBudget>, given: Vec<(JinjaName, JinjaValue)>) -> JinjaResult<Self> {
        let mut scope = Self { budget: Rc::clone(budget), globals: given.into_iter().collect(), frames: Vec::new() };
        scope.push(None)?;
        Ok(scope)
    }

    /// Begins a block, or a macro.
    pub(super) fn push(&mut self, of: Option<Rc<Closure>>) -> JinjaResult<()> {
        let held = self.budget.reserve(VARIABLE_BYTES)?;
        self.frames.push(JinjaFrame { variables: Variables::default(), of, reservation: held });
        Ok(())
    }

    /// Ends the innermost block.
    pub(super) fn pop(&mut self) {
        self.frames.pop();
    }

    /// Forgets the variables of the innermost block.
    pub(super) fn clear(&mut self) {
        if let Some(frame) = self.frames.last_mut() {
            frame.variables.clear();
        }
    }

    /// Sets a variable of the innermost block.
    pub(super) fn set(&mut self, name: &JinjaName, value: JinjaValue) -> JinjaResult<()> {
        let Some(frame) = self.frames.last_mut() else { return Ok(()) };
        if let Some(slot) = frame.variables.get_mut(name) {
            *slot = value;
            return Ok(());
        }
        frame.reservation.grow(VARIABLE_BYTES)?;
        frame.variables.insert(Arc::clone(name), value);
        Ok(())
    }

    pub(super) fn get(&self, name: &JinjaName) -> JinjaResult<Option<JinjaValue>> {
        for frame in self.frames.iter().rev() {
            if let Some(value) = frame.variables.get(name) {
                return Ok(Some(value.clone()));
            }
            let Some(closure) = &frame.of else { continue };
            self.budget.work(closure.around.len() / 8)?;
            if let Some((_, value)) = closure.around.iter().find(|(found, _)| found == name) {
                return Ok(Some(value.clone()));
            }
            if closure.decl.name == *name && closure.nested {
                return Ok(Some(JinjaValue::Macro(Rc::clone(closure))));
            }
            if let Some(value) = self.frames.first().and_then(|outermost| outermost.variables.get(name)) {
                return Ok(Some(value.clone()));
            }
            break;
        }
        Ok(self.globals.get(name).cloned())
    }

    /// The variables that a macro made here takes along: all but the outermost ones, which it sees as they change.
    pub(super) fn around(&self) -> JinjaResult<Vec<(JinjaName, JinjaValue)>> {
        let mut around: Vec<(JinjaName, JinjaValue)> = Vec::new();
        for frame in self.frames.iter().skip(1).rev() {
            let outer = frame.of.iter().flat_map(|closure| closure.around.iter());
            let all = frame.variables.iter().chain(outer.map(|(name, value)| (name, value)));
            for (name, value) in all {
                self.budget.work(1 + around.len() / 8)?;
                if !around.iter().any(|(known, _)| known == name) {
                    around.push((Arc::clone(name), value.clone()));
                }
            }
            if frame.of.is_some() {
                break;
            }
        }
        Ok(around)
    }

    /// Whether this is not the outermost block.
    pub(super) fn is_nested(&self) -> bool {
        self.frames.len() > 1
    }
}
