//! The device's ceilings, read while something else is measured, and the least time that work takes under them.

use crate::failure::Failure;
use yirage_engine::Engine;
use yirage_hal::{Device, HalError, Limit, Probe};
use yirage_plan::Precision;
use yirage_plan::work::{Span, Work};

/// Probes of the ceilings that matter for one model.
pub(crate) struct Roofline {
    probes: Vec<(Limit, Box<dyn Probe>)>,
}

/// One reading of every ceiling, in bytes or operations a second.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Ceilings(Vec<(Limit, f64)>);

impl Roofline {
    /// Sets up the probes of `limits`. Those that the device does not have are left out; none of it is no error.
    ///
    /// # Errors
    /// [`Failure::Device`] for anything but an unsupported limit.
    pub(crate) fn new(device: &dyn Device, limits: &[Limit]) -> Result<Roofline, Failure> {
        let mut probes = Vec::new();
        for &limit in limits {
            match device.probe(limit) {
                Ok(mut probe) => {
                    // The first reading meets cold code and sleeping threads.
                    probe.read()?;
                    probes.push((limit, probe));
                }
                Err(HalError::Unsupported { .. }) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(Roofline { probes })
    }

    /// The ceilings that a model's steps meet on this device.
    ///
    /// # Errors
    /// As [`Roofline::new`].
    pub(crate) fn of_model(device: &dyn Device, engine: &Engine, precision: Precision) -> Result<Roofline, Failure> {
        let work = engine.work(&[Span { start: 0, tokens: 1, rows: 1 }]);
        let mut limits = vec![Limit::MemoryRead, Limit::F32];
        limits.extend(work.products.iter().map(|(format, _)| device.product_limit(precision, *format)));
        limits.sort_unstable();
        limits.dedup();
        Roofline::new(device, &limits)
    }

    /// Reads every ceiling once; together some tens of milliseconds.
    ///
    /// # Errors
    /// [`Failure::Device`].
    pub(crate) fn read(&mut self) -> Result<Ceilings, Failure> {
        let mut readings = Vec::with_capacity(self.probes.len());
        for (limit, probe) in &mut self.probes {
            readings.push((*limit, probe.read()?));
        }
        Ok(Ceilings(readings))
    }
}

impl Ceilings {
    /// The reading of one ceiling, where the device has it.
    pub(crate) fn get(&self, limit: Limit) -> Option<f64> {
        self.0.iter().find(|(l, _)| *l == limit).map(|(_, rate)| *rate)
    }

    /// Between two readings: what held on average while something ran between them.
    pub(crate) fn between(&self, other: &Ceilings) -> Ceilings {
        let mean = |&(limit, a): &(Limit, f64)| (limit, other.get(limit).map_or(a, |b| (a + b) / 2.0));
        Ceilings(self.0.iter().map(mean).collect())
    }

    /// Seconds that reading the bytes of `work` takes.
    pub(crate) fn memory_seconds(&self, work: &Work) -> Option<f64> {
        Some(work.bytes() / self.get(Limit::MemoryRead)?)
    }

    /// Seconds that the operations of `work` take, each at the ceiling that `limit_of` gives for its format.
    pub(crate) fn arithmetic_seconds(&self, work: &Work, limit_of: &dyn Fn(yirage_ir::Format) -> Limit) -> Option<f64> {
        let mut seconds = work.f32_ops / self.get(Limit::F32)?;
        for &(format, ops) in &work.products {
            seconds += ops / self.get(limit_of(format))?;
        }
        Some(seconds)
    }
}

/// The least times of some steps: what memory, arithmetic, and the slower of the two in each step would take.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Least {
    /// Seconds of reading.
    pub(crate) memory: f64,
    /// Seconds of arithmetic.
    pub(crate) arithmetic: f64,
    /// Seconds with both at once.
    pub(crate) both: f64,
}

impl Least {
    /// The least times of `steps`; none where the device does not measure itself.
    pub(crate) fn of(steps: &[Work], ceilings: &Ceilings, device: &dyn Device, precision: Precision) -> Option<Least> {
        let limit_of = |format| device.product_limit(precision, format);
        let mut least = Least::default();
        for work in steps {
            let memory = ceilings.memory_seconds(work)?;
            let arithmetic = ceilings.arithmetic_seconds(work, &limit_of)?;
            least.memory += memory;
            least.arithmetic += arithmetic;
            least.both += memory.max(arithmetic);
        }
        Some(least)
    }

    /// What of the time is most of it: `memory` or `arithmetic`.
    pub(crate) fn bound(&self) -> &'static str {
        if self.memory >= self.arithmetic { "memory" } else { "arithmetic" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use yirage_ir::Format;

    fn ceilings(memory: f64, f32: f64, int8: f64) -> Ceilings {
        Ceilings(vec![(Limit::MemoryRead, memory), (Limit::F32, f32), (Limit::Int8 { bits: 4 }, int8)])
    }

    fn work(bytes: f64, f32_ops: f64, q4: f64) -> Work {
        Work { weight_bytes: bytes, cache_bytes: bytes, products: vec![(Format::Q4_0, q4)], f32_ops }
    }

    #[test]
    fn bytes_and_operations_meet_their_own_ceilings() {
        let at = ceilings(10.0, 2.0, 5.0);
        let int8 = |_| Limit::Int8 { bits: 4 };
        let work = work(50.0, 6.0, 20.0);
        assert_eq!(at.memory_seconds(&work), Some(10.0));
        assert_eq!(at.arithmetic_seconds(&work, &int8), Some(7.0));
        assert_eq!(at.arithmetic_seconds(&work, &|_| Limit::F32), Some(13.0));
        assert_eq!(at.arithmetic_seconds(&work, &|_| Limit::Bf16), None, "a ceiling that was not measured");
        assert_eq!(Ceilings::default().memory_seconds(&work), None);
    }

    #[test]
    fn two_readings_meet_in_the_middle() {
        assert_eq!(ceilings(10.0, 2.0, 5.0).between(&ceilings(30.0, 2.0, 7.0)), ceilings(20.0, 2.0, 6.0));
    }
}
