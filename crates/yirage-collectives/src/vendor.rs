//! The makers: what each calls its functions, and the numbers that it gives types and operations.
//!
//! A maker is a line here. Names, types and numbers are those of the public headers; the libraries of the tests have them too, and
//! no device has run any of it yet.

use crate::error::CollectiveError;
use crate::symbols::{CollectiveNames, IdentityNames, nccl_names};
use yirage_comm::{ElementType, ReduceOp};
use yirage_probe::{CompanionLibrary, families};

/// A maker of devices whose collectives are known.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CollectiveVendor {
    /// NVIDIA: NCCL.
    Nvidia,
    /// AMD: RCCL, which has NCCL's names.
    Amd,
    /// Hygon: RCCL of DTK.
    Hygon,
    /// Iluvatar: CoreX's, which has NCCL's names.
    Iluvatar,
    /// Moore Threads: MCCL.
    MooreThreads,
    /// MetaX: another MCCL.
    MetaX,
    /// Cambricon: CNCL.
    Cambricon,
    /// Huawei: HCCL.
    Ascend,
}

/// What is known of a maker's collectives.
pub(crate) struct VendorRow {
    /// What they are, for people.
    pub(crate) title: &'static str,
    pub(crate) library: &'static CompanionLibrary,
    pub(crate) names: CollectiveNames,
    /// The number of each type.
    pub(crate) types: ElementNumbers,
    /// Whether an average is one of its operations.
    pub(crate) has_average: bool,
}

/// The numbers of `f32`, `f16`, `bf16`, `i32` and `u8`.
pub(crate) struct ElementNumbers {
    f32: i32,
    f16: i32,
    bf16: i32,
    i32: i32,
    u8: i32,
}

impl CollectiveVendor {
    /// All of them.
    pub const ALL: [CollectiveVendor; 8] = [
        CollectiveVendor::Nvidia,
        CollectiveVendor::Amd,
        CollectiveVendor::Hygon,
        CollectiveVendor::Iluvatar,
        CollectiveVendor::MooreThreads,
        CollectiveVendor::MetaX,
        CollectiveVendor::Cambricon,
        CollectiveVendor::Ascend,
    ];

    /// What its library is called, for people.
    pub fn title(self) -> &'static str {
        self.row().title
    }

    pub(crate) fn row(self) -> &'static VendorRow {
        match self {
            CollectiveVendor::Nvidia => &NCCL,
            CollectiveVendor::Amd => &RCCL,
            CollectiveVendor::Hygon => &HYGON_RCCL,
            CollectiveVendor::Iluvatar => &COREX_NCCL,
            CollectiveVendor::MooreThreads => &MUSA_MCCL,
            CollectiveVendor::MetaX => &MACA_MCCL,
            CollectiveVendor::Cambricon => &CNCL,
            CollectiveVendor::Ascend => &HCCL,
        }
    }
}

impl VendorRow {
    pub(crate) fn element(&self, element: ElementType) -> i32 {
        let ElementNumbers { f32, f16, bf16, i32, u8 } = self.types;
        match element {
            ElementType::F32 => f32,
            ElementType::F16 => f16,
            ElementType::BF16 => bf16,
            ElementType::I32 => i32,
            ElementType::U8 => u8,
        }
    }

    /// The number of an operation; all makers have the same, and some no average.
    pub(crate) fn operation(&self, op: ReduceOp) -> Result<i32, CollectiveError> {
        match op {
            ReduceOp::Sum => Ok(0),
            ReduceOp::Prod => Ok(1),
            ReduceOp::Max => Ok(2),
            ReduceOp::Min => Ok(3),
            ReduceOp::Avg if self.has_average => Ok(4),
            ReduceOp::Avg => {
                Err(CollectiveError::Argument(format!("{} has no average: take the sum and divide it", self.title)))
            }
        }
    }
}

/// `ncclDataType_t`.
const OF_NCCL: ElementNumbers = ElementNumbers { f32: 7, f16: 6, bf16: 9, i32: 2, u8: 1 };
/// `cnclDataType_t`.
const OF_CNCL: ElementNumbers = ElementNumbers { f32: 0x12, f16: 0x10, bf16: 0x11, i32: 0x22, u8: 0x30 };
/// `HcclDataType`.
const OF_HCCL: ElementNumbers = ElementNumbers { f32: 4, f16: 3, bf16: 11, i32: 2, u8: 7 };

static NCCL: VendorRow = VendorRow {
    title: "NVIDIA NCCL",
    library: &families::NCCL,
    names: nccl_names!("nccl"),
    types: OF_NCCL,
    has_average: true,
};

static RCCL: VendorRow = VendorRow {
    title: "AMD RCCL",
    library: &families::RCCL,
    names: nccl_names!("nccl"),
    types: OF_NCCL,
    has_average: true,
};

static HYGON_RCCL: VendorRow = VendorRow {
    title: "Hygon RCCL",
    library: &families::HYGON_RCCL,
    names: nccl_names!("nccl"),
    types: OF_NCCL,
    has_average: true,
};

static COREX_NCCL: VendorRow = VendorRow {
    title: "Iluvatar CoreX's NCCL",
    library: &families::COREX_NCCL,
    names: nccl_names!("nccl"),
    types: OF_NCCL,
    has_average: true,
};

static MUSA_MCCL: VendorRow = VendorRow {
    title: "Moore Threads MCCL",
    library: &families::MUSA_MCCL,
    names: nccl_names!("mccl"),
    types: OF_NCCL,
    has_average: true,
};

static MACA_MCCL: VendorRow = VendorRow {
    title: "MetaX MCCL",
    library: &families::MACA_MCCL,
    names: nccl_names!("mccl"),
    types: OF_NCCL,
    has_average: true,
};

static CNCL: VendorRow = VendorRow {
    title: "Cambricon CNCL",
    library: &families::CNCL,
    names: CollectiveNames {
        identity: IdentityNames::Clique { new: "cnclGetCliqueId", join: "cnclInitComms" },
        version: None,
        said: "cnclGetErrorStr",
        failed: "cnclGetCommAsyncError",
        leave: "cnclFreeComm",
        abort: Some("cnclAbortComm"),
        group: None,
        all_reduce: "cnclAllReduce",
        all_gather: "cnclAllGather",
        reduce_scatter: "cnclReduceScatter",
        broadcast: "cnclBroadcast",
        send: "cnclSend",
        recv: "cnclRecv",
    },
    types: OF_CNCL,
    has_average: false,
};

static HCCL: VendorRow = VendorRow {
    title: "Huawei HCCL",
    library: &families::HCCL,
    names: CollectiveNames {
        identity: IdentityNames::RootInfo { new: "HcclGetRootInfo", join: "HcclCommInitRootInfo" },
        version: None,
        said: "HcclGetErrorString",
        failed: "HcclGetCommAsyncError",
        leave: "HcclCommDestroy",
        abort: None,
        group: None,
        all_reduce: "HcclAllReduce",
        all_gather: "HcclAllGather",
        reduce_scatter: "HcclReduceScatter",
        broadcast: "HcclBroadcast",
        send: "HcclSend",
        recv: "HcclRecv",
    },
    types: OF_HCCL,
    has_average: false,
};

#[cfg(test)]
mod tests {
    use super::*;

    /// `nccl.h`, `cncl.h` and `hccl_types.h`.
    #[test]
    fn numbers_are_those_of_the_headers() {
        let all = [ElementType::F32, ElementType::F16, ElementType::BF16, ElementType::I32, ElementType::U8];
        let numbers = |vendor: CollectiveVendor| all.map(|element| vendor.row().element(element));
        assert_eq!(numbers(CollectiveVendor::Nvidia), [7, 6, 9, 2, 1]);
        assert_eq!(numbers(CollectiveVendor::Cambricon), [0x12, 0x10, 0x11, 0x22, 0x30]);
        assert_eq!(numbers(CollectiveVendor::Ascend), [4, 3, 11, 2, 7]);
        for vendor in CollectiveVendor::ALL {
            let of = ReduceOp::ALL.map(|op| vendor.row().operation(op));
            assert_eq!(of[..4], [Ok(0), Ok(1), Ok(2), Ok(3)], "{vendor:?}");
            assert_eq!(of[4].is_ok(), vendor.row().has_average, "{vendor:?}");
        }
    }
}
