//! Cache states in a device's memory.

use super::buffer::Buffer;
use super::contract::Driver;
use yirage_ir::Type;

/// A cache state in a device's memory.
pub(super) struct DeviceKvCache<D: Driver> {
    pub(super) block: Type,
    pub(super) blocks: u32,
    pub(super) buffer: Buffer<D>,
}
