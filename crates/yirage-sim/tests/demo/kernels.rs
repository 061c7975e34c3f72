//! The kernels: rows of floats.

use super::driver::Memory;
use yirage_hal::driver::{Address, Arg, DriverError, Launch};

pub(crate) fn run(launch: &Launch, memory: &mut Memory) -> Result<(), DriverError> {
    match (&launch.entry[..], &launch.args[..]) {
        ("softmax", &[Arg::Address(x), Arg::Address(y), Arg::U32(rows), Arg::U32(width)]) => {
            let mut out = floats(memory, x, rows * width)?;
            out.chunks_exact_mut(width as usize).for_each(softmax);
            store(memory, y, &out)
        }
        (
            "rms_norm",
            &[Arg::Address(x), Arg::Address(w), Arg::Address(y), Arg::U32(count), Arg::U32(width), Arg::U32(eps)],
        ) => {
            let (mut out, w) = (floats(memory, x, count)?, floats(memory, w, width)?);
            out.chunks_exact_mut(width as usize).for_each(|row| rms_norm(row, &w, f32::from_bits(eps)));
            store(memory, y, &out)
        }
        (
            "embed",
            &[
                Arg::Address(table),
                Arg::Address(ids),
                Arg::Address(y),
                Arg::U32(rows),
                Arg::U32(width),
                Arg::U32(scale),
            ],
        ) => {
            let mut out = Vec::new();
            for i in 0..rows {
                let id = floats(memory, ids.offset(4 * u64::from(i)), 1)?[0].to_bits();
                let row = floats(memory, table.offset(4 * u64::from(id) * u64::from(width)), width)?;
                out.extend(row.iter().map(|x| x * f32::from_bits(scale)));
            }
            store(memory, y, &out)
        }
        (entry, args) => Err(DriverError::Failed { call: "launch", why: format!("{entry} of {args:?}") }),
    }
}

fn softmax(row: &mut [f32]) {
    let max = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    row.iter_mut().for_each(|x| *x = (*x - max).exp());
    let sum: f64 = row.iter().map(|&x| f64::from(x)).sum();
    row.iter_mut().for_each(|x| *x = (f64::from(*x) / sum) as f32);
}

fn rms_norm(row: &mut [f32], weight: &[f32], eps: f32) {
    let mean = row.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>() / row.len() as f64;
    let inverse = 1.0 / (mean + f64::from(eps)).sqrt();
    row.iter_mut().zip(weight).for_each(|(x, w)| *x = (f64::from(*x) * inverse * f64::from(*w)) as f32);
}

fn floats(memory: &mut Memory, at: Address, count: u32) -> Result<Vec<f32>, DriverError> {
    let bytes = memory.at(at, 4 * u64::from(count))?;
    Ok(bytes.as_chunks().0.iter().map(|word| f32::from_le_bytes(*word)).collect())
}

fn store(memory: &mut Memory, at: Address, values: &[f32]) -> Result<(), DriverError> {
    let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
    memory.at(at, bytes.len() as u64)?.copy_from_slice(&bytes);
    Ok(())
}
