//! Numbers of CNNL that stand in no public header, found by what they do: which number of `cnnlOpTensor` multiplies, and which of
//! `cnnlCastDataType` turn which elements into which.
//!
//! A number that means something else is refused, or gives something else of the operands here: so one that is taken is right. It
//! rounds as the rest of this crate relies on: to the nearest, ties to even, and to infinity beyond the largest number.

use super::description::{CnnlDescription, data_type, tensor};
use super::device::MluDevice;
use super::numbers::{CASTS, LibraryNumbers};
use super::status;
use super::symbols::OperatorFunctions;
use crate::limits::DRAIN;
use crate::operators::{OperandElement, TensorMemory, TensorView};
use crate::range::NpuRange;
use crate::runtime::{AcceleratorRuntime, LockedMemory, NpuMemory, NpuStream};
use crate::status::{refused, unsupported};
use crate::symbols::LibraryPointer;
use std::ptr::from_ref;
use std::sync::Arc;
use std::time::Instant;
use yirage_hal::driver::DriverError;

/// Numbers that are tried.
const TRIED: std::ops::Range<i32> = 0..256;
/// Operands of one trial.
const OPERANDS: usize = 8;
/// Where the second operand begins, and where the result does, in bytes.
const PARTS: [u64; 2] = [512, 1024];

/// `1.0`, `-2.5`, two numbers in the middle of their neighbours in f16, two in bf16, the largest number of f16, and one beyond it.
const WIDE: [f32; OPERANDS] =
    [1.0, -2.5, 1.0 + 1.0 / 2048.0, 1.0 + 3.0 / 2048.0, 1.0 + 1.0 / 256.0, 1.0 + 3.0 / 256.0, 65504.0, 1.0e6];
/// The nearest of them in f16.
const AS_F16: [u16; OPERANDS] = [0x3c00, 0xc100, 0x3c00, 0x3c02, 0x3c04, 0x3c0c, 0x7bff, 0x7c00];
/// The nearest of them in bf16.
const AS_BF16: [u16; OPERANDS] = [0x3f80, 0xc020, 0x3f80, 0x3f80, 0x3f80, 0x3f82, 0x4780, 0x4974];
/// The numbers of `AS_F16`.
const OF_F16: [f32; OPERANDS] =
    [1.0, -2.5, 1.0, 1.0 + 1.0 / 512.0, 1.0 + 1.0 / 256.0, 1.0 + 3.0 / 256.0, 65504.0, f32::INFINITY];

/// Finds them on a device.
///
/// # Errors
/// What the runtime says, and a library of which no number multiplies.
pub(super) fn find(device: &Arc<MluDevice>) -> Result<LibraryNumbers, DriverError> {
    let mut trial = NumberTrial::new(device)?;
    let multiply = trial.first(&halves(), multiplies)?;
    let none = || unsupported("products of elements", "no operation of `cnnlOpTensor` gives them");
    let multiply = multiply.ok_or_else(none)?;
    let mut casts = [None; 4];
    for (found, (from, to)) in casts.iter_mut().zip(CASTS) {
        let operands =
            TrialOperands { first: bytes_of(from, true, to), second: Vec::new(), result: bytes_of(to, false, from) };
        *found = trial.first(&operands, |f, handle, which, memory| converts(f, handle, which, memory, from, to))?;
    }
    Ok(LibraryNumbers { multiply, casts })
}

/// What an operation is of, and what it has to give.
struct TrialOperands {
    first: Vec<u8>,
    second: Vec<u8>,
    result: Vec<u8>,
}

/// Numbers whose sum, difference, quotient and product all differ.
fn halves() -> TrialOperands {
    let bytes = |of: fn(f32) -> f32| WIDE.iter().flat_map(|&x| of(x).to_le_bytes()).collect();
    TrialOperands { first: bytes(|x| x), second: bytes(|_| 0.5), result: bytes(|x| x * 0.5) }
}

/// The numbers of a trial as these elements: as they are converted from, or as they come out of the others.
fn bytes_of(element: OperandElement, is_given: bool, other: OperandElement) -> Vec<u8> {
    let narrow = |bits: [u16; OPERANDS]| bits.iter().flat_map(|bits| bits.to_le_bytes()).collect();
    match (element, is_given, other) {
        (OperandElement::F16, ..) => narrow(AS_F16),
        (OperandElement::BF16, ..) => narrow(AS_BF16),
        (_, true, _) => WIDE.iter().flat_map(|x| x.to_le_bytes()).collect(),
        (_, false, OperandElement::F16) => OF_F16.iter().flat_map(|x| x.to_le_bytes()).collect(),
        _ => AS_BF16.iter().flat_map(|&bits| (u32::from(bits) << 16).to_le_bytes()).collect(),
    }
}

/// A list of operands of a trial.
fn list(element: OperandElement) -> TensorView {
    TensorView::dense(TensorMemory::Temporary(0), element, vec![OPERANDS as u64])
}

/// The answer of an operation of `cnnlOpTensor` by its number.
fn multiplies(
    f: &OperatorFunctions,
    handle: LibraryPointer,
    which: i32,
    [a, b, y]: [LibraryPointer; 3],
) -> Result<i32, DriverError> {
    let made = CnnlDescription::new(f, "cnnlCreateOpTensorDescriptor", (f.new_arithmetic, f.drop_arithmetic))?;
    let described = tensor(f, &list(OperandElement::F32))?;
    let (r, d, one, zero) = (made.pointer(), described.pointer(), from_ref(&1.0f32).cast(), from_ref(&0.0f32).cast());
    let mut wanted = 0;
    // SAFETY: both descriptions are there; numbers of the host are read by the calls; all three lists lie in the device's memory,
    // and behind them is room to work in.
    let code = unsafe {
        match (f.set_arithmetic)(r, which, data_type(OperandElement::F32), 1) {
            status::SUCCESS => {}
            code => return Ok(code),
        }
        match (f.arithmetic_workspace)(handle, r, one, d, a, one, d, b, zero, d, y, &mut wanted) {
            status::SUCCESS => {}
            code => return Ok(code),
        }
        if wanted > TrialRoom::WORKING {
            let why = format!("{wanted} bytes to work in for {OPERANDS} numbers, {} are known", TrialRoom::WORKING);
            return Err(refused("cnnlOpTensor", why));
        }
        let working = y.wrapping_byte_add(TrialRoom::RESULT);
        (f.arithmetic)(handle, r, one, d, a, one, d, b, working, wanted, zero, d, y)
    };
    Ok(code)
}

/// The answer of a conversion by its number.
fn converts(
    f: &OperatorFunctions,
    handle: LibraryPointer,
    which: i32,
    [a, _, y]: [LibraryPointer; 3],
    from: OperandElement,
    to: OperandElement,
) -> Result<i32, DriverError> {
    let (x, z) = (tensor(f, &list(from))?, tensor(f, &list(to))?);
    // SAFETY: both descriptions are there, and both lists lie in the device's memory.
    Ok(unsafe { (f.cast)(handle, x.pointer(), a, which, z.pointer(), y) })
}

/// How the memory of a trial is divided.
struct TrialRoom;

impl TrialRoom {
    /// Bytes of the result.
    const RESULT: usize = 512;
    /// Bytes to work in, behind it.
    const WORKING: usize = 1 << 16;
}

/// A queue with memory for trials.
struct NumberTrial<'a> {
    device: &'a MluDevice,
    // In the order in which they go away.
    stream: NpuStream,
    memory: NpuMemory,
    host: LockedMemory,
}

impl<'a> NumberTrial<'a> {
    fn new(device: &'a Arc<MluDevice>) -> Result<NumberTrial<'a>, DriverError> {
        let runtime: Arc<dyn AcceleratorRuntime> = device.clone();
        let bytes = PARTS[1] + (TrialRoom::RESULT + TrialRoom::WORKING) as u64;
        let (memory, host) = (NpuMemory::new(&runtime, bytes)?, LockedMemory::new(&runtime, PARTS[1] as usize)?);
        Ok(NumberTrial { device, stream: NpuStream::new(&runtime)?, memory, host })
    }

    fn range(&self, offset: u64, bytes: usize) -> Result<NpuRange, DriverError> {
        self.memory.range(offset, bytes as u64).ok_or_else(|| refused("open", "the operands of a trial do not fit"))
    }

    /// The first number whose operation gives the result; none where no number does. One that is refused has submitted nothing.
    fn first(
        &mut self,
        operands: &TrialOperands,
        run: impl Fn(&OperatorFunctions, LibraryPointer, i32, [LibraryPointer; 3]) -> Result<i32, DriverError>,
    ) -> Result<Option<i32>, DriverError> {
        let result = self.range(PARTS[1], operands.result.len())?;
        let places = [self.range(0, 1)?.pointer(), self.range(PARTS[0], 1)?.pointer(), result.pointer()];
        self.give(operands, result)?;
        for which in TRIED {
            // SAFETY: the stream is this trial's.
            let code = unsafe {
                self.device.with_handle(Some(self.stream.handle()), |f, handle| run(f, handle, which, places))
            }?;
            if status::is_refusal(code) {
                continue;
            }
            status::of_operators("a trial of a number", code)?;
            self.stream.download(result, &self.host)?;
            self.drain()?;
            if self.host.bytes()[..operands.result.len()] == operands.result {
                return Ok(Some(which));
            }
            self.give(operands, result)?;
        }
        Ok(None)
    }

    /// Writes the operands, and nothing where the result will be.
    fn give(&mut self, operands: &TrialOperands, result: NpuRange) -> Result<(), DriverError> {
        self.host.bytes_mut()[..operands.first.len()].copy_from_slice(&operands.first);
        let second = PARTS[0] as usize;
        self.host.bytes_mut()[second..second + operands.second.len()].copy_from_slice(&operands.second);
        self.stream.upload(&self.host, self.range(0, PARTS[1] as usize)?)?;
        self.stream.fill(result, 0)?;
        self.drain()
    }

    fn drain(&self) -> Result<(), DriverError> {
        let began = Instant::now();
        while !self.stream.wait(1)? {
            if began.elapsed() > DRAIN {
                return Err(refused("open", "a trial of a number does not end"));
            }
        }
        Ok(())
    }
}

impl Drop for NumberTrial<'_> {
    fn drop(&mut self) {
        // What failed half way may still run.
        let _ = self.drain();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_of_a_trial_tell_rounding_apart() {
        assert_eq!((AS_F16[2], AS_F16[3], AS_F16[7]), (0x3c00, 0x3c02, 0x7c00), "ties to even, and beyond the largest");
        assert_eq!((AS_BF16[4], AS_BF16[5]), (0x3f80, 0x3f82), "ties to even");
        let bf16: Vec<u16> = WIDE
            .map(|x| {
                let bits = x.to_bits();
                ((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16
            })
            .into();
        assert_eq!(bf16, AS_BF16);
    }
}
