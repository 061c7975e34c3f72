//! The makers whose libraries compute here. A maker is a folder and a line in [`NpuVendor`].

use crate::ascend::ASCEND;
use crate::cambricon::CAMBRICON;
use crate::maker::NpuMaker;

/// A maker whose library of operators computes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NpuVendor {
    /// Huawei's Ascend: ACL and aclnn.
    Ascend,
    /// Cambricon's MLUs: CNRT and CNNL.
    Cambricon,
}

impl NpuVendor {
    /// All of them.
    pub const ALL: [NpuVendor; 2] = [NpuVendor::Ascend, NpuVendor::Cambricon];

    /// What its backend is called.
    pub fn name(self) -> &'static str {
        self.maker().family.name
    }

    /// What is known of its libraries.
    pub(crate) fn maker(self) -> &'static NpuMaker {
        match self {
            NpuVendor::Ascend => &ASCEND,
            NpuVendor::Cambricon => &CAMBRICON,
        }
    }
}
