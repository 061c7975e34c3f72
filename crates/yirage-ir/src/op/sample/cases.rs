//! The cases of `sample`: all combinations of its flags.

use super::{Sample, SampleInput};
use crate::dtype::DType;
use crate::op::case::CaseValues;
use crate::op::{OpCase, Tolerance};
use crate::tensor::{Data, Tensor};

/// Every combination of flags, at three sizes.
pub(super) fn cases() -> Vec<OpCase> {
    let mut rng = CaseValues::new(22);
    let mut cases = Vec::new();
    for flags in 0..32u32 {
        let flag = |bit: u32| flags >> bit & 1 == 1;
        let (draw, mask, bias, penalties) = (flag(0), flag(1), flag(2), flag(3));
        for (seqs, vocabulary) in [(5, 40), (24, 700), (24, 3001)] {
            let top = if flag(4) { 7 } else { 0 };
            let op = Sample { draw, mask, bias, penalties, logprobs: flag(4), top };
            let ins = op.inputs().into_iter().map(|slot| input(&mut rng, slot, seqs, vocabulary)).collect();
            cases.push(OpCase::new(format!("{seqs} of {vocabulary}, flags {flags:05b}"), op, ins, Tolerance::Exact));
        }
    }
    cases
}

/// A slot of a case: rows with equal logits, rows of no use, and every kind of parameter in one batch.
fn input(rng: &mut CaseValues, slot: SampleInput, seqs: usize, vocabulary: usize) -> Tensor {
    let mut numbers = |n: usize, of: &mut dyn FnMut(usize, f32) -> f32| {
        Tensor::f32([n], (0..n).map(|i| of(i, rng.float())).collect())
    };
    let cycle = |values: &'static [f32]| move |i: usize, _: f32| values[i % values.len()];
    let ints = |shape: [usize; 2], values: Vec<i32>| Tensor {
        dtype: DType::I32,
        shape: shape.into(),
        data: Data::I32(values),
    };
    match slot {
        SampleInput::Logits => logits(numbers(6 * vocabulary, &mut |_, x| x), vocabulary),
        SampleInput::Row => Tensor::i32([seqs], (0..seqs as i32).map(|s| if s == 3 { 99 } else { s % 6 }).collect()),
        SampleInput::Temperature => numbers(seqs, &mut cycle(&[0.0, 0.4, 1.0, 3.0, 1.0])),
        SampleInput::TopK => Tensor::i32([seqs], (0..seqs).map(|s| [0, 3, 0, 50, 1, 1 << 20, 0][s % 7]).collect()),
        SampleInput::TopP => numbers(seqs, &mut cycle(&[1.0, 0.9, 0.5, 0.05])),
        SampleInput::MinP => numbers(seqs, &mut cycle(&[0.0, 0.0, 0.2])),
        SampleInput::Key => {
            let words = (0..5 * seqs).map(|_| rng.word()).collect();
            Tensor { dtype: DType::U32, shape: vec![seqs, 5], data: Data::U32(words) }
        }
        SampleInput::Allowed => {
            let width = vocabulary.div_ceil(32);
            let word = |i: usize| if (i / width).is_multiple_of(2) { u32::MAX } else { rng.word() };
            let words = (0..seqs * width).map(word).collect();
            Tensor { dtype: DType::U32, shape: vec![seqs, width], data: Data::U32(words) }
        }
        SampleInput::BiasAt => {
            ints([seqs, 2], (0..seqs).flat_map(|i| [i as i32 / 2 * 2, (i * 7 % vocabulary) as i32]).collect())
        }
        SampleInput::Bias => numbers(seqs, &mut |i, x| if i == 2 { f32::INFINITY } else { 4.0 * x }),
        SampleInput::History => {
            let entry = |i: usize| [i as i32 / 4, rng.below(vocabulary as u64 + 9) as i32, i as i32 % 3];
            ints([4 * seqs, 3], (0..4 * seqs).flat_map(entry).collect())
        }
        SampleInput::Repetition => numbers(seqs, &mut cycle(&[1.0, 1.3, 0.5])),
        SampleInput::Frequency => numbers(seqs, &mut cycle(&[0.0, 0.4])),
        SampleInput::Presence => numbers(seqs, &mut cycle(&[0.0, 0.0, -1.0])),
    }
}

/// Six rows: two of numbers, one with many equal ones, one mostly -infinity, one all -infinity, one with a NaN.
fn logits(flat: Tensor, vocabulary: usize) -> Tensor {
    let mut values = flat.floats().to_vec();
    for (r, row) in values.chunks_exact_mut(vocabulary).enumerate() {
        row.iter_mut().for_each(|x| *x *= [3.0, 20.0, 8.0, 5.0, 1.0, 1.0][r]);
        match r {
            2 => row.iter_mut().for_each(|x| *x = x.round()),
            3 => row.iter_mut().enumerate().filter(|(i, _)| i % 19 != 4).for_each(|(_, x)| *x = f32::NEG_INFINITY),
            4 => row.fill(f32::NEG_INFINITY),
            5 => row[vocabulary / 2] = f32::NAN,
            _ => {}
        }
    }
    Tensor::f32([6, vocabulary], values)
}
