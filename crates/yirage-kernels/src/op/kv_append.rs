//! `kv_append`: keys and values into the paged cache.
//!
//! A cache is written a pair of units at a time: a unit is an element or, in q8_0, a block of 32 of them, and a pair fills
//! whole words where units are narrower than one or end inside one. A position of an odd number of such units shares a word
//! with its neighbour; who writes it then also writes the neighbour's part, if that is appended in the same step, and
//! otherwise keeps it.

use super::output_words::{THREADS, WordRange};
use super::{NodeView, OpKernels, plain_operands};
use crate::elements::Elements;
use crate::exact_division::divide;
use crate::grid::FlatGrid;
use crate::math;
use crate::node_kernel::NodeKernel;
use crate::strided_index::{count, fixed};
use yirage_hal::HalError;
use yirage_ir::op::{KvAppend, OpDef};
use yirage_ir::{DType, Dim, Format};
use yirage_kir::{KernelWriter, Register, ScalarType, UnaryFunction, Variable};
use yirage_plan::KvCacheLayout;
use yirage_plan::rules::{OpRule, OperandConstraint, OperandKind};

pub(crate) const KERNELS: OpKernels = OpKernels { op: KvAppend::NAME, rules, lower };

/// The formats of caches that kernels read and write.
pub(crate) fn cache() -> Vec<OperandConstraint> {
    vec![OperandConstraint::new(
        OperandKind::KvCache(KvCacheLayout::ROWS),
        [Format::F32, Format::F16, Format::BF16, Format::Q8_0],
    )]
}

/// Whole numbers that the host gives in each step.
pub(crate) fn step_integers() -> Vec<OperandConstraint> {
    vec![OperandConstraint::new(OperandKind::StepInput, [DType::I32])]
}

fn rules() -> Vec<OpRule> {
    let with_values = vec![cache(), plain_operands(), plain_operands(), step_integers()];
    let latent = vec![cache(), plain_operands(), step_integers()];
    [latent, with_values].map(|inputs| OpRule::new(KvAppend::NAME, inputs)).into()
}

fn lower(view: &NodeView<'_>) -> Result<Vec<NodeKernel>, HalError> {
    let op = view.op::<KvAppend>()?;
    let tokens = view.input(1).shape[0];
    let mut scope = view.scope("kv_append", THREADS);
    let append = Append::new(&mut scope, view, op.kv_heads)?;
    let pairs = Dim::Const(append.pairs_per_position());
    let grid = FlatGrid::of(&[tokens, pairs], 1, THREADS, &view.site.bucket)?;
    let (tokens, all) = (scope.size(tokens), count(&mut scope, &[tokens, pairs]));
    let w = &mut scope.w;
    let range = WordRange::new(w, &grid, all, 1);
    let thread = w.thread();
    let (from, step) = (w.add(range.first, thread), w.u32(THREADS));
    w.for_each(from, range.end, step, |w, at| {
        let pairs = w.u32(append.pairs_per_position());
        let (token, pair) = (w.div(at, pairs), w.rem(at, pairs));
        let slot = append.slot(w, token);
        let end = w.u32(1 << 31);
        let is_slot = w.less(slot, end);
        w.when(is_slot, |w| {
            if append.shares_words() {
                append.shared_pair(w, token, slot, pair, tokens);
            } else {
                append.own_pair(w, token, slot, pair);
            }
        });
    });
    Ok(vec![scope.finish(grid.axes(), 0)])
}

/// What is appended, and where.
struct Append {
    cache: Elements,
    /// Keys, and values unless they are parts of keys, with their widths a head.
    parts: Vec<(Elements, u32)>,
    slots: Elements,
    heads: u32,
    /// Elements of a head.
    width: u32,
    /// Elements of a unit.
    unit: u32,
}

/// A unit as the cache holds it: a word each of an f32, the half of a word of a float of 16 bits, or a scale and 8 words of
/// codes.
struct EncodedUnit(Vec<Variable>);

impl Append {
    fn new(scope: &mut crate::scope::KernelScope<'_>, view: &NodeView<'_>, heads: u32) -> Result<Append, HalError> {
        let inputs = view.node.ins.len();
        let parts = (1..inputs - 1)
            .map(|at| Ok((scope.read(view.ins[at]), fixed(view.input(at).shape[1])? / heads.max(1))))
            .collect::<Result<_, HalError>>()?;
        let state = view.input(0);
        Ok(Append {
            cache: scope.update(view.ins[0]),
            parts,
            slots: scope.read(view.ins[inputs - 1]),
            heads,
            width: fixed(state.shape[2])?,
            unit: if state.dtype == DType::Stored(Format::Q8_0) { 32 } else { 1 },
        })
    }

    fn units_per_position(&self) -> u32 {
        self.heads * (self.width / self.unit)
    }

    /// Units that are written together.
    fn units_per_pair(&self) -> u32 {
        if self.cache.dtype == DType::F32 { 1 } else { 2 }
    }

    /// Of a position: what it shares with its neighbour counted too.
    fn pairs_per_position(&self) -> u32 {
        self.units_per_position().div_ceil(self.units_per_pair())
    }

    fn shares_words(&self) -> bool {
        !self.units_per_position().is_multiple_of(self.units_per_pair())
    }

    fn slot(&self, w: &mut KernelWriter, token: Register) -> Register {
        let slot = self.slots.load(w, token);
        w.bitcast(ScalarType::U32, slot)
    }

    /// A pair of one position.
    fn own_pair(&self, w: &mut KernelWriter, token: Register, slot: Register, pair: Register) {
        let per_pair = self.units_per_pair();
        let (per, pairs) = (w.u32(per_pair), w.u32(self.pairs_per_position()));
        let first = w.mul(pair, per);
        let units: Vec<EncodedUnit> = (0..per_pair)
            .map(|at| {
                let at = w.u32(at);
                let unit = w.add(first, at);
                let encoded = self.empty_unit(w);
                self.encode(w, token, unit, &encoded);
                encoded
            })
            .collect();
        let before = w.mul(slot, pairs);
        let pair = w.add(before, pair);
        match &units[..] {
            [low, high] => self.write_pair(w, pair, low, high),
            units => {
                let word = w.get(units[0].0[0]);
                self.write_word(w, pair, word);
            }
        }
    }

    /// A pair of which one unit may be the neighbouring position's.
    fn shared_pair(&self, w: &mut KernelWriter, token: Register, slot: Register, pair: Register, tokens: Register) {
        let (per_position, one, two) = (w.u32(self.units_per_position()), w.u32(1), w.u32(2));
        let first = w.mul(slot, per_position);
        let before = w.div(first, two);
        let pair = w.add(before, pair);
        let low = w.mul(pair, two);
        let (high, end) = (w.add(low, one), w.add(first, per_position));
        let (low_is_mine, high_is_mine) = (w.less_equal(first, low), w.less(high, end));
        let (slot_before, slot_behind) = (w.sub(slot, one), w.add(slot, one));
        let low_token = self.token_of(w, low_is_mine, token, slot_before, tokens);
        let high_token = self.token_of(w, high_is_mine, token, slot_behind, tokens);
        let (zero, nobody) = (w.u32(0), w.u32(u32::MAX));
        let has_low = w.not_equal(low_token, nobody);
        let has_high = w.not_equal(high_token, nobody);
        let last = w.sub(per_position, one);
        let (low_unit, high_unit) = (w.sub(low, first), w.sub(high, first));
        let low_unit = w.select(low_is_mine, low_unit, last);
        let high_unit = w.select(high_is_mine, high_unit, zero);
        // The position before writes the word that both share.
        let not_appended = w.unary(UnaryFunction::Not, has_low);
        let writes = w.or(low_is_mine, not_appended);
        w.when(writes, |w| {
            let (low, high) = (self.empty_unit(w), self.empty_unit(w));
            w.when(has_low, |w| self.encode(w, low_token, low_unit, &low));
            w.when(has_high, |w| self.encode(w, high_token, high_unit, &high));
            let both = w.and(has_low, has_high);
            w.either(
                both,
                |w| self.write_pair(w, pair, &low, &high),
                |w| {
                    w.either(has_low, |w| self.write_low(w, pair, &low), |w| self.write_high(w, pair, &high));
                },
            );
        });
    }

    /// The token whose position has a unit: this one, or that of a neighbouring slot; none is [`u32::MAX`].
    fn token_of(
        &self,
        w: &mut KernelWriter,
        is_mine: Register,
        token: Register,
        neighbour: Register,
        tokens: Register,
    ) -> Register {
        let found = w.variable(token);
        w.either(
            is_mine,
            |_| {},
            |w| {
                let (zero, one, nobody) = (w.u32(0), w.u32(1), w.u32(u32::MAX));
                w.set(found, nobody);
                w.for_each(zero, tokens, one, |w, other| {
                    let slot = self.slot(w, other);
                    let is_it = w.equal(slot, neighbour);
                    w.when(is_it, |w| w.set(found, other));
                });
            },
        );
        w.get(found)
    }

    fn empty_unit(&self, w: &mut KernelWriter) -> EncodedUnit {
        let zero = w.u32(0);
        let words = if self.unit == 1 { 1 } else { 9 };
        EncodedUnit((0..words).map(|_| w.variable(zero)).collect())
    }

    /// A unit of a token's position, as the cache holds it.
    fn encode(&self, w: &mut KernelWriter, token: Register, unit: Register, out: &EncodedUnit) {
        let per_head = w.u32(self.width / self.unit);
        let (head, within) = (w.div(unit, per_head), w.rem(unit, per_head));
        let heads = w.u32(self.heads);
        let row = w.mul(token, heads);
        let row = w.add(row, head);
        let part = |w: &mut KernelWriter, at: usize, within: Register| {
            let (elements, width) = self.parts[at];
            let (width, unit) = (w.u32(width), w.u32(self.unit));
            let (before, within) = (w.mul(row, width), w.mul(within, unit));
            let first = w.add(before, within);
            self.encode_elements(w, &elements, first, out);
        };
        if self.parts.len() == 1 {
            return part(w, 0, within);
        }
        let key_units = w.u32(self.parts[0].1 / self.unit);
        let is_key = w.less(within, key_units);
        w.either(
            is_key,
            |w| part(w, 0, within),
            |w| {
                let within = w.sub(within, key_units);
                part(w, 1, within);
            },
        );
    }

    fn encode_elements(&self, w: &mut KernelWriter, from: &Elements, first: Register, out: &EncodedUnit) {
        let elements: Vec<Register> = (0..self.unit)
            .map(|at| {
                let at = w.u32(at);
                let at = w.add(first, at);
                from.load(w, at)
            })
            .collect();
        let words = match self.cache.dtype {
            DType::Stored(Format::F16) => vec![math::f16_bits(w, elements[0])],
            DType::Stored(Format::BF16) => vec![math::bf16_bits(w, elements[0])],
            DType::Stored(Format::Q8_0) => q8_0(w, &elements),
            _ => vec![w.bitcast(ScalarType::U32, elements[0])],
        };
        out.0.iter().zip(words).for_each(|(&variable, word)| w.set(variable, word));
    }

    /// The first word of a pair, and the word that its two units share.
    fn first_word(&self, w: &mut KernelWriter, pair: Register) -> (Register, u32) {
        let words = if self.unit == 1 { 1 } else { 17 };
        let per_pair = w.u32(words);
        (w.mul(pair, per_pair), words / 2)
    }

    fn write_pair(&self, w: &mut KernelWriter, pair: Register, low: &EncodedUnit, high: &EncodedUnit) {
        let (first, _) = self.first_word(w, pair);
        let (low, high) = (low.get(w), high.get(w));
        let (mut words, low_half) = low_words(w, &low);
        let high_half = in_high_half(w, high[0]);
        words.push(w.or(low_half, high_half));
        words.extend(&high[1..]);
        self.write_words(w, first, 0, &words);
    }

    /// The first unit of a pair; the second stays.
    fn write_low(&self, w: &mut KernelWriter, pair: Register, low: &EncodedUnit) {
        let (first, shared) = self.first_word(w, pair);
        let low = low.get(w);
        let (mut words, half) = low_words(w, &low);
        let kept = self.kept(w, first, shared, 0xffff_0000);
        words.push(w.or(kept, half));
        self.write_words(w, first, 0, &words);
    }

    /// The second unit of a pair; the first stays.
    fn write_high(&self, w: &mut KernelWriter, pair: Register, high: &EncodedUnit) {
        let (first, shared) = self.first_word(w, pair);
        let high = high.get(w);
        let (kept, half) = (self.kept(w, first, shared, 0xffff), in_high_half(w, high[0]));
        let mut words = vec![w.or(kept, half)];
        words.extend(&high[1..]);
        self.write_words(w, first, shared, &words);
    }

    fn kept(&self, w: &mut KernelWriter, first: Register, word: u32, mask: u32) -> Register {
        let (word, mask) = (w.u32(word), w.u32(mask));
        let at = w.add(first, word);
        let word = self.cache.load_word(w, at);
        w.and(word, mask)
    }

    fn write_words(&self, w: &mut KernelWriter, first: Register, behind: u32, words: &[Register]) {
        for (at, &word) in (behind..).zip(words) {
            let at = w.u32(at);
            let at = w.add(first, at);
            self.write_word(w, at, word);
        }
    }

    fn write_word(&self, w: &mut KernelWriter, at: Register, word: Register) {
        w.store(self.cache.memory, at, word);
    }
}

impl EncodedUnit {
    fn get(&self, w: &mut KernelWriter) -> Vec<Register> {
        self.0.iter().map(|&variable| w.get(variable)).collect()
    }
}

fn in_high_half(w: &mut KernelWriter, half: Register) -> Register {
    let sixteen = w.u32(16);
    w.shl(half, sixteen)
}

/// The words that the first unit of a pair fills, and its last half of a word.
fn low_words(w: &mut KernelWriter, unit: &[Register]) -> (Vec<Register>, Register) {
    let sixteen = w.u32(16);
    let (mut words, mut half) = (Vec::new(), unit[0]);
    for &codes in &unit[1..] {
        let high = w.shl(codes, sixteen);
        words.push(w.or(half, high));
        half = w.shr(codes, sixteen);
    }
    (words, half)
}

/// 32 elements as a block of q8_0: the scale's bits, and 8 words of codes.
fn q8_0(w: &mut KernelWriter, elements: &[Register]) -> Vec<Register> {
    let zero = w.f32(0.0);
    let mut largest = zero;
    for &x in elements {
        let size = w.unary(UnaryFunction::Abs, x);
        let is_larger = w.less(largest, size);
        largest = w.select(is_larger, size, largest);
    }
    let (steps, one) = (w.f32(127.0), w.f32(1.0));
    let scale = divide(w, largest, steps);
    let inverse = divide(w, one, scale);
    let is_zero = w.equal(scale, zero);
    let inverse = w.select(is_zero, zero, inverse);
    let mut words = vec![math::f16_bits(w, scale)];
    for four in elements.chunks(4) {
        let mut word = w.u32(0);
        for (at, &x) in four.iter().enumerate() {
            let (code, shift) = (q8_0_code(w, x, inverse), w.u32(8 * at as u32));
            let code = w.shl(code, shift);
            word = w.or(word, code);
        }
        words.push(word);
    }
    words
}

/// A code's byte: to nearest, ties away from zero.
fn q8_0_code(w: &mut KernelWriter, x: Register, inverse: Register) -> Register {
    let scaled = w.mul(x, inverse);
    let size = w.unary(UnaryFunction::Abs, scaled);
    let whole = w.unary(UnaryFunction::Floor, size);
    let behind = w.sub(size, whole);
    let (half, one, zero) = (w.f32(0.5), w.f32(1.0), w.f32(0.0));
    let is_up = w.less_equal(half, behind);
    let up = w.select(is_up, one, zero);
    let rounded = w.add(whole, up);
    let code = math::to_i32(w, rounded);
    let is_negative = w.less(scaled, zero);
    let negated = w.unary(UnaryFunction::Neg, code);
    let code = w.select(is_negative, negated, code);
    let (least, most) = (w.i32(-128), w.i32(127));
    let code = w.max(code, least);
    let code = w.min(code, most);
    let (code, mask) = (w.bitcast(ScalarType::U32, code), w.u32(0xff));
    w.and(code, mask)
}
