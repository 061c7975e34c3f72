//! The kernels: rows of floats.

use super::driver::Memory;
use yirage_hal::driver::{Address, DriverError, KernelArg, Launch};

pub(crate) fn run(launch: &Launch, memory: &mut Memory) -> Result<(), DriverError> {
    use KernelArg::{Address as At, U32};
    match (&launch.entry[..], &launch.args[..]) {
        ("softmax", &[At(x), At(y), U32(count), U32(width)]) => {
            let mut out = floats(memory, x, count)?;
            out.chunks_exact_mut(width as usize).for_each(softmax);
            store(memory, y, &out)
        }
        ("rms_norm", &[At(x), At(w), At(y), U32(count), U32(width), U32(eps), U32(unit)]) => {
            let mut weight = floats(memory, w, width)?;
            weight.iter_mut().for_each(|w| *w += unit as f32);
            rms_norms(memory, (x, y), count, &weight, f32::from_bits(eps))
        }
        ("rms_norm", &[At(x), At(y), U32(count), U32(width), U32(eps), U32(_)]) => {
            rms_norms(memory, (x, y), count, &vec![1.0; width as usize], f32::from_bits(eps))
        }
        ("embed", &[At(table), At(ids), At(y), U32(count), U32(width), U32(scale), U32(rows)]) => {
            let mut out = Vec::new();
            for id in floats(memory, ids, count / width)?.into_iter().map(f32::to_bits) {
                if id >= rows {
                    out.extend(vec![f32::NAN; width as usize]);
                    continue;
                }
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
    let exps: Vec<f64> = row.iter().map(|&x| f64::from(x - max).exp()).collect();
    let sum: f64 = exps.iter().sum();
    row.iter_mut().zip(exps).for_each(|(x, exp)| *x = (exp / sum) as f32);
}

fn rms_norms(
    memory: &mut Memory,
    (x, y): (Address, Address),
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

fn floats(memory: &mut Memory, at: Address, count: u32) -> Result<Vec<f32>, DriverError> {
    let bytes = memory.at(at, 4 * u64::from(count))?;
    Ok(bytes.as_chunks().0.iter().map(|word| f32::from_le_bytes(*word)).collect())
}

fn store(memory: &mut Memory, at: Address, values: &[f32]) -> Result<(), DriverError> {
    let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
    memory.at(at, bytes.len() as u64)?.copy_from_slice(&bytes);
    Ok(())
}
