//! What a device asks of the bindings of a command.

use yirage_hal::driver::{Binding, DriverError};

/// Limits of a device that binds parts of buffers, as WebGPU has them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BindingLimits {
    /// What offsets are multiples of.
    pub align: u32,
    /// Most bytes of a binding.
    pub bytes: u64,
    /// Most bindings of a command.
    pub count: u32,
}

/// Checks the bindings of a command: what every device is promised, and the limits of one that has any.
pub(crate) fn check(bindings: &[Binding], limits: Option<&BindingLimits>) -> Result<(), DriverError> {
    let wrong = |why: String| Err(DriverError::Failed { call: "bind", why });
    for (at, a) in bindings.iter().enumerate() {
        let overlaps = |b: &&Binding| a.slice.overlaps(&b.slice) && (a.access.writes() || b.access.writes());
        if let Some(b) = bindings[at + 1..].iter().find(overlaps) {
            return wrong(format!("{:?} and {:?} overlap, and one is written", a.slice, b.slice));
        }
    }
    let Some(limits) = limits else { return Ok(()) };
    if bindings.len() > limits.count as usize {
        return wrong(format!("{} bindings, {} at most", bindings.len(), limits.count));
    }
    for Binding { slice, .. } in bindings {
        if !slice.offset.is_multiple_of(u64::from(limits.align)) || slice.bytes > limits.bytes {
            let BindingLimits { align, bytes, .. } = limits;
            return wrong(format!(
                "{slice:?}: offsets are multiples of {align}, and bindings of at most {bytes} bytes"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use yirage_hal::driver::{BindingAccess, BufferId, BufferSlice};

    fn at(offset: u64, bytes: u64, access: BindingAccess) -> Binding {
        Binding { slice: BufferSlice { buffer: BufferId(1), offset, bytes }, access }
    }

    #[test]
    fn what_is_written_overlaps_nothing() {
        use BindingAccess::{Read, ReadWrite, Write};
        assert_eq!(check(&[at(0, 64, Read), at(32, 64, Read), at(96, 8, Write)], None), Ok(()));
        for access in [Write, ReadWrite] {
            assert!(check(&[at(0, 64, Read), at(256, 8, Read), at(63, 64, access)], None).is_err());
        }
    }

    #[test]
    fn limits_hold_where_a_device_has_them() {
        let limits = BindingLimits { align: 256, bytes: 1024, count: 2 };
        let check = |bindings: &[Binding]| check(bindings, Some(&limits)).map_err(|e| e.to_string());
        let read = |offset, bytes| at(offset, bytes, BindingAccess::Read);
        assert_eq!(check(&[read(0, 1024), read(1024, 0)]), Ok(()));
        assert!(check(&[read(0, 1), read(256, 1), read(512, 1)]).unwrap_err().contains("3 bindings, 2 at most"));
        assert!(check(&[read(128, 1)]).unwrap_err().contains("multiples of 256"));
        assert!(check(&[read(0, 1025)]).unwrap_err().contains("at most 1024 bytes"));
    }
}
