//! The kernels: rows of floats.

use super::driver::Memory;
use yirage_hal::driver::{BufferSlice, DriverError, Launch, sizes_of_block};
use yirage_ir::{Dim, Sym};

/// The words of a kernel's argument, in its order.
struct Words<'a>(&'a [[u8; 4]]);

impl Words<'_> {
    fn next(&mut self) -> Result<u32, DriverError> {
        let missing = || DriverError::Failed { call: "launch", why: "a word of the argument is missing".into() };
        let (word, rest) = self.0.split_first().ok_or_else(missing)?;
        self.0 = rest;
        Ok(u32::from_le_bytes(*word))
    }
}

pub(crate) fn run(launch: &Launch, memory: &mut Memory) -> Result<(), DriverError> {
    let wrong = || DriverError::Failed {
        call: "launch",
        why: format!("{} of {} operands", launch.config.entry, launch.bindings.len()),
    };
    let slices: Vec<BufferSlice> = launch.bindings.iter().map(|binding| binding.slice).collect();
    let (sizes, operands) = slices.split_first().ok_or_else(wrong)?;
    let mut words = Words(launch.config.arguments.as_chunks().0);
    let count = rows(memory, *sizes, &mut words)?;
    let width = words.next()?;
    match (&launch.config.entry[..], operands) {
        ("softmax", &[x, y]) => {
            let mut out = floats(memory, x, count * width)?;
            out.chunks_exact_mut(width as usize).for_each(softmax);
            store(memory, y, &out)
        }
        ("rms_norm", &[x, .., y]) => {
            let (group, eps, unit) = (words.next()?, f32::from_bits(words.next()?), words.next()?);
            let weight = match operands {
                [_, w, _] => floats(memory, *w, group)?.iter().map(|w| w + unit as f32).collect(),
                _ => vec![1.0; group as usize],
            };
            rms_norms(memory, (x, y), count * width, &weight, eps)
        }
        ("embed", &[table, ids, y]) => {
            let (scale, vocabulary) = (f32::from_bits(words.next()?), words.next()?);
            let mut out = Vec::new();
            for id in floats(memory, ids, count)?.into_iter().map(f32::to_bits) {
                if id >= vocabulary {
                    out.extend(vec![f32::NAN; width as usize]);
                    continue;
                }
                let at = 4 * u64::from(id) * u64::from(width);
                let row = table.part(at, 4 * u64::from(width)).ok_or_else(wrong)?;
                out.extend(floats(memory, row, width)?.iter().map(|x| x * scale));
            }
            store(memory, y, &out)
        }
        _ => Err(wrong()),
    }
}

/// The rows of the output: a number, or a size of the step.
fn rows(memory: &mut Memory, sizes: BufferSlice, words: &mut Words<'_>) -> Result<u32, DriverError> {
    let short = |_| DriverError::Failed { call: "launch", why: "the sizes are cut off".into() };
    let block = (&*memory.at(sizes)?).try_into().map_err(short)?;
    let (fixed, size) = (words.next()?, words.next()? as usize);
    let dim = Sym::ALL.get(size).map_or(Dim::Const(1), |&size| Dim::Sym(size));
    Ok(fixed * dim.get(&sizes_of_block(block)) as u32)
}

fn softmax(row: &mut [f32]) {
    let max = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let exps: Vec<f64> = row.iter().map(|&x| f64::from(x - max).exp()).collect();
    let sum: f64 = exps.iter().sum();
    row.iter_mut().zip(exps).for_each(|(x, exp)| *x = (exp / sum) as f32);
}

fn rms_norms(
    memory: &mut Memory,
    (x, y): (BufferSlice, BufferSlice),
    count: u32,
    weight: &[f32],
    eps: f32,
) -> Result<(), DriverError> {
    let mut out = floats(memory, x, count)?;
    for row in out.chunks_exact_mut(weight.len()) {
        let mean = row.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>() / row.len() as f64;
        let inverse = 1.0 / (mean + f64::from(eps)).sqrt();
        row.iter_mut().zip(weight).for_each(|(x, w)| *x = (f64::from(*x) * inverse * f64::from(*w)) as f32);
    }
    store(memory, y, &out)
}

fn floats(memory: &mut Memory, slice: BufferSlice, count: u32) -> Result<Vec<f32>, DriverError> {
    let bytes = memory.at(BufferSlice { bytes: 4 * u64::from(count), ..slice })?;
    Ok(bytes.as_chunks().0.iter().map(|word| f32::from_le_bytes(*word)).collect())
}

fn store(memory: &mut Memory, slice: BufferSlice, values: &[f32]) -> Result<(), DriverError> {
    let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
    memory.at(BufferSlice { bytes: bytes.len() as u64, ..slice })?.copy_from_slice(&bytes);
    Ok(())
}
