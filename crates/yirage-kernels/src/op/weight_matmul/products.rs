//! The products of a run of weights with the inputs that it meets, and their sums.

use crate::elements::{Elements, elements_per_word};
use crate::format::WeightGroup;
use yirage_kir::{KernelWriter, Register, Variable};

/// Sums that are added to by turns, so that no addition waits for the one before.
const TURNS: usize = 4;

/// The inputs of a run of weights: for each row those of each of the run's groups.
pub(super) fn inputs_of_run(
    w: &mut KernelWriter,
    x: Elements,
    rows: &[Register],
    first: Register,
    groups: impl Iterator<Item = (u32, u32)> + Clone,
    even: bool,
) -> Vec<Vec<Vec<Register>>> {
    let of_row = |&row: &Register| {
        let from = w.add(row, first);
        let of_group = |(offset, count): (u32, u32)| {
            let offset = w.u32(offset);
            let from = w.add(from, offset);
            neighbours(w, x, from, count, even)
        };
        groups.clone().map(of_group).collect()
    };
    rows.iter().map(of_row).collect()
}

/// Adds the products of a column's run of weights with the inputs of each row to the row's sum: those of plain floats one after
/// the other.
pub(super) fn add_products(
    w: &mut KernelWriter,
    run: &[WeightGroup],
    inputs: &[Vec<Vec<Register>>],
    sums: &[Variable],
    is_plain: bool,
) {
    for (number, group) in run.iter().enumerate() {
        let factors = Factors::of(w, group);
        for (inputs, &sum) in inputs.iter().zip(sums) {
            let before = w.get(sum);
            let next = if is_plain {
                factors.products_behind(w, &inputs[number], before)
            } else {
                let part = factors.products(w, &inputs[number]);
                w.add(before, part)
            };
            w.set(sum, next);
        }
    }
}

/// What inputs are multiplied by, and what their sum is.
struct Factors {
    each: Vec<Register>,
    all: Option<Register>,
}

impl Factors {
    /// Of weights without a minimum the scale is a factor of their sum.
    fn of(w: &mut KernelWriter, group: &WeightGroup) -> Factors {
        match group.minimum {
            Some(_) => Factors { each: group.weights(w), all: None },
            None => Factors { each: group.codes.clone(), all: group.scale },
        }
    }

    /// The products, one after the other, behind what there is already.
    fn products_behind(&self, w: &mut KernelWriter, values: &[Register], so_far: Register) -> Register {
        values.iter().zip(&self.each).fold(so_far, |sum, (&value, &factor)| {
            let product = w.mul(value, factor);
            w.add(sum, product)
        })
    }

    /// The sum of the products, in turns.
    fn products(&self, w: &mut KernelWriter, values: &[Register]) -> Register {
        let mut turns: Vec<Register> = Vec::with_capacity(TURNS);
        for (at, (&value, &factor)) in values.iter().zip(&self.each).enumerate() {
            let product = w.mul(value, factor);
            match turns.get(at % TURNS).copied() {
                Some(sum) => turns[at % TURNS] = w.add(sum, product),
                None => turns.push(product),
            }
        }
        while turns.len() > 1 {
            turns = turns
                .chunks(2)
                .map(|pair| pair.iter().copied().reduce(|a, b| w.add(a, b)).unwrap_or(pair[0]))
                .collect();
        }
        self.all.map_or(turns[0], |scale| w.mul(turns[0], scale))
    }
}

/// So many neighbouring elements as f32. Where all numbers of elements are `even`, two of 16 bits are one word.
fn neighbours(w: &mut KernelWriter, x: Elements, first: Register, count: u32, even: bool) -> Vec<Register> {
    let per_word = elements_per_word(x.dtype);
    if per_word > 1 && !even {
        let element = |by: u32| {
            let by = w.u32(by);
            let at = w.add(first, by);
            x.load(w, at)
        };
        return (0..count).map(element).collect();
    }
    let per = w.u32(per_word);
    let word = w.div(first, per);
    let words: Vec<Register> = (0..count / per_word)
        .map(|by| {
            let by = w.u32(by);
            let at = w.add(word, by);
            x.load_word(w, at)
        })
        .collect();
    words.into_iter().flat_map(|word| x.in_word(w, word)).collect()
}
