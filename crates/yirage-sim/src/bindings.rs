//! What a device asks of the bindings of a command.

use yirage_hal::driver::{Binding, DriverError};
use yirage_plan::DeviceLimits;

/// Checks the bindings of a command: what every device is promised, and the limits that the compiler was told.
pub(crate) fn check(bindings: &[Binding], limits: &DeviceLimits) -> Result<(), DriverError> {
    let wrong = |why: String| Err(DriverError::Failed { call: "bind", why });
    for (at, a) in bindings.iter().enumerate() {
        let overlaps = |b: &&Binding| a.slice.overlaps(&b.slice) && (a.access.writes() || b.access.writes());
        if let Some(b) = bindings[at + 1..].iter().find(overlaps) {
            return wrong(format!("{:?} and {:?} overlap, and one is written", a.slice, b.slice));
        }
    }
    if let Some(most) = limits.bindings.filter(|&most| bindings.len() > most as usize) {
        return wrong(format!("{} bindings, {most} at most", bindings.len()));
    }
    let align = limits.align.max(1);
    for Binding { slice, .. } in bindings {
        if !slice.offset.is_multiple_of(u64::from(align)) {
            return wrong(format!("{slice:?}: offsets are multiples of {align}"));
        }
        if let Some(most) = limits.binding_bytes.filter(|&most| slice.bytes > most) {
            return wrong(format!("{slice:?}: bindings have at most {most} bytes"));
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
        let check = |bindings: &[Binding]| check(bindings, &DeviceLimits::aligned(1));
        assert_eq!(check(&[at(0, 64, Read), at(32, 64, Read), at(96, 8, Write)]), Ok(()));
        for access in [Write, ReadWrite] {
            assert!(check(&[at(0, 64, Read), at(256, 8, Read), at(63, 64, access)]).is_err());
        }
    }

    #[test]
    fn limits_hold() {
        let limits = DeviceLimits { bindings: Some(2), binding_bytes: Some(1024), ..DeviceLimits::aligned(256) };
        let check = |bindings: &[Binding]| check(bindings, &limits).map_err(|e| e.to_string());
        let read = |offset, bytes| at(offset, bytes, BindingAccess::Read);
        assert_eq!(check(&[read(0, 1024), read(1024, 0)]), Ok(()));
        assert!(check(&[read(0, 1), read(256, 1), read(512, 1)]).unwrap_err().contains("3 bindings, 2 at most"));
        assert!(check(&[read(128, 1)]).unwrap_err().contains("multiples of 256"));
        assert!(check(&[read(0, 1025)]).unwrap_err().contains("at most 1024 bytes"));
    }
}
