//! The budget of one rendering: bytes that are held, steps that are made, time that passes.
//!
//! Every value takes its bytes from here before it is built and gives them back when it is dropped; all text grows
//! through a [`BudgetedWriter`]. So nothing a template does can take more than [`limits::MAX_BYTES`], however it does it.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Instant;

use super::fault::{Fault, JinjaResult};
use crate::chat::limits;

/// Bytes that are read or written in one step.
const BYTES_PER_STEP: usize = 64;
/// Bytes that are written at once where text is repeated.
const BLOCK_BYTES: usize = 256;
/// Steps between two looks at the clock.
const STEPS_PER_LOOK: u64 = 4_096;

#[derive(Debug)]
pub(super) struct RenderBudget {
    bytes: Cell<usize>,
    steps: Cell<u64>,
    max_steps: u64,
    next_look: Cell<u64>,
    depth: Cell<u32>,
    begun: Instant,
}

impl RenderBudget {
    pub(super) fn new(max_steps: u64) -> Rc<Self> {
        let (bytes, steps, depth) = (Cell::new(0), Cell::new(0), Cell::new(0));
        let next_look = Cell::new(max_steps.min(STEPS_PER_LOOK));
        Rc::new(Self { bytes, steps, max_steps, next_look, depth, begun: Instant::now() })
    }

    /// Steps that were taken.
    pub(super) fn steps(&self) -> u64 {
        self.steps.get()
    }

    /// Takes steps.
    pub(super) fn work(&self, steps: usize) -> JinjaResult<()> {
        let done = self.steps.get().saturating_add(steps as u64);
        self.steps.set(done);
        if done < self.next_look.get() {
            return Ok(());
        }
        self.next_look.set(done + STEPS_PER_LOOK);
        if done > self.max_steps {
            return Err(Fault::limit("number of steps", self.max_steps));
        }
        if self.begun.elapsed() > limits::MAX_TIME {
            return Err(Fault::limit("time of rendering in seconds", limits::MAX_TIME.as_secs()));
        }
        Ok(())
    }

    /// Takes the steps of reading or writing so many bytes.
    pub(super) fn read(&self, bytes: usize) -> JinjaResult<()> {
        self.work(1 + bytes / BYTES_PER_STEP)
    }

    /// Takes bytes until the answer is dropped.
    pub(super) fn reserve(self: &Rc<Self>, bytes: usize) -> JinjaResult<BudgetReservation> {
        let mut held = BudgetReservation { budget: Rc::clone(self), bytes: 0 };
        held.grow(bytes)?;
        Ok(held)
    }

    /// Goes one level deeper; [`RenderBudget::leave`] comes back.
    pub(super) fn enter(&self) -> JinjaResult<()> {
        if self.depth.get() >= limits::MAX_RECURSION {
            return Err(Fault::limit("depth of recursion", limits::MAX_RECURSION.into()));
        }
        self.depth.set(self.depth.get() + 1);
        Ok(())
    }

    pub(super) fn leave(&self) {
        self.depth.set(self.depth.get().saturating_sub(1));
    }
}

/// Bytes taken from a budget; they go back when this is dropped.
#[derive(Debug)]
pub(super) struct BudgetReservation {
    budget: Rc<RenderBudget>,
    bytes: usize,
}

impl BudgetReservation {
    /// Takes more, and the steps of writing them.
    pub(super) fn grow(&mut self, bytes: usize) -> JinjaResult<()> {
        let all = self.budget.bytes.get().saturating_add(bytes);
        if all > limits::MAX_BYTES {
            return Err(Fault::limit("memory of the rendering in bytes", limits::MAX_BYTES as u64));
        }
        self.budget.read(bytes)?;
        self.budget.bytes.set(all);
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for BudgetReservation {
    fn drop(&mut self) {
        self.budget.bytes.set(self.budget.bytes.get() - self.bytes);
    }
}

/// Text that grows within a budget.
#[derive(Debug)]
pub(super) struct BudgetedWriter {
    text: String,
    reservation: BudgetReservation,
}

impl BudgetedWriter {
    pub(super) fn new(budget: &Rc<RenderBudget>) -> JinjaResult<Self> {
        Ok(Self { text: String::new(), reservation: budget.reserve(TEXT_BYTES)? })
    }

    pub(super) fn push_str(&mut self, text: &str) -> JinjaResult<()> {
        self.reservation.grow(text.len())?;
        self.text.push_str(text);
        Ok(())
    }

    pub(super) fn push(&mut self, c: char) -> JinjaResult<()> {
        self.push_str(c.encode_utf8(&mut [0; 4]))
    }

    /// Writes `unit` so many times.
    pub(super) fn repeat(&mut self, unit: &str, times: usize) -> JinjaResult<()> {
        self.reservation.grow(unit.len().saturating_mul(times))?;
        let at_once = BLOCK_BYTES / unit.len().max(1) + 1;
        let block = unit.repeat(at_once);
        (0..times / at_once).for_each(|_| self.text.push_str(&block));
        self.text.push_str(&block[..times % at_once * unit.len()]);
        Ok(())
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    pub(super) fn budget(&self) -> &Rc<RenderBudget> {
        &self.reservation.budget
    }

    /// The text and the bytes it holds.
    pub(super) fn into_parts(self) -> (String, BudgetReservation) {
        (self.text, self.reservation)
    }
}

/// What a text takes beside its characters.
const TEXT_BYTES: usize = 80;
