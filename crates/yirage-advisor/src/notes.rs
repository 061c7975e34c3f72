//! What follows from what a device can compute with, for what a user can choose.

use yirage_plan::KernelCapabilities;

/// One sentence for each thing that a user can choose and that the device decides.
pub(crate) fn notes(device: &KernelCapabilities) -> Vec<String> {
    let weights = match (device.bf16, device.fp16) {
        (true, true) => "bf16 and f16 weights are multiplied as they are",
        (true, false) => "bf16 weights are multiplied as they are with --precision fast; f16 ones become 32-bit floats",
        (false, true) => "f16 weights are multiplied as they are; bf16 ones become 32-bit floats",
        (false, false) => "bf16 and f16 weights become 32-bit floats: quantised ones need fewer bytes and less time",
    };
    let integers = match device.int8 {
        true => "quantised weights meet 8-bit activations with --precision fast",
        false => "bytes are multiplied without instructions for it: measure whether --precision fast pays",
    };
    [weights, integers].map(str::to_owned).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_device_has_its_sentences() {
        let said =
            |fp16, bf16, int8| notes(&KernelCapabilities { fp16, bf16, int8, ..KernelCapabilities::LEAST }).join("\n");
        assert!(said(false, false, true).contains("bf16 and f16 weights become 32-bit floats"));
        assert!(said(false, true, true).contains("f16 ones become 32-bit floats"));
        assert!(said(true, false, true).contains("bf16 ones become 32-bit floats"));
        assert!(said(true, true, true).contains("are multiplied as they are"));
        assert!(
            said(true, true, true).contains("8-bit activations")
                && said(true, true, false).contains("without instructions")
        );
    }
}
