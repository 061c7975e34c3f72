//! Attention by a kernel in a vendor's language.

use super::super::NodeView;
use crate::native::{NativeAttention, PagedAttentionShape, RowCount};
use crate::node_kernel::{NativeText, NodeKernel};
use yirage_hal::HalError;
use yirage_hal::driver::GridExtent;
use yirage_ir::op::Attention;
use yirage_ir::{DType, Dim};

/// The kernel of attention over a cache.
pub(super) fn lower(
    view: &NodeView<'_>,
    op: &Attention,
    attention: &dyn NativeAttention,
) -> Result<Vec<NodeKernel>, HalError> {
    let DType::Stored(cache) = view.input(1).dtype else {
        return Err(HalError::Load("a cache of no stored format".into()));
    };
    let (tokens, table) = (view.input(0).shape[0], &view.input(4).shape);
    let sizes = [tokens, table[0], table[1]];
    let [of_tokens, seqs, blocks] = sizes.map(RowCount::of);
    let shape = PagedAttentionShape {
        op: op.clone(),
        cache,
        has_sinks: view.ins.len() > 5,
        tokens: of_tokens,
        most_tokens: tokens.get(&view.site.bucket) as u32,
        seqs,
        blocks,
    };
    let made = attention.kernel(&shape);
    // The order of its parameters.
    let mut scope = view.scope(&made.name, made.threads);
    for size in sizes {
        scope.size(size);
    }
    for &operand in &view.ins {
        scope.read(operand);
    }
    scope.write(view.outs[0]);
    let per = made.tokens_of_group.max(1);
    let along_tokens = match tokens {
        Dim::Const(tokens) => GridExtent::Fixed(tokens.div_ceil(per)),
        Dim::Sym(size) => GridExtent::Of { size, times: 1, per },
    };
    let mut kernel = scope.finish([along_tokens, GridExtent::Fixed(made.groups_of_heads), GridExtent::Fixed(1)], 0);
    let has_sizes = sizes.iter().any(|size| size.as_const().is_none());
    let (wanted, got) = (view.ins.len() + 1 + usize::from(has_sizes), kernel.sources.len());
    if got != wanted {
        return Err(HalError::Load(format!("attention of {got} values, each for itself in {wanted} parameters")));
    }
    kernel.native = Some(NativeText { source: made.source, waits: made.waits });
    Ok(vec![kernel])
}
