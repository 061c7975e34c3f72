//! What all threads of a group have of a register, side by side: a function of registers is computed for some of them.

use super::fault::KernelProblem;
use crate::place::{Register, Variable};

/// What is wrong, and with which thread.
pub(super) struct LaneFault {
    pub(super) lane: usize,
    pub(super) problem: KernelProblem,
}

/// Threads of a group that run, in the order in which they do.
pub(super) type LaneSet<'a> = &'a [u16];

/// The registers and variables of a group.
pub(super) struct LaneValues {
    registers: Vec<Vec<u32>>,
    variables: Vec<Vec<u32>>,
}

impl LaneValues {
    pub(super) fn new(registers: usize, variables: usize, threads: u32) -> LaneValues {
        let zeros = |n| vec![vec![0; threads as usize]; n];
        LaneValues { registers: zeros(registers), variables: zeros(variables) }
    }

    /// What all threads have.
    pub(super) fn of(&self, register: Register) -> &[u32] {
        &self.registers[register.0 as usize]
    }

    /// Takes the place of a register out, to be filled and [put back](LaneValues::put).
    pub(super) fn take(&mut self, register: Register) -> Vec<u32> {
        std::mem::take(&mut self.registers[register.0 as usize])
    }

    pub(super) fn put(&mut self, register: Register, values: Vec<u32>) {
        self.registers[register.0 as usize] = values;
    }

    pub(super) fn set(&mut self, variable: Variable, value: Register, lanes: LaneSet<'_>) {
        copy(&mut self.variables[variable.0 as usize], &self.registers[value.0 as usize], lanes);
    }

    pub(super) fn get(&mut self, to: Register, variable: Variable, lanes: LaneSet<'_>) {
        copy(&mut self.registers[to.0 as usize], &self.variables[variable.0 as usize], lanes);
    }

    /// The same for all.
    pub(super) fn fill(&mut self, to: Register, value: u32, lanes: LaneSet<'_>) {
        self.each(to, lanes, |_| value);
    }

    /// A function of the thread's number.
    pub(super) fn each(&mut self, to: Register, lanes: LaneSet<'_>, f: impl Fn(usize) -> u32) {
        let out = &mut self.registers[to.0 as usize];
        lanes.iter().for_each(|&lane| out[usize::from(lane)] = f(usize::from(lane)));
    }

    pub(super) fn map(&mut self, to: Register, a: Register, lanes: LaneSet<'_>, f: impl Fn(u32) -> u32) {
        let mut out = self.take(to);
        let a = self.of(a);
        if lanes.len() == out.len() {
            out.iter_mut().zip(a).for_each(|(out, &a)| *out = f(a));
        } else {
            lanes.iter().map(|&lane| usize::from(lane)).for_each(|lane| out[lane] = f(a[lane]));
        }
        self.put(to, out);
    }

    pub(super) fn map2(
        &mut self,
        to: Register,
        a: Register,
        b: Register,
        lanes: LaneSet<'_>,
        f: impl Fn(u32, u32) -> u32,
    ) {
        let mut out = self.take(to);
        let (a, b) = (self.of(a), self.of(b));
        if lanes.len() == out.len() {
            out.iter_mut().zip(a.iter().zip(b)).for_each(|(out, (&a, &b))| *out = f(a, b));
        } else {
            lanes.iter().map(|&lane| usize::from(lane)).for_each(|lane| out[lane] = f(a[lane], b[lane]));
        }
        self.put(to, out);
    }

    pub(super) fn select(&mut self, to: Register, condition: Register, a: Register, b: Register, lanes: LaneSet<'_>) {
        let mut out = self.take(to);
        let (condition, a, b) = (self.of(condition), self.of(a), self.of(b));
        for &lane in lanes {
            let lane = usize::from(lane);
            out[lane] = if condition[lane] != 0 { a[lane] } else { b[lane] };
        }
        self.put(to, out);
    }

    /// Counters of a loop, a step further.
    pub(super) fn advance(&mut self, counter: Register, step: Register, lanes: LaneSet<'_>) -> Result<(), LaneFault> {
        let mut counters = self.take(counter);
        let steps = self.of(step);
        let done = lanes.iter().map(|&lane| usize::from(lane)).try_for_each(|lane| {
            let (counter, step) = (counters[lane], steps[lane]);
            let problem = match step {
                0 => KernelProblem::LoopStep,
                _ => KernelProblem::LoopOverflow { counter, step },
            };
            let next = counter.checked_add(step).filter(|_| step > 0).ok_or(LaneFault { lane, problem })?;
            counters[lane] = next;
            Ok(())
        });
        self.put(counter, counters);
        done
    }

    /// A function that not all numbers have a value of.
    pub(super) fn try_map(
        &mut self,
        to: Register,
        a: Register,
        lanes: LaneSet<'_>,
        f: impl Fn(u32) -> Result<u32, KernelProblem>,
    ) -> Result<(), LaneFault> {
        self.try_map2(to, a, a, lanes, |a, _| f(a))
    }

    pub(super) fn try_map2(
        &mut self,
        to: Register,
        a: Register,
        b: Register,
        lanes: LaneSet<'_>,
        f: impl Fn(u32, u32) -> Result<u32, KernelProblem>,
    ) -> Result<(), LaneFault> {
        let mut out = self.take(to);
        let (a, b) = (self.of(a), self.of(b));
        let done = lanes.iter().map(|&lane| usize::from(lane)).try_for_each(|lane| {
            out[lane] = f(a[lane], b[lane]).map_err(|problem| LaneFault { lane, problem })?;
            Ok(())
        });
        self.put(to, out);
        done
    }
}

fn copy(to: &mut [u32], from: &[u32], lanes: LaneSet<'_>) {
    if lanes.len() == to.len() {
        to.copy_from_slice(from);
    } else {
        lanes.iter().map(|&lane| usize::from(lane)).for_each(|lane| to[lane] = from[lane]);
    }
}
