//! Activations of 16 bits: what the ops of models mean for f16 and bf16, said once for all of them.
//!
//! An op says which of its inputs are activations. They are of one type, f32, f16 or bf16. The op is evaluated on their
//! values as they are, which f32 has exactly, with the accumulation that it has for f32; each output that is f32 for f32
//! activations is rounded to their type, to the nearest and ties to even, when it is whole. So `exact` and `fast` mean for
//! them what they mean for f32: the type is where a value is rounded, and never how it is summed.

use super::Op;
use crate::dtype::DType;
use crate::expr::{Expr, is_float};
use crate::graph::{Graph, Node, NodeKind, Value, ValueId, ValueSource};
use crate::tensor::{Data, Tensor};
use crate::types::{Type, TypeError};
use std::borrow::Cow;

/// Input types with activations as f32, and what type they were; nothing where they are f32 or in a layout.
pub(super) fn as_f32<'a>(
    activations: &[usize],
    ins: &'a [Type],
) -> Result<(Cow<'a, [Type]>, Option<DType>), TypeError> {
    let is_plain = |ty: &Type| ty.activation_format.is_none() && is_float(ty.dtype);
    let floats = || activations.iter().filter_map(|&at| ins.get(at)).filter(|ty| is_plain(ty));
    let Some(dtype) = floats().map(|ty| ty.dtype).find(|&dtype| dtype != DType::F32) else {
        return Ok((Cow::Borrowed(ins), None));
    };
    if let Some(other) = floats().find(|ty| ty.dtype != dtype) {
        return Err(TypeError::new(format!("activations of {dtype} and {other}: one type for all of them wanted")));
    }
    let mut ins = ins.to_vec();
    activations.iter().for_each(|&at| {
        if let Some(ty) = ins.get_mut(at).filter(|ty| is_plain(ty)) {
            ty.dtype = DType::F32;
        }
    });
    Ok((Cow::Owned(ins), Some(dtype)))
}

/// The type of an evaluation's activations, where it is none of 32 bits.
pub(super) fn type_of(activations: &[usize], ins: &[&Tensor]) -> Option<DType> {
    let dtypes = activations.iter().filter_map(|&at| ins.get(at)).map(|tensor| tensor.dtype);
    dtypes.into_iter().find(|&dtype| is_float(dtype) && dtype != DType::F32)
}

/// Output types for activations of this type.
pub(super) fn outputs(outs: Vec<Type>, dtype: DType) -> Vec<Type> {
    let of = |ty: Type| if ty.dtype == DType::F32 { Type { dtype, ..ty } } else { ty };
    outs.into_iter().map(of).collect()
}

/// Outputs rounded to the type of the activations.
pub(super) fn rounded(outs: Vec<Tensor>, dtype: DType) -> Vec<Tensor> {
    let of = |tensor: Tensor| if tensor.dtype == DType::F32 { tensor.rounded_to(dtype) } else { tensor };
    outs.into_iter().map(of).collect()
}

/// The general form for activations of this type: that for f32, between casts.
pub(super) fn lowered(form: &Graph, activations: &[usize], dtype: DType, keeps_f32: bool) -> Graph {
    let cast = |to: DType| NodeKind::Op(Op::Map(super::Map { expr: Expr::input(0).cast(to) }));
    let mut graph = form.clone();
    let mut before = Vec::new();
    let floats =
        activations.iter().filter(|&&at| form.inputs.get(at).is_some_and(|&id| form.ty(id).dtype == DType::F32));
    for &at in floats {
        let (wide, narrow) = (form.inputs[at], ValueId(graph.values.len() as u32));
        let value = form.value(wide);
        graph.values.push(Value { ty: Type { dtype, ..value.ty.clone() }, ..value.clone() });
        graph.inputs[at] = narrow;
        before.push(Node { kind: cast(DType::F32), ins: vec![narrow], outs: vec![wide] });
    }
    let added = before.len() as u32;
    for value in &mut graph.values {
        if let ValueSource::Node { node, .. } = &mut value.source {
            *node += added;
        }
    }
    for (node, cast) in (0..).zip(&before) {
        let wide = &mut graph.values[cast.outs[0].index()];
        (wide.source, wide.name) = (ValueSource::Node { node, output: 0 }, format!("{}.f32", wide.name));
    }
    graph.nodes.splice(0..0, before);
    for at in 0..graph.outputs.len() {
        let wide = graph.outputs[at];
        if keeps_f32 || graph.ty(wide).dtype != DType::F32 {
            continue;
        }
        let (node, narrow) = (graph.nodes.len() as u32, ValueId(graph.values.len() as u32));
        let Value { name, ty, .. } = graph.value(wide).clone();
        let source = ValueSource::Node { node, output: 0 };
        graph.values.push(Value { name: format!("{name}.{dtype}"), ty: Type { dtype, ..ty }, source });
        graph.nodes.push(Node { kind: cast(dtype), ins: vec![wide], outs: vec![narrow] });
        graph.outputs[at] = narrow;
    }
    graph
}

impl Tensor {
    /// Its floats rounded to another type of plain floats.
    fn rounded_to(self, dtype: DType) -> Tensor {
        let narrow = Tensor { dtype, ..self };
        match &narrow.data {
            Data::F32(_) => Tensor::from_memory(&narrow.ty(), &crate::dim::Dims::default(), &narrow.memory()),
            _ => narrow,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Hadamard, OpDef, RmsNorm};
    use super::*;
    use crate::attr::F32;
    use crate::quant::Format;

    const BF16: DType = DType::Stored(Format::BF16);

    fn norm() -> Op {
        RmsNorm { eps: F32(1e-6), width: 4, unit_offset: false }.into()
    }

    #[test]
    fn outputs_have_the_type_of_the_activations() {
        let narrow = Type::new(BF16, [3, 4]);
        assert_eq!(norm().infer(std::slice::from_ref(&narrow)), Ok(vec![narrow.clone()]));
        let wide = Type::new(DType::F32, [3, 4]);
        let concat = Op::from(super::super::ConcatHeads { groups: 1 });
        let error = concat.infer(&[narrow, wide]).map_err(|e| e.to_string());
        assert!(error.is_err_and(|why| why.contains("one type for all of them")));
    }

    #[test]
    fn values_are_rounded_when_they_are_whole() {
        let x = Tensor::f32([1, 4], vec![1.0, 2.0, 3.0, 4.0]);
        let wide = norm().eval(&[&x]).remove(0);
        let narrow = norm().eval(&[&x.rounded_to(BF16)]).remove(0);
        assert_eq!((narrow.dtype, narrow.memory().len()), (BF16, 8));
        assert_eq!(narrow, wide.rounded_to(BF16));
    }

    #[test]
    fn a_general_form_computes_the_same() {
        for case in RmsNorm::cases().iter().chain(&Hadamard::cases()) {
            let ins: Vec<Tensor> = case.ins.iter().map(|tensor| tensor.clone().rounded_to(BF16)).collect();
            let types: Vec<Type> = ins.iter().map(Tensor::ty).collect();
            let Ok(form) = case.op.lower(&types) else { continue };
            crate::verify(&form).unwrap();
            let names = form.inputs.iter().map(|&id| form.value(id).name.clone());
            let mut given = names.zip(ins.iter().cloned()).collect();
            let got = crate::interp::evaluate(&form, &mut given).unwrap().remove(0);
            let want = case.op.eval(&ins.iter().collect::<Vec<_>>()).remove(0);
            assert_eq!(got.dtype, BF16);
            for (got, want) in got.floats().iter().zip(want.floats()) {
                assert!((got - want).abs() <= want.abs() / 64.0, "{}: {got} {want}", case.name);
            }
        }
    }
}
