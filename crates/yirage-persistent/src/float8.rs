//! Weights of 8-bit floats with scales, widened to f32. This is the only place that knows how they lie.
//!
//! An element is E4M3 of the OCP 8-bit floating point specification (OFP8): a sign, four bits of exponent with a bias of 7,
//! three of mantissa, no infinities, and NaN where all seven bits are set. Scales come in one of three forms: a float for each
//! block of 128 rows and 128 columns, as DeepSeek-V3's checkpoints have them (arXiv 2412.19437, 3.3.2); a float for each 128
//! columns of a row, as Mirage's layers of experts have them; or a word for every four blocks of 128 columns of a row, with an
//! exponent E8M0 of the OCP microscaling formats in each byte, lowest first.

use crate::elements::KernelDType;
use crate::tensor::KernelTensor;

/// Rows and columns of a block.
const BLOCK: usize = 128;

/// The number of an E4M3 byte.
fn decode(byte: u8) -> f32 {
    let (exponent, mantissa) = (i32::from(byte >> 3 & 0xf), f32::from(byte & 7));
    let magnitude = match (exponent, byte & 7) {
        (0xf, 7) => f32::NAN,
        (0, _) => mantissa / 8.0 * 2f32.powi(-6),
        _ => (1.0 + mantissa / 8.0) * 2f32.powi(exponent - 7),
    };
    if byte & 0x80 == 0 { magnitude } else { -magnitude }
}

/// The number of an E8M0 byte.
fn exponent(byte: u32) -> f32 {
    match byte {
        0xff => f32::NAN,
        // Both ends are numbers of f32: the lowest one is subnormal.
        _ => 2f64.powi(byte as i32 - 127) as f32,
    }
}

/// Scales by matrix, row and column.
enum Float8Scales {
    Floats(Vec<f32>),
    Words(Vec<u32>),
}

/// `weight`, `[.., rows, columns]` of E4M3, times `scale`, as f32.
///
/// # Errors
/// What is wrong with the sizes, and the first element that is no number.
pub(crate) fn widen(weight: &KernelTensor, name: &str, scale: &KernelTensor) -> Result<KernelTensor, String> {
    let data = weight.data.as_ref().ok_or("it is a weight and has no elements")?;
    let [ref outer @ .., rows, columns] = weight.dims[..] else {
        return Err(format!("it has the sizes {:?}, a matrix is wanted", weight.dims));
    };
    let (rows, columns) = (rows as usize, columns as usize);
    let scales = read(scale, name)?;
    let across = columns.div_ceil(BLOCK);
    // Rows of a block, and the scales down and across.
    let forms = match scales {
        Float8Scales::Floats(_) => vec![(BLOCK, rows.div_ceil(BLOCK), across), (1, rows, across)],
        Float8Scales::Words(_) => vec![(1, rows, across.div_ceil(4))],
    };
    let sizes = |down: usize, across: usize| [outer, &[down as u32, across as u32]].concat();
    let Some(&(height, down, across)) = forms.iter().find(|(_, down, across)| sizes(*down, *across) == scale.dims)
    else {
        let wanted: Vec<String> =
            forms.iter().map(|(_, down, across)| format!("{:?}", sizes(*down, *across))).collect();
        return Err(format!(
            "its scales `{name}` are {:?}, for {:?} of {} {} are wanted",
            scale.dims,
            weight.dims,
            scale.elements,
            wanted.join(" or ")
        ));
    };
    let mut values = Vec::with_capacity(data.len());
    for (i, &byte) in data.iter().enumerate() {
        let (row, column) = (i / columns, i % columns);
        let (matrix, row) = (row / rows, row % rows);
        let factor = match &scales {
            Float8Scales::Floats(scales) => scales[(matrix * down + row / height) * across + column / BLOCK],
            Float8Scales::Words(words) => {
                let block = column / BLOCK;
                exponent(words[(matrix * down + row) * across + block / 4] >> (8 * (block % 4)) & 0xff)
            }
        };
        let value = decode(byte) * factor;
        if !value.is_finite() {
            return Err(format!(
                "row {row}, column {column} of matrix {matrix} is {:#04x} times {factor}, which is no finite number",
                byte
            ));
        }
        values.push(value);
    }
    Ok(KernelTensor::f32(&weight.dims, &values))
}

fn read(scale: &KernelTensor, name: &str) -> Result<Float8Scales, String> {
    let data = scale.data.as_ref().ok_or_else(|| format!("its scales `{name}` have no elements"))?;
    match scale.elements {
        KernelDType::Floats(format) => {
            let mut values = vec![0f32; data.len() / format.info().row_bytes(1)];
            (format.info().decode)(data, &mut values);
            Ok(Float8Scales::Floats(values))
        }
        KernelDType::Int32 => {
            Ok(Float8Scales::Words(data.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect()))
        }
        other => Err(format!("its scales `{name}` are {other}: floats, or int32 of four exponents each, are wanted")),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test may stop at anything unexpected
mod tests {
    use super::*;

    /// Every number of both types, as PyTorch has it.
    #[test]
    fn every_number_is_that_of_pytorch() {
        let case: serde_json::Value = serde_json::from_str(include_str!("../tests/fixtures/float8.json")).unwrap();
        let list = |key: &str| case[key].as_array().unwrap().clone();
        for (code, wanted) in list("e4m3").iter().enumerate() {
            let got = decode(code as u8);
            assert_eq!((!got.is_nan()).then_some(f64::from(got)), wanted.as_f64(), "{code:#x}");
        }
        for (code, power) in list("e8m0_log2").iter().enumerate() {
            let wanted = 2f64.powi(power.as_i64().unwrap() as i32);
            assert_eq!(f64::from(exponent(code as u32)), wanted, "{code:#x}");
        }
        assert!(exponent(255).is_nan() && decode(0x80).is_sign_negative());
    }
}
