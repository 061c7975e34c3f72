//! Products by kernels in a vendor's language, each by itself, and what becomes of their results by kernels from here.

use super::super::NodeView;
use super::super::chain;
use super::super::placed_chain::PlacedChain;
use super::{ChainKernel, ProductSizes};
use crate::native::{NativeProducts, ProductShape, RowCount};
use crate::node_kernel::{NativeText, NodeKernel, Operand};
use yirage_hal::HalError;
use yirage_hal::driver::GridExtent;
use yirage_ir::expr::Expr;
use yirage_ir::region::{ChainMatmul, ChainRead, Core, ElementExpr, FusedChain};
use yirage_ir::{DType, Dim, Strided, Type};

/// The kernels of a product, or of a region of them.
pub(super) fn lower(view: &NodeView<'_>, products: &dyn NativeProducts) -> Result<Vec<NodeKernel>, HalError> {
    let mut made = Vec::new();
    let mut workspace = view.workspace;
    for placed in &PlacedChain::of(view)? {
        let chain = ChainKernel::products(placed)?;
        if let ([product], true) = (chain, is_result(&placed.chain)) {
            made.push(kernel(view, products, placed, product, placed.out)?);
            continue;
        }
        let mut results = Vec::with_capacity(chain.len());
        for product in chain {
            let result = workspace.take(&results_of(view, product)?, &view.site.bucket)?;
            made.push(kernel(view, products, placed, product, result)?);
            results.push(result);
        }
        made.push(chain::kernel(&view.site, &behind(placed, results)?)?);
    }
    let bytes = workspace.bytes();
    made.iter_mut().filter(|kernel| kernel.uses_workspace()).for_each(|kernel| kernel.workspace = bytes);
    Ok(made)
}

/// Whether a chain's elements are its product's results as they are.
fn is_result(chain: &FusedChain) -> bool {
    let FusedChain { after, out, .. } = chain;
    let lies_so = Strided::dense(&after.shape).is_some_and(|dense| dense == *out);
    lies_so && after.dtype == DType::F32 && after.reads.is_empty() && after.expr == Expr::input(0)
}

fn sizes_of(view: &NodeView<'_>, product: &ChainMatmul) -> Result<ProductSizes, HalError> {
    ProductSizes::of(&product.op, view.input(product.ins[0]), view.input(product.ins[1]))
}

fn results_of(view: &NodeView<'_>, product: &ChainMatmul) -> Result<Type, HalError> {
    let sizes = sizes_of(view, product)?;
    Ok(Type::new(DType::F32, [sizes.rows, Dim::Const(sizes.columns)]))
}

/// What follows the products of a chain, as a chain that reads their results.
fn behind(placed: &PlacedChain, results: Vec<Operand>) -> Result<PlacedChain, HalError> {
    let after = &placed.chain.after;
    let lies = Strided::dense(&after.shape).ok_or_else(|| HalError::Load("results that are too many".into()))?;
    let first = placed.ins.len();
    let mut reads: Vec<ChainRead> =
        (0..results.len()).map(|at| ChainRead { input: first + at, at: lies.clone() }).collect();
    reads.extend(after.reads.iter().cloned());
    let after = ElementExpr { reads, ..after.clone() };
    let chain = FusedChain { core: Core::None, after, out: placed.chain.out.clone(), core_dtype: None };
    let ins = placed.ins.iter().copied().chain(results).collect();
    Ok(PlacedChain { chain, ins, out: placed.out })
}

/// The kernel of a product whose results go to an operand.
fn kernel(
    view: &NodeView<'_>,
    products: &dyn NativeProducts,
    placed: &PlacedChain,
    product: &ChainMatmul,
    to: Operand,
) -> Result<NodeKernel, HalError> {
    let sizes = sizes_of(view, product)?;
    let [x, weight] = [product.ins[0], product.ins[1]].map(|at| placed.ins[at]);
    let DType::Stored(format) = view.input(product.ins[1]).dtype else {
        return Err(HalError::Load("a weight of no stored format".into()));
    };
    let rows = RowCount::of(sizes.rows);
    let most_rows = sizes.rows.get(&view.site.bucket) as u32;
    let first_word = if let Operand::Temporary { first_word, .. } = to { first_word } else { 0 };
    let shape = ProductShape { format, columns: sizes.columns, k: sizes.k, rows, most_rows, first_word };
    let made = products.kernel(&shape);
    // The order of its parameters; a workspace is the last one anyway.
    let mut scope = view.scope(&made.name, made.threads);
    scope.size(sizes.rows);
    scope.read(x);
    scope.read(weight);
    scope.write(to);
    let per = made.rows_of_group.max(1);
    let along_rows = match sizes.rows {
        Dim::Const(rows) => GridExtent::Fixed(rows.div_ceil(per)),
        Dim::Sym(size) => GridExtent::Of { size, times: 1, per },
    };
    let along_columns = GridExtent::Fixed(sizes.columns.div_ceil(made.columns_of_group.max(1)));
    let mut kernel = scope.finish([along_rows, along_columns, GridExtent::Fixed(1)], 0);
    kernel.native = Some(NativeText { source: made.source, waits: made.waits });
    Ok(kernel)
}
