//! Steps of a block as instructions of its threads.

use super::THREADS;
use super::operand::{BlockPosition, TileOperand, count, sizes};
use super::step::{BlockStep, TileWork};
use crate::elements::elements_per_word;
use crate::expression::{call, constant};
use crate::op::concat;
use crate::op::contract::SumOfProducts;
use crate::op::placed_chain::{ChainReads, PlacedRead, core_result, value};
use crate::op::reduce::{ReductionParts, along, joined};
use crate::strided_index::{DenseShape, element};
use yirage_ir::expr::Func;
use yirage_ir::op::Reduce;
use yirage_ir::region::{Accumulate, ChainRead, Core, ElementExpr, FusedChain};
use yirage_ir::{Dim, Strided};
use yirage_kir::{KernelWriter, Register, ScalarType};

impl BlockStep {
    /// Writes what all threads of a block do, at its place.
    pub(super) fn write(&self, w: &mut KernelWriter, at: &BlockPosition) {
        match &self.work {
            TileWork::Chain(chain) => self.chain(w, at, chain),
            TileWork::Reduction { chain, at_once } => self.reduction(w, at, chain, *at_once),
            TileWork::Sums(chain) => self.sums(w, at, chain),
            TileWork::Parts(chain) => self.parts(w, at, chain),
            TileWork::Joined(kind, length) => {
                let (parts, length) = (self.ins[0].read(w, at), w.u32(*length));
                self.each(w, at, |w, coordinates| {
                    let first = self.first_part(w, coordinates);
                    joined(w, *kind, length, |w, part| part_of(w, &parts, first, part))
                });
            }
            TileWork::Concat(axis) => {
                let sized = self.ins.iter().map(|x| (x.read(w, at), sizes(&x.ty.shape)[*axis]));
                let parts = concat::parts(sized.collect::<Vec<_>>());
                let dtype = self.out.ty.dtype;
                self.each(w, at, |w, coordinates| concat::joined(w, &parts, *axis, dtype, coordinates));
            }
            TileWork::Fill(x) => self.each(w, at, |w, _| constant(w, *x)),
            TileWork::Iota(axis) => self.each(w, at, |w, coordinates| w.bitcast(ScalarType::I32, coordinates[*axis])),
            TileWork::Copy => {
                let from = self.ins[0].read(w, at);
                self.each(w, at, |w, coordinates| from.load(w, coordinates));
            }
            TileWork::Accumulate(how) => self.accumulate(w, at, *how),
        }
    }

    /// Makes all elements, a thread a word of them.
    fn each(
        &self,
        w: &mut KernelWriter,
        at: &BlockPosition,
        make: impl Fn(&mut KernelWriter, &[Register]) -> Register,
    ) {
        let per_word = elements_per_word(self.out.elements.dtype);
        let elements = w.u32(count(&self.out.ty));
        let (thread, words, threads) = (w.thread(), w.u32(self.out.word_count()), w.u32(THREADS));
        w.for_each(thread, words, threads, |w, word| {
            let made: Vec<Register> = (0..per_word)
                .map(|part| {
                    let coordinates = self.results.coordinates(w, word, part, per_word, elements);
                    make(w, &coordinates)
                })
                .collect();
            self.out.store_word(w, at, word, &made);
        });
    }

    fn placed(&self, w: &mut KernelWriter, at: &BlockPosition, reads: &[ChainRead]) -> ChainReads {
        ChainReads(reads.iter().map(|read| self.ins[read.input].read_at(w, at, read.at.clone())).collect())
    }

    fn chain(&self, w: &mut KernelWriter, at: &BlockPosition, chain: &FusedChain) {
        let after = self.placed(w, at, &chain.after.reads);
        let Core::Contract(sides) = &chain.core else {
            return self.each(w, at, |w, coordinates| value(w, &chain.after, &[], &after, coordinates));
        };
        let products = self.products(w, at, sides);
        self.each(w, at, |w, coordinates| {
            let zero = w.f32(0.0);
            let sum = products.behind(w, coordinates, zero);
            let result = core_result(w, chain, sum);
            value(w, &chain.after, &[result], &after, coordinates)
        });
    }

    fn products<'a>(&self, w: &mut KernelWriter, at: &BlockPosition, sides: &'a [ElementExpr; 2]) -> SumOfProducts<'a> {
        let k = sizes(&sides[0].shape).last().copied().unwrap_or(0);
        let reads = [&sides[0], &sides[1]].map(|side| self.placed(w, at, &side.reads));
        SumOfProducts { sides, reads, k: w.u32(k) }
    }

    /// A contraction that goes on from what its output holds.
    fn sums(&self, w: &mut KernelWriter, at: &BlockPosition, chain: &FusedChain) {
        let Core::Contract(sides) = &chain.core else { return };
        let (products, held) = (self.products(w, at, sides), self.out.read(w, at));
        self.each(w, at, |w, coordinates| {
            let zero = w.f32(0.0);
            let so_far = self.so_far(w, at, zero, |w| held.load(w, coordinates));
            products.behind(w, coordinates, so_far)
        });
    }

    /// What is there before an iteration: nothing in the first one.
    fn so_far(
        &self,
        w: &mut KernelWriter,
        at: &BlockPosition,
        nothing: Register,
        held: impl FnOnce(&mut KernelWriter) -> Register,
    ) -> Register {
        let Some(is_first) = at.is_first else { return nothing };
        let so_far = w.variable(nothing);
        w.either(
            is_first,
            |_| {},
            |w| {
                let x = held(w);
                w.set(so_far, x);
            },
        );
        w.get(so_far)
    }

    /// A reduction of so many elements at once: each thread has a partial result of each of them, and then joins those of one.
    fn reduction(&self, w: &mut KernelWriter, at: &BlockPosition, chain: &FusedChain, at_once: u32) {
        let Core::Reduce(op, of) = &chain.core else { return };
        let elements = count(&self.out.ty);
        let (zero, all, step) = (w.u32(0), w.u32(elements), w.u32(at_once));
        let reducing = self.reducing(w, at, op, of);
        let after = self.placed(w, at, &chain.after.reads);
        let part = |w: &mut KernelWriter, first: Register| {
            let end = w.add(first, step);
            let end = w.min(end, all);
            self.partial_results(w, at, &reducing, [first, end]);
            w.barrier();
            self.joined_results(w, at, chain, (&reducing, &after), [first, end]);
        };
        if elements <= at_once {
            return part(w, zero);
        }
        w.for_each(zero, all, step, |w, first| {
            part(w, first);
            // The next elements' partial results take the place of these.
            w.barrier();
        });
    }

    fn reducing<'a>(
        &self,
        w: &mut KernelWriter,
        at: &BlockPosition,
        op: &'a Reduce,
        of: &'a ElementExpr,
    ) -> TileReduction<'a> {
        let reads = self.placed(w, at, &of.reads);
        let along = sizes(&along(op, of));
        let length = w.u32(along.iter().product());
        TileReduction { op, partial: ReductionParts::new(reads, op, of, DenseShape::fixed(&along)), length }
    }

    /// Each thread's partial results of elements.
    fn partial_results(
        &self,
        w: &mut KernelWriter,
        at: &BlockPosition,
        reducing: &TileReduction<'_>,
        [first, end]: [Register; 2],
    ) {
        let (one, parts) = (w.u32(1), &self.ins[self.ins.len() - 1]);
        let all = w.u32(count(&self.out.ty));
        w.for_each(first, end, one, |w, number| {
            let coordinates = self.results.coordinates(w, number, 0, 1, all);
            let nothing = reducing.partial.nothing(w);
            let mine = reducing.partial.of_thread(w, &coordinates, reducing.length, nothing);
            let slot = w.sub(number, first);
            store_part(w, at, parts, slot, mine);
        });
    }

    fn joined_results(
        &self,
        w: &mut KernelWriter,
        at: &BlockPosition,
        chain: &FusedChain,
        (reducing, after): (&TileReduction<'_>, &ChainReads),
        [first, end]: [Register; 2],
    ) {
        let parts = self.ins[self.ins.len() - 1].read(w, at);
        let per_word = elements_per_word(self.out.elements.dtype);
        let (per, less_one, one) = (w.u32(per_word), w.u32(per_word - 1), w.u32(1));
        let padded = w.add(end, less_one);
        let (thread, first_word, end_word) = (w.thread(), w.div(first, per), w.div(padded, per));
        let (from, threads, elements) = (w.add(first_word, thread), w.u32(THREADS), w.u32(count(&self.out.ty)));
        w.for_each(from, end_word, threads, |w, word| {
            let made: Vec<Register> = (0..per_word)
                .map(|part| {
                    let (behind, begin, last) = (w.u32(part), w.mul(word, per), w.sub(end, one));
                    let number = w.add(begin, behind);
                    let number = w.min(number, last);
                    let coordinates = self.results.coordinates(w, word, part, per_word, elements);
                    let slot = w.sub(number, first);
                    let first_part = part_number(w, slot);
                    let result =
                        joined(w, reducing.op.kind, reducing.length, |w, part| part_of(w, &parts, first_part, part));
                    let result = core_result(w, chain, result);
                    value(w, &chain.after, &[result], after, &coordinates)
                })
                .collect();
            self.out.store_word(w, at, word, &made);
        });
    }

    /// A reduction that goes on from the partial results that its output holds.
    fn parts(&self, w: &mut KernelWriter, at: &BlockPosition, chain: &FusedChain) {
        let Core::Reduce(op, of) = &chain.core else { return };
        let (reducing, held) = (self.reducing(w, at, op, of), self.out.read(w, at));
        let elements: u32 = sizes(&chain.out.shape).iter().product();
        let (zero, one, all) = (w.u32(0), w.u32(1), w.u32(elements));
        w.for_each(zero, all, one, |w, number| {
            let coordinates = self.results.coordinates(w, number, 0, 1, all);
            let nothing = reducing.partial.nothing(w);
            let first = part_number(w, number);
            let so_far = self.so_far(w, at, nothing, |w| {
                let thread = w.thread();
                part_of(w, &held, first, thread)
            });
            let mine = reducing.partial.of_thread(w, &coordinates, reducing.length, so_far);
            store_part(w, at, &self.out, number, mine);
        });
    }

    /// The number of the first partial result of the element at these coordinates.
    fn first_part(&self, w: &mut KernelWriter, coordinates: &[Register]) -> Register {
        let number = Strided::dense(&self.out.ty.shape).map(|dense| element(w, &dense, coordinates));
        let number = number.unwrap_or_else(|| w.u32(0));
        part_number(w, number)
    }

    fn accumulate(&self, w: &mut KernelWriter, at: &BlockPosition, how: Accumulate) {
        let (from, held) = (self.ins[0].read(w, at), self.out.read(w, at));
        let factor = self.ins.get(1).map(|factor| expanded(factor.read(w, at), &self.out.ty.shape));
        self.each(w, at, |w, coordinates| {
            let x = from.load(w, coordinates);
            let Some(is_first) = at.is_first else { return x };
            let made = w.variable(x);
            w.either(
                is_first,
                |_| {},
                |w| {
                    let before = held.load(w, coordinates);
                    let next = match (how, &factor) {
                        (Accumulate::Max, _) => call(w, Func::Max, &[before, x]),
                        (Accumulate::Rescaled { .. }, Some(factor)) => {
                            let factor = factor.load(w, coordinates);
                            let scaled = w.mul(before, factor);
                            w.add(scaled, x)
                        }
                        _ => w.add(before, x),
                    };
                    w.set(made, next);
                },
            );
            w.get(made)
        });
    }
}

/// A reduction of a tile.
struct TileReduction<'a> {
    op: &'a Reduce,
    partial: ReductionParts<'a>,
    /// Elements of the tile that are reduced to one.
    length: Register,
}

/// The number of the first partial result of an element.
fn part_number(w: &mut KernelWriter, element: Register) -> Register {
    let parts = w.u32(THREADS);
    w.mul(element, parts)
}

/// A partial result behind the first one of its element.
fn part_of(w: &mut KernelWriter, parts: &PlacedRead, first: Register, part: Register) -> Register {
    let number = w.add(first, part);
    parts.load(w, &[number])
}

/// Writes the thread's partial result of an element.
fn store_part(w: &mut KernelWriter, at: &BlockPosition, parts: &TileOperand, slot: Register, mine: Register) {
    let (first, thread) = (part_number(w, slot), w.thread());
    let word = w.add(first, thread);
    parts.store_word(w, at, word, &[mine]);
}

/// What broadcasts to a shape, at coordinates of it.
fn expanded(read: PlacedRead, shape: &[Dim]) -> PlacedRead {
    let first = shape.len() - read.at.shape.len();
    let mut strides = vec![0; shape.len()];
    for (axis, (dim, &stride)) in read.at.shape.iter().zip(&read.at.strides).enumerate() {
        strides[first + axis] = if *dim == shape[first + axis] { stride } else { 0 };
    }
    PlacedRead { at: Strided { shape: shape.to_vec(), strides, offset: read.at.offset }, ..read }
}
