//! Views: where the elements of a value lie in memory that another value owns.

use crate::dim::{Dim, Dims};
use crate::types::Type;

/// Elements that lie a stride apart along each dimension. Strides may be 0 (one element met again and again) or negative.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Strided {
    /// Dimensions, outermost first; only the outermost may be symbolic.
    pub shape: Vec<Dim>,
    /// Elements between neighbours along each dimension.
    pub strides: Vec<i64>,
    /// The element of the memory that comes first.
    pub offset: i64,
}

impl Strided {
    /// Dense and row-major.
    ///
    /// `None` where a dimension but the outermost is symbolic, or the sizes are too large for their strides.
    pub fn dense(shape: &[Dim]) -> Option<Strided> {
        let mut strides = vec![0; shape.len()];
        let mut next = 1i64;
        for (axis, dim) in shape.iter().enumerate().rev() {
            strides[axis] = next;
            if axis > 0 {
                next = next.checked_mul(i64::try_from(dim.as_const()?).ok()?.max(1))?;
            }
        }
        Some(Strided { shape: shape.to_vec(), strides, offset: 0 })
    }

    /// Where the elements of a value of this type lie.
    ///
    /// `None` as for [`Strided::dense`].
    pub fn of(ty: &Type) -> Option<Strided> {
        match &ty.strides {
            None => Strided::dense(&ty.shape),
            Some(strides) => {
                let strides = strides.iter().map(|&s| i64::from(s)).collect();
                Some(Strided { shape: ty.shape.clone(), strides, offset: 0 })
            }
        }
    }

    /// Whether the elements lie one after the other from the first on. Dimensions of size 1 do not matter.
    pub fn is_dense(&self) -> bool {
        let Some(dense) = Strided::dense(&self.shape) else { return false };
        let matters = |(dim, (a, b)): (&Dim, (&i64, &i64))| a == b || *dim == Dim::Const(1);
        self.offset == 0 && self.shape.iter().zip(self.strides.iter().zip(&dense.strides)).all(matters)
    }

    /// The lowest and the highest element of the memory that is reached under `dims`; `None` where there are no elements
    /// or the numbers are too large.
    pub fn reach(&self, dims: &Dims) -> Option<(i64, i64)> {
        let (mut low, mut high) = (self.offset, self.offset);
        for (dim, &stride) in self.shape.iter().zip(&self.strides) {
            let last = i64::try_from(dim.get(dims).checked_sub(1)?).ok()?.checked_mul(stride)?;
            low = low.checked_add(last.min(0))?;
            high = high.checked_add(last.max(0))?;
        }
        Some((low, high))
    }

    /// The same elements in the same order with another shape, where strides allow it.
    pub fn reshaped(&self, shape: &[Dim]) -> Option<Strided> {
        // A symbolic dimension stays the outermost, and what is inside of it is reshaped by itself.
        if let (Some(Dim::Sym(a)), Some(Dim::Sym(b))) = (self.shape.first(), shape.first()) {
            let inner = Strided { shape: self.shape[1..].to_vec(), strides: self.strides[1..].to_vec(), offset: 0 };
            let inner = inner.reshaped(&shape[1..]).filter(|_| a == b)?;
            let strides = [&self.strides[..1], &inner.strides[..]].concat();
            return Some(Strided { shape: shape.to_vec(), strides, offset: self.offset });
        }
        let sizes = |dims: &[Dim]| dims.iter().map(|d| Some(d.as_const()? as i64)).collect::<Option<Vec<_>>>();
        let (old, new) = (sizes(&self.shape)?, sizes(shape)?);
        let strides = split(&old, &self.strides, &new)?;
        Some(Strided { shape: shape.to_vec(), strides, offset: self.offset })
    }
}

/// The strides of `new` for the elements of `old` in their order: dimensions that follow each other without a gap are
/// one, and one may be cut into several.
fn split(old: &[i64], old_strides: &[i64], new: &[i64]) -> Option<Vec<i64>> {
    if new.contains(&0) {
        return Some(vec![0; new.len()]);
    }
    // Runs of old dimensions, innermost first: (elements, stride of the innermost).
    let mut runs: Vec<(i64, i64)> = Vec::new();
    for (&n, &stride) in old.iter().zip(old_strides).rev().filter(|(n, _)| **n != 1) {
        match runs.last_mut() {
            Some((count, inner)) if stride == count.checked_mul(*inner)? => *count = count.checked_mul(n)?,
            _ => runs.push((n, stride)),
        }
    }
    let mut strides = vec![0; new.len()];
    let mut runs = runs.into_iter();
    let (mut left, mut stride) = (1, 0);
    for (axis, &n) in new.iter().enumerate().rev().filter(|(_, n)| **n != 1) {
        if left == 1 {
            (left, stride) = runs.next()?;
        }
        if left % n != 0 {
            return None;
        }
        strides[axis] = stride;
        stride = stride.checked_mul(n)?;
        left /= n;
    }
    (left == 1 && runs.next().is_none()).then_some(strides)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dim::Sym;

    fn fixed(sizes: &[u32]) -> Vec<Dim> {
        sizes.iter().map(|&n| Dim::Const(n)).collect()
    }

    #[test]
    fn a_reshape_without_a_copy_is_found_or_refused() {
        let dense = Strided::dense(&fixed(&[2, 3, 4])).unwrap();
        assert_eq!(dense.reshaped(&fixed(&[6, 2, 2])).unwrap().strides, [4, 2, 1]);
        assert_eq!(dense.reshaped(&fixed(&[24])).unwrap().strides, [1]);
        // Transposed: [3, 2] of strides [1, 3] is no line.
        let turned = Strided { shape: fixed(&[3, 2]), strides: vec![1, 3], offset: 0 };
        assert_eq!(turned.reshaped(&fixed(&[6])), None);
        assert_eq!(turned.reshaped(&fixed(&[3, 1, 2])).unwrap().strides, [1, 0, 3]);
        // One element met six times.
        let all = Strided { shape: fixed(&[6]), strides: vec![0], offset: 5 };
        assert_eq!(all.reshaped(&fixed(&[2, 3])).unwrap().strides, [0, 0]);
        let tokens = Strided::dense(&[Dim::Sym(Sym::Tokens), Dim::Const(12)]).unwrap();
        let heads = [Dim::Sym(Sym::Tokens), Dim::Const(3), Dim::Const(4)];
        assert_eq!(tokens.reshaped(&heads).unwrap().strides, [12, 4, 1]);
    }

    #[test]
    fn reach_is_checked() {
        let back = Strided { shape: fixed(&[4]), strides: vec![-2], offset: 6 };
        assert_eq!(back.reach(&Dims::default()), Some((0, 6)));
        let huge = Strided { shape: fixed(&[u32::MAX, u32::MAX]), strides: vec![i64::MAX, 1], offset: 0 };
        assert_eq!(huge.reach(&Dims::default()), None);
        assert_eq!(Strided { shape: fixed(&[0]), strides: vec![1], offset: 0 }.reach(&Dims::default()), None);
    }
}
