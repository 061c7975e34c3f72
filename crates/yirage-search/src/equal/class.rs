//! The classes of inputs of the floating test. Each is chosen for what it makes go wrong.

use yirage_ir::attr_enum;

attr_enum! {
    /// Structured inputs.
    Class {
        /// From -1 to 1.
        Ordinary = "ordinary",
        /// Every second row is 1e-20 times as large as the others: squares underflow.
        NearZeroRows = "near_zero_rows",
        /// From -200 to 200 (of f16 16): exponentials overflow that are not shifted.
        LargeLogits = "large_logits",
        /// Along the last dimension a constant from 30 to 3000 (of f16 from 1 to 4) with noise of its 10,000th part:
        /// what is centred too late cancels.
        ConstantRows = "constant_rows",
        /// The same along the first dimension.
        ConstantColumns = "constant_columns",
        /// Inputs of one shape have the same elements.
        EqualOperands = "equal_operands",
        /// Near 1, with the sign of the element's number.
        AlternatingSigns = "alternating_signs",
        /// In each row a single 1, else zeros.
        OneHot = "one_hot",
        /// Below the smallest normal number.
        Subnormal = "subnormal",
    }
}
