//! The device's ceilings, read when they are wanted, and the least time that work takes under them.
//!
//! Knows no kernel: what work there is, and which ceiling its products meet, is given.

use crate::device::Device;
use crate::error::HalError;
use crate::limit::{Limit, LimitProbe};
use yirage_ir::Format;
use yirage_plan::work::Work;

/// Probes of the ceilings that matter for some work.
pub struct Roofline {
    probes: Vec<(Limit, Box<dyn LimitProbe>)>,
}

/// One reading of every ceiling, in bytes or operations a second.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ceilings(Vec<(Limit, f64)>);

impl Roofline {
    /// Sets up the probes of `limits`, each once. Those that the device does not have are left out; none of it is no error.
    ///
    /// # Errors
    /// [`HalError`] for anything but an unsupported limit.
    pub fn new(device: &dyn Device, mut limits: Vec<Limit>) -> Result<Roofline, HalError> {
        limits.sort_unstable();
        limits.dedup();
        let mut probes = Vec::new();
        for limit in limits {
            match device.probe(limit) {
                Ok(mut probe) => {
                    // The first reading meets cold code and sleeping threads.
                    probe.read()?;
                    probes.push((limit, probe));
                }
                Err(HalError::Unsupported { .. }) => {}
                Err(e) => return Err(e),
            }
        }
        Ok(Roofline { probes })
    }

    /// Reads every ceiling once; together some tens of milliseconds.
    ///
    /// # Errors
    /// As [`LimitProbe::read`].
    pub fn read(&mut self) -> Result<Ceilings, HalError> {
        let mut readings = Vec::with_capacity(self.probes.len());
        for (limit, probe) in &mut self.probes {
            readings.push((*limit, probe.read()?));
        }
        Ok(Ceilings(readings))
    }
}

impl Ceilings {
    /// These readings, each of another ceiling.
    pub fn new(readings: Vec<(Limit, f64)>) -> Ceilings {
        Ceilings(readings)
    }

    /// All readings.
    pub fn all(&self) -> &[(Limit, f64)] {
        &self.0
    }

    /// The reading of one ceiling, where the device has it.
    pub fn get(&self, limit: Limit) -> Option<f64> {
        self.0.iter().find(|(l, _)| *l == limit).map(|(_, rate)| *rate)
    }

    /// Between two readings: what held on average while something ran between them.
    pub fn between(&self, other: &Ceilings) -> Ceilings {
        let mean = |&(limit, a): &(Limit, f64)| (limit, other.get(limit).map_or(a, |b| (a + b) / 2.0));
        Ceilings(self.0.iter().map(mean).collect())
    }

    /// Seconds that moving so many bytes takes.
    pub fn memory_seconds(&self, bytes: f64) -> Option<f64> {
        Some(bytes / self.get(Limit::MemoryRead)?)
    }

    /// Seconds that the operations of `work` take, each at the ceiling that `limit_of` gives for its format.
    pub fn arithmetic_seconds(&self, work: &Work, limit_of: &dyn Fn(Format) -> Limit) -> Option<f64> {
        let mut seconds = work.f32_ops / self.get(Limit::F32)?;
        for &(format, ops) in &work.matmul_ops {
            seconds += ops / self.get(limit_of(format))?;
        }
        Some(seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ceilings(memory: f64, f32: f64, int8: f64) -> Ceilings {
        Ceilings(vec![(Limit::MemoryRead, memory), (Limit::F32, f32), (Limit::Int8 { bits: 4 }, int8)])
    }

    fn work(bytes: f64, f32_ops: f64, q4: f64) -> Work {
        Work { weight_bytes: bytes, cache_bytes: bytes, matmul_ops: vec![(Format::Q4_0, q4)], f32_ops }
    }

    #[test]
    fn bytes_and_operations_meet_their_own_ceilings() {
        let at = ceilings(10.0, 2.0, 5.0);
        let int8 = |_| Limit::Int8 { bits: 4 };
        let work = work(50.0, 6.0, 20.0);
        assert_eq!(at.memory_seconds(work.bytes()), Some(10.0));
        assert_eq!(at.arithmetic_seconds(&work, &int8), Some(7.0));
        assert_eq!(at.arithmetic_seconds(&work, &|_| Limit::F32), Some(13.0));
        assert_eq!(at.arithmetic_seconds(&work, &|_| Limit::Bf16), None, "a ceiling that was not measured");
        assert_eq!(Ceilings::default().memory_seconds(work.bytes()), None);
    }

    #[test]
    fn two_readings_meet_in_the_middle() {
        assert_eq!(ceilings(10.0, 2.0, 5.0).between(&ceilings(30.0, 2.0, 7.0)), ceilings(20.0, 2.0, 6.0));
    }
}
