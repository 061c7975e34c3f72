//! Normalisations: the general forms of the named ops, on rows.

use super::builder::{KernelGraph, KernelGraphResult, operands, product, sizes};
use super::error::GraphError;
use yirage_ir::attr::List;
use yirage_ir::op::{Fill, LayerNorm, OpDef, RmsNorm, Softmax};
use yirage_ir::{F32, Op, Type, ValueId};

/// The usual number under the root of a norm, as InfiniCore and PyTorch have it.
pub const NORM_EPS: f32 = 1e-5;

impl KernelGraph {
    /// `A / sqrt(mean(A^2))` over the trailing dimensions `normalized_shape`, without weight and without a number that
    /// keeps the root above 0: a row of zeros becomes NaN, as Mirage defines it.
    ///
    /// # Errors
    /// A shape that is not A's innermost dimensions.
    pub fn rms_norm(&mut self, a: ValueId, normalized_shape: &[u32]) -> KernelGraphResult {
        self.scaled_rms_norm(a, normalized_shape, None, 0.0)
    }

    /// `A / sqrt(mean(A^2) + eps) * weight` over the trailing dimensions `normalized_shape`, which `weight` has (Zhang
    /// and Sennrich, 2019). Mirage's graphs have no such operation.
    ///
    /// # Errors
    /// A shape that is not A's innermost dimensions, a weight of another shape, an `eps` that is negative or no number.
    pub fn scaled_rms_norm(
        &mut self,
        a: ValueId,
        normalized_shape: &[u32],
        weight: Option<ValueId>,
        eps: f32,
    ) -> KernelGraphResult {
        let what = "rms_norm";
        let width = self.normalized(what, a, normalized_shape, eps)?;
        let weight = weight.map(|w| self.vector(what, w, normalized_shape, width)).transpose()?;
        self.by_rows(what, a, width, &RmsNorm { eps: F32(eps), width, unit_offset: false }, weight.as_slice())
    }

    /// `(A - mean) / sqrt(variance + eps) * weight + bias` over the trailing dimensions `normalized_shape`, which
    /// `weight` and `bias` have (Ba, Kiros and Hinton, 2016). Mirage's graphs have no such operation.
    ///
    /// # Errors
    /// As those of [`KernelGraph::scaled_rms_norm`].
    pub fn layer_norm(
        &mut self,
        a: ValueId,
        normalized_shape: &[u32],
        weight: Option<ValueId>,
        bias: Option<ValueId>,
        eps: f32,
    ) -> KernelGraphResult {
        let what = "layer_norm";
        let width = self.normalized(what, a, normalized_shape, eps)?;
        let weight = match weight {
            Some(w) => self.vector(what, w, normalized_shape, width)?,
            None => self.op(Fill { value: 1.0.into(), shape: List(vec![width]) }, &[])?,
        };
        let mut vectors = vec![weight];
        if let Some(bias) = bias {
            vectors.push(self.vector(what, bias, normalized_shape, width)?);
        }
        self.by_rows(what, a, width, &LayerNorm { eps: F32(eps) }, &vectors)
    }

    /// `exp(A - max) / sum exp(A - max)` along `dim`. Mirage's graphs have no such operation.
    ///
    /// # Errors
    /// A dimension that A does not have.
    pub fn softmax(&mut self, a: ValueId, dim: i64) -> KernelGraphResult {
        let (dim, width) = self.along("softmax", a, dim)?;
        let rank = sizes(self.ty("softmax", a)?).len() as u32;
        if dim + 1 == rank {
            return self.by_rows("softmax", a, width, &Softmax {}, &[]);
        }
        // The dimension as the innermost one, and back.
        let mut axes: Vec<u32> = (0..rank).collect();
        axes.swap(dim as usize, rank as usize - 1);
        let turned = self.permuted(a, axes.clone())?;
        let made = self.by_rows("softmax", turned, width, &Softmax {}, &[])?;
        self.permuted(made, axes)
    }

    /// Elements that are normalised together.
    fn normalized(&self, what: &'static str, a: ValueId, shape: &[u32], eps: f32) -> Result<u32, GraphError> {
        let ty = self.ty(what, a)?;
        if shape.is_empty() || !sizes(ty).ends_with(shape) {
            let wanted = format!("a normalized_shape of its innermost dimensions wanted; {shape:?} given");
            return Err(operands(what, &[ty], wanted));
        }
        if !(eps >= 0.0 && eps.is_finite()) {
            let given = eps.to_string();
            return Err(GraphError::Argument { what, argument: "eps", given, wanted: "a number of at least 0" });
        }
        product(what, ty, shape)
    }

    /// A weight or bias of the normalised shape, as a vector.
    fn vector(&mut self, what: &'static str, w: ValueId, shape: &[u32], width: u32) -> KernelGraphResult {
        let ty = self.ty(what, w)?;
        if sizes(ty) != shape {
            return Err(operands(what, &[ty], format!("a weight or bias of shape {shape:?} wanted")));
        }
        let vector = self.reshaped(what, w, &[width])?;
        // Kernels of norms read weights of any width, and other vectors as f32.
        if self.is_weight(what, vector)? { Ok(vector) } else { self.widened(what, vector) }
    }

    /// A named op on rows of `width` elements in f32, in its general form.
    fn by_rows<T>(
        &mut self,
        what: &'static str,
        a: ValueId,
        width: u32,
        op: &T,
        vectors: &[ValueId],
    ) -> KernelGraphResult
    where
        T: OpDef + Clone + Into<Op>,
    {
        let ty = self.ty(what, a)?.clone();
        let dims = sizes(&ty);
        if dims.contains(&0) {
            // There is nothing to normalise.
            return Ok(a);
        }
        let rows = product(what, &ty, &dims)? / width;
        let flat = self.reshaped(what, a, &[rows, width])?;
        let mut ins = vec![self.widened(what, flat)?];
        ins.extend(vectors);
        let types = ins.iter().map(|&i| self.ty(what, i).map(Type::dense)).collect::<Result<Vec<_>, _>>()?;
        let form = op.lower(&types)?;
        let made = self.inlined(&form, &ins)?;
        let made = self.cast(what, made, ty.dtype)?;
        self.reshaped(what, made, &dims)
    }
}
