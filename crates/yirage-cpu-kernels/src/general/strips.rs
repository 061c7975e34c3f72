//! Programs over strided operands, strip by strip.

use super::bases::Bases;
use super::chain::{self, To};
use super::convert::{read, spread, write};
use super::elem::Elem;
use super::hot::Hot;
use super::hot_rows;
use super::nest::{AccessPattern, Coords, Nest};
use super::operand::{LoopSizes, Strides};
use super::program::{ElementProgram, SCRATCH};
use super::ranges::Ranges;
use super::step::{self, ElementArg, ElementInstruction, ElementOpcode, LaneSource};
use crate::isa::Isa;
use crate::memory::prefetch;
use crate::simd::{LANES, Lanes, WithLanes, launch, stream_fence};
use std::mem::MaybeUninit;
use std::ops::Range;
use yirage_ir::expr::MAX_INPUTS;

/// A worker's strips.
#[repr(align(64))]
struct StripScratch([MaybeUninit<f32>; SCRATCH]);

/// A program and the loop over its operands.
pub(super) struct BoundElementProgram<'a> {
    program: &'a ElementProgram,
    /// The inputs' types in memory: floats may be others than the program's.
    elems: [Elem; MAX_INPUTS],
    nest: Nest,
    stored: Elem,
    /// Whether the output passes the caches by.
    streams: bool,
    /// The expression's own loop, where rows of all operands lie so that it may go over them.
    hot: Option<&'a Hot>,
    /// The strip that is stored without the program's last step, which rounds as storing does.
    unrounded: Option<u16>,
}

/// Bytes of an output that no cache is worth keeping for: who reads it next finds none of its beginning there.
const LARGE: usize = 32 << 20;

impl<'a> BoundElementProgram<'a> {
    /// Checks that types and dimensions fit.
    ///
    /// # Panics
    /// If they do not.
    pub(super) fn new(
        program: &'a ElementProgram,
        sizes: &LoopSizes,
        inputs: impl Iterator<Item = (Elem, Strides)>,
        output: (Elem, Strides),
    ) -> BoundElementProgram<'a> {
        let stored = output.0;
        assert_eq!(
            stored.compute_type(),
            program.result.compute_type(),
            "a result of {:?} as {stored:?}",
            program.result
        );
        let (mut count, mut elems) = (0, [Elem::F32; MAX_INPUTS]);
        let checked = inputs.inspect(|(elem, _)| {
            let wanted = program.inputs.get(count).map(|of| of.compute_type());
            assert_eq!(Some(elem.compute_type()), wanted, "input {count}");
            elems[count] = *elem;
            count += 1;
        });
        let nest = Nest::new(sizes, checked.map(|(_, strides)| strides).chain([output.1]));
        assert_eq!(count, program.inputs.len(), "inputs of a program");
        let dense = nest.of(count) == AccessPattern::Dense && is_compute_width(stored);
        let streams = dense && sizes.count() >= LARGE / 4;
        let plain = stored == Elem::F32 && elems[..count].iter().all(|elem| *elem == Elem::F32);
        let in_runs = plain && (0..=count).all(|o| lies_in_runs(&nest, o)) && nest.of(count) != AccessPattern::One;
        let hot = program.hot.as_ref().filter(|_| in_runs && !streams && !nest.is_short());
        BoundElementProgram { program, elems, nest, stored, streams, hot, unrounded: unrounded(program, stored) }
    }

    /// Output elements `range`, in row-major order.
    ///
    /// # Safety
    /// All elements of the range exist; the output's memory is one input's at the same places, or none's.
    pub(super) unsafe fn run(&self, isa: Isa, bases: &Bases, range: Range<usize>) {
        // SAFETY: what `BoundElementProgram::run` is promised; `StridedInput::within` and `StridedOutput::within`
        // check the operands.
        unsafe { self.run_ranges(isa, bases, Ranges::one(range)) }
    }

    /// Output elements of some ranges, in row-major order.
    ///
    /// # Safety
    /// All elements of the ranges exist; the output's memory is one input's at the same places, or none's.
    pub(super) unsafe fn run_ranges(&self, isa: Isa, bases: &Bases, ranges: Ranges) {
        match self.hot {
            // SAFETY: what `BoundElementProgram::run_ranges` is promised; `new` has chosen the loop for how the
            // operands lie.
            Some(hot) => unsafe { hot_rows::run(isa, hot, &self.nest, bases, self.program.inputs.len(), ranges) },
            // SAFETY: `StripKernel` wants of its range what `run_ranges` is promised of each.
            None => ranges.each().for_each(|range| unsafe { launch(isa, StripKernel { bound: self, bases, range }) }),
        }
    }
}

/// The strip that the last step rounds, where storing it as `stored` gives the same bits and the step before has made it.
fn unrounded(program: &ElementProgram, stored: Elem) -> Option<u16> {
    let [.., before, last] = program.steps.as_slice() else { return None };
    let rounds =
        matches!((last.code, stored), (ElementOpcode::Shorten, Elem::BF16) | (ElementOpcode::Halve, Elem::F16));
    (rounds && last.args[0] == ElementArg::Strip(before.out)).then_some(before.out)
}

/// Needs what [`BoundElementProgram::run`] is promised.
struct StripKernel<'a> {
    bound: &'a BoundElementProgram<'a>,
    bases: &'a Bases,
    range: Range<usize>,
}

impl WithLanes for StripKernel<'_> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        let StripKernel { bound, bases, range } = self;
        if range.is_empty() {
            return;
        }
        let mut scratch = StripScratch([MaybeUninit::uninit(); SCRATCH]);
        let mut pass = StripPass {
            bound,
            bases,
            strip: bound.program.strip(),
            scratch: scratch.0.as_mut_ptr().cast(),
            sources: [LaneSource::run(std::ptr::null()); MAX_INPUTS],
        };
        let mut coords = bound.nest.coords(range.start);
        let mut at = range.start;
        // SAFETY: the contract of `BoundElementProgram::run`; strips are taken from within the range.
        unsafe {
            pass.ones::<V>();
            while at < range.end {
                let n = bound.nest.together(&coords, pass.most(at).min(range.end - at));
                pass.strip::<V>(at, &coords, n);
                advance(&bound.nest, &mut coords, n);
                at += n;
            }
        }
        if bound.streams {
            stream_fence();
        }
    }
}

/// What goes over a range.
struct StripPass<'a> {
    bound: &'a BoundElementProgram<'a>,
    bases: &'a Bases,
    strip: usize,
    scratch: *mut f32,
    sources: [LaneSource; MAX_INPUTS],
}

impl StripPass<'_> {
    /// The strip of an input, of a step, or of the result.
    #[inline(always)]
    fn strip_ptr(&self, index: usize) -> *mut f32 {
        // `ElementProgram::strip` has divided the scratch by their number.
        self.scratch.wrapping_add(index * self.strip)
    }

    /// Elements that a strip from `at` on may have: what streams starts a line.
    #[inline(always)]
    fn most(&self, at: usize) -> usize {
        let line = (self.bases.out as usize / 4 + at) % LANES;
        if self.bound.streams && line > 0 { LANES - line } else { self.strip }
    }

    /// Inputs of one element, once.
    #[inline(always)]
    unsafe fn ones<V: Lanes>(&mut self) {
        let BoundElementProgram { program, elems, nest, .. } = self.bound;
        for i in (0..program.inputs.len()).filter(|i| nest.of(*i) == AccessPattern::One) {
            let slot = self.strip_ptr(i);
            // SAFETY: the contract of `BoundElementProgram::run`.
            unsafe { spread::<V>(elems[i], self.bases.inputs[i], slot) };
            self.sources[i] = LaneSource::same(slot);
        }
    }

    /// Elements `at..at + n`, of which the first is at `coords`.
    #[inline(always)]
    unsafe fn strip<V: Lanes>(&mut self, at: usize, coords: &Coords, n: usize) {
        let BoundElementProgram { program, elems, nest, unrounded, .. } = self.bound;
        // SAFETY: the contract of `BoundElementProgram::run`.
        unsafe {
            for i in (0..program.inputs.len()).filter(|i| nest.of(*i) != AccessPattern::One) {
                self.sources[i] = self.input::<V>(i, elems[i], at, coords, n);
            }
            if let Some(strip) = *unrounded {
                let result = self.strip_ptr(program.inputs.len() + strip as usize);
                self.steps::<V>(&program.steps[..program.steps.len() - 1], n, To::Strip(result));
                return self.store::<V>(result, at, coords, n);
            }
            let direct = self.direct(at, coords, n);
            let result = direct.unwrap_or_else(|| self.strip_ptr(program.inputs.len() + program.strips));
            let to = self.streamed(at, n).map_or(To::Strip(result), To::Stream);
            self.steps::<V>(&program.steps, n, to);
            if direct.is_none() && matches!(to, To::Strip(_)) {
                self.store::<V>(result, at, coords, n);
            }
        }
    }

    #[inline(always)]
    unsafe fn steps<V: Lanes>(&self, steps: &[ElementInstruction], n: usize, result: To) {
        let program = self.bound.program;
        let first = program.inputs.len();
        let Some((last, steps)) = steps.split_last() else { return };
        let source = |place: ElementArg| match place {
            ElementArg::Input(i) => self.sources[i as usize],
            ElementArg::Constant(c) => LaneSource::same(program.constants[c as usize].as_ptr()),
            ElementArg::Strip(s) => LaneSource::run(self.strip_ptr(first + s as usize)),
        };
        // One call, so that what all functions compile to is there once.
        for (i, ElementInstruction { code, args, out }) in steps.iter().chain([last]).enumerate() {
            let to = if i == steps.len() { result } else { To::Strip(self.strip_ptr(first + *out as usize)) };
            // SAFETY: each source and strip has n elements, up to a multiple of sixteen, or sixteen that are the same.
            match (*code, to) {
                (ElementOpcode::Chain(c), to) => unsafe {
                    chain::run::<V>(&program.chains[c as usize], n, source(args[0]), to)
                },
                (code, To::Strip(out) | To::Stream(out)) => unsafe { step::run::<V>(code, n, args.map(source), out) },
            }
        }
    }

    /// The elements of an input: where they lie, if a step may read them there, else in its strip.
    #[inline(always)]
    unsafe fn input<V: Lanes>(&self, i: usize, elem: Elem, at: usize, coords: &Coords, n: usize) -> LaneSource {
        let nest = &self.bound.nest;
        let (base, slot, bytes) = (self.bases.inputs[i], self.strip_ptr(i), elem.bytes() as isize);
        let in_row = n <= nest.left_in_row(coords);
        // SAFETY: the contract of `BoundElementProgram::run`; a strip has room for n elements up to a multiple of sixteen.
        unsafe {
            let (first, stride) = match nest.of(i) {
                AccessPattern::Dense => (base.wrapping_offset(at as isize * bytes), 1),
                _ => (base.wrapping_offset(nest.offset(i, coords) * bytes), nest.inner(i)),
            };
            if nest.of(i) != AccessPattern::Dense && !in_row {
                gather::<V>(nest, i, (base, elem), *coords, n, slot);
                return LaneSource::run(slot);
            }
            if stride == 0 {
                spread::<V>(elem, first, slot);
                return LaneSource::same(slot);
            }
            if stride == 1 && is_compute_width(elem) && n.is_multiple_of(LANES) {
                prefetch(first.wrapping_add(4 * n), 4 * n);
                return LaneSource::run(first.cast());
            }
            read::<V>(elem, first, stride, n, slot);
        }
        LaneSource::run(slot)
    }

    /// Where the last step may write the output's elements themselves.
    #[inline(always)]
    unsafe fn direct(&self, at: usize, coords: &Coords, n: usize) -> Option<*mut f32> {
        let BoundElementProgram { program, nest, stored, streams, .. } = self.bound;
        let operand = program.inputs.len();
        let first = match nest.of(operand) {
            AccessPattern::Dense => at as isize,
            _ if nest.inner(operand) == 1 && n <= nest.left_in_row(coords) => nest.offset(operand, coords),
            _ => return None,
        };
        // SAFETY: the contract of `BoundElementProgram::run`.
        (is_compute_width(*stored) && n.is_multiple_of(LANES) && !streams)
            .then(|| unsafe { self.bases.out.offset(4 * first).cast() })
    }

    /// Where the last step may write lines of the output past the caches.
    #[inline(always)]
    unsafe fn streamed(&self, at: usize, n: usize) -> Option<*mut f32> {
        let BoundElementProgram { program, streams, .. } = self.bound;
        let chain = program.steps.last().is_some_and(|step| matches!(step.code, ElementOpcode::Chain(_)));
        // SAFETY: the contract of `BoundElementProgram::run`; `most` has seen to it that it starts a line.
        (chain && *streams && n.is_multiple_of(LANES)).then(|| unsafe { self.bases.out.cast::<f32>().add(at) })
    }

    /// The result to the output's elements.
    #[inline(always)]
    unsafe fn store<V: Lanes>(&self, result: *const f32, at: usize, coords: &Coords, n: usize) {
        let BoundElementProgram { program, nest, stored, streams, .. } = self.bound;
        let (operand, out, bytes) = (program.inputs.len(), self.bases.out, stored.bytes() as isize);
        // SAFETY: the contract of `BoundElementProgram::run`.
        unsafe {
            if *streams && n.is_multiple_of(LANES) {
                // `most` has seen to it that it starts a line.
                return stream::<V>(result, out.cast::<f32>().add(at), n);
            }
            if nest.of(operand) == AccessPattern::Dense {
                return write::<V>(*stored, result, out.offset(at as isize * bytes), 1, n);
            }
            if n <= nest.left_in_row(coords) {
                let first = out.offset(nest.offset(operand, coords) * bytes);
                return scatter::<V>(*stored, result, first, nest.inner(operand), n);
            }
            let (mut coords, mut done) = (*coords, 0);
            while done < n {
                let run = nest.left_in_row(&coords).min(n - done);
                let first = out.offset(nest.offset(operand, &coords) * bytes);
                scatter::<V>(*stored, result.add(done), first, nest.inner(operand), run);
                nest.advance(&mut coords, run);
                done += run;
            }
        }
    }
}

/// Whole vectors to lines of memory, past the caches.
///
/// # Safety
/// There are `n` elements at both, up to a multiple of sixteen; `to` is at the start of a line.
#[inline(always)]
unsafe fn stream<V: Lanes>(from: *const f32, to: *mut f32, n: usize) {
    for i in (0..n).step_by(LANES) {
        // SAFETY: `stream` is promised n elements at both; `StridedInput::within` and `StridedOutput::within` check
        // the operands.
        unsafe { V::load(from.add(i)).stream(to.add(i)) };
    }
}

/// Whether an operand's elements lie one after the other in each row of the loop, or are all the same.
fn lies_in_runs(nest: &Nest, operand: usize) -> bool {
    nest.of(operand) != AccessPattern::Strided || nest.inner(operand) == 1
}

/// Whether an element in memory is what it is held as.
fn is_compute_width(elem: Elem) -> bool {
    matches!(elem, Elem::F32 | Elem::I32 | Elem::U32)
}

/// Moves on by `n` elements.
#[inline(always)]
fn advance(nest: &Nest, coords: &mut Coords, n: usize) {
    let mut left = n;
    while left > 0 {
        let run = nest.left_in_row(coords).min(left);
        nest.advance(coords, run);
        left -= run;
    }
}

/// Elements of several rows, one after the other.
#[inline(always)]
unsafe fn gather<V: Lanes>(
    nest: &Nest,
    operand: usize,
    (base, elem): (*const u8, Elem),
    mut coords: Coords,
    n: usize,
    out: *mut f32,
) {
    let mut done = 0;
    while done < n {
        let run = nest.left_in_row(&coords).min(n - done);
        let (whole, stride) = (run / LANES * LANES, nest.inner(operand));
        // What `read` fills up behind the last ones must not reach past the strip.
        let mut last = [0f32; LANES];
        // SAFETY: the contract of `BoundElementProgram::run`; the strip has room for n elements.
        unsafe {
            let first = base.wrapping_offset(nest.offset(operand, &coords) * elem.bytes() as isize);
            let out = out.add(done);
            read::<V>(elem, first, stride, whole, out);
            if whole < run {
                let first = first.offset(whole as isize * stride as isize * elem.bytes() as isize);
                read::<V>(elem, first, stride, run - whole, last.as_mut_ptr());
                std::ptr::copy_nonoverlapping(last.as_ptr(), out.add(whole), run - whole);
            }
        }
        nest.advance(&mut coords, run);
        done += run;
    }
    // SAFETY: the strip has room up to a multiple of sixteen.
    (n..n.next_multiple_of(LANES)).for_each(|i| unsafe { out.add(i).write(0.0) });
}

/// A run of a strip to elements a stride apart.
///
/// # Safety
/// There are `n` elements at both.
#[inline(always)]
unsafe fn scatter<V: Lanes>(elem: Elem, from: *const f32, p: *mut u8, stride: i64, n: usize) {
    let whole = n / LANES * LANES;
    // What `write` reads behind the last ones may not exist.
    let mut last = [0f32; LANES];
    // SAFETY: `scatter` is promised n elements at both; `StridedInput::within` and `StridedOutput::within` check the
    // operands.
    unsafe {
        write::<V>(elem, from, p, stride, whole);
        if whole < n {
            std::ptr::copy_nonoverlapping(from.add(whole), last.as_mut_ptr(), n - whole);
            let rest = p.offset(whole as isize * stride as isize * elem.bytes() as isize);
            write::<V>(elem, last.as_ptr(), rest, stride, n - whole);
        }
    }
}
