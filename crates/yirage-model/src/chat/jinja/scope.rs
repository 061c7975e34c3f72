//! Variables: what a name means where.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use super::ast::Name;
use super::budget::{Budget, Held};
use super::fault::Outcome;
use super::value::{Closure, Value};

type Variables = HashMap<Name, Value, foldhash::fast::RandomState>;

/// What a variable takes in a frame.
const VARIABLE_BYTES: usize = 96;

/// The variables of one block.
struct Frame {
    variables: Variables,
    /// The frame is a macro's: behind it come the variables around the macro, then the outermost ones.
    of: Option<Rc<Closure>>,
    held: Held,
}

/// All variables, the innermost block last.
pub(super) struct Scope {
    budget: Rc<Budget>,
    /// What the template was given.
    given: Variables,
    frames: Vec<Frame>,
}

impl Scope {
    pub(super) fn new(budget: &Rc<Budget>, given: Vec<(Name, Value)>) -> Outcome<Self> {
        let mut scope = Self { budget: Rc::clone(budget), given: given.into_iter().collect(), frames: Vec::new() };
        scope.push(None)?;
        Ok(scope)
    }

    /// Begins a block, or a macro.
    pub(super) fn push(&mut self, of: Option<Rc<Closure>>) -> Outcome<()> {
        let held = self.budget.hold(VARIABLE_BYTES)?;
        self.frames.push(Frame { variables: Variables::default(), of, held });
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
    pub(super) fn set(&mut self, name: &Name, value: Value) -> Outcome<()> {
        let Some(frame) = self.frames.last_mut() else { return Ok(()) };
        if let Some(slot) = frame.variables.get_mut(name) {
            *slot = value;
            return Ok(());
        }
        frame.held.grow(VARIABLE_BYTES)?;
        frame.variables.insert(Arc::clone(name), value);
        Ok(())
    }

    pub(super) fn get(&self, name: &Name) -> Outcome<Option<Value>> {
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
                return Ok(Some(Value::Macro(Rc::clone(closure))));
            }
            if let Some(value) = self.frames.first().and_then(|outermost| outermost.variables.get(name)) {
                return Ok(Some(value.clone()));
            }
            break;
        }
        Ok(self.given.get(name).cloned())
    }

    /// The variables that a macro made here takes along: all but the outermost ones, which it sees as they change.
    pub(super) fn around(&self) -> Outcome<Vec<(Name, Value)>> {
        let mut around: Vec<(Name, Value)> = Vec::new();
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
