//! One change of a graph that keeps it sound and its types as they are: what a wrong rewrite does.

use yirage_ir::expr::{Expr, Func, Scalar, Term};
use yirage_ir::op::{Cut, Map, ReduceKind, View, ViewForm};
use yirage_ir::rng::Rng;
use yirage_ir::{F32, Graph, GraphBuilder, NodeKind, Op, ValueId};

/// A copy of `graph` with one change, and what it is; `None` where the change that was drawn makes no sound graph of the
/// same type.
pub(crate) fn mutate(graph: &Graph, rng: &mut Rng) -> Option<(String, Graph)> {
    let at = rng.index(graph.nodes.len());
    let mut copy = Copy { builder: GraphBuilder::new("mutant"), new: vec![None; graph.values.len()], added: 0 };
    for &id in &graph.inputs {
        let v = graph.value(id);
        copy.new[id.index()] = Some(copy.builder.declare(&v.name, v.ty.clone(), v.source).ok()?);
    }
    let mut what = None;
    for (n, node) in graph.nodes.iter().enumerate() {
        let NodeKind::Op(op) = &node.kind else { return None };
        let ins: Vec<ValueId> = node.ins.iter().map(|i| copy.new[i.index()]).collect::<Option<_>>()?;
        let name = graph.value(node.outs[0]).name.clone();
        let out = if n == at {
            let (said, out) = copy.changed(&name, op, &ins, rng)?;
            what = Some(format!("{name}: {said}"));
            out
        } else {
            copy.builder.op(&name, op.clone(), &ins).ok()?
        };
        // A change that alters a type within is none that a rewrite would make.
        if copy.builder.ty(out) != graph.ty(node.outs[0]) {
            return None;
        }
        copy.new[node.outs[0].index()] = Some(out);
    }
    let outputs: Vec<ValueId> = graph.outputs.iter().map(|o| copy.new[o.index()]).collect::<Option<_>>()?;
    outputs.into_iter().for_each(|o| copy.builder.output(o));
    Some((what?, copy.builder.finish()))
}

struct Copy {
    builder: GraphBuilder,
    new: Vec<Option<ValueId>>,
    added: u32,
}

impl Copy {
    fn changed(&mut self, name: &str, op: &Op, ins: &[ValueId], rng: &mut Rng) -> Option<(String, ValueId)> {
        match rng.below(8) {
            0..=2 => {
                let (said, op) = other_op(op, rng)?;
                Some((said, self.builder.op(name, op, ins).ok()?))
            }
            3 => {
                let (i, j) = (rng.index(ins.len().max(1)), rng.index(ins.len().max(1)));
                let mut ins = ins.to_vec();
                if i == j {
                    return None;
                }
                ins.swap(i, j);
                Some((
                    format!("operands {i} and {j} of {} swapped", op.name()),
                    self.builder.op(name, op.clone(), &ins).ok()?,
                ))
            }
            4 => {
                let i = rng.index(ins.len().max(1));
                let ty = self.builder.ty(*ins.get(i)?).clone();
                let others = self.new.iter().flatten().filter(|&&v| v != ins[i] && *self.builder.ty(v) == ty);
                let others: Vec<ValueId> = others.copied().collect();
                let mut ins = ins.to_vec();
                ins[i] = *others.get(rng.index(others.len().max(1)))?;
                Some((
                    format!("operand {i} of {} is another", op.name()),
                    self.builder.op(name, op.clone(), &ins).ok()?,
                ))
            }
            5 => {
                // The node is left out: one of its inputs takes its place.
                let out = self.builder.op(name, op.clone(), ins).ok()?;
                let same = ins.iter().find(|&&i| self.builder.ty(i) == self.builder.ty(out));
                Some((format!("{} left out", op.name()), *same?))
            }
            _ => {
                let out = self.builder.op(name, op.clone(), ins).ok()?;
                let (said, extra) =
                    extra(self.builder.ty(out).shape.iter().map(|d| d.as_const()).collect::<Option<_>>()?, rng)?;
                self.added += 1;
                let out = self.builder.op(&format!("added{}", self.added), extra, &[out]).ok()?;
                Some((format!("{said} behind {}", op.name()), out))
            }
        }
    }
}

/// A node that does not belong there.
fn extra(sizes: Vec<usize>, rng: &mut Rng) -> Option<(String, Op)> {
    let map = |text: &str| Some((text.to_string(), Map { expr: text.parse().ok()? }.into()));
    match rng.below(8) {
        0 => map("neg(x0)"),
        1 => map("mul(x0, 0.5)"),
        2 => map("add(x0, 0.125)"),
        3 => map("square(x0)"),
        4 => map("relu(x0)"),
        5 => {
            let (i, j) = (rng.index(sizes.len().max(1)), rng.index(sizes.len().max(1)));
            let mut axes: Vec<u32> = (0..sizes.len() as u32).collect();
            if i == j {
                return None;
            }
            axes.swap(i, j);
            Some((format!("dimensions {i} and {j} exchanged"), View { form: ViewForm::Permute(axes) }.into()))
        }
        6 => {
            let axis = rng.index(sizes.len().max(1));
            let mut cuts: Vec<Cut> = sizes.iter().map(|&n| Cut::whole(n as u32)).collect();
            let cut = cuts.get_mut(axis)?;
            *cut = Cut { start: *sizes.get(axis)? as u32 - 1, step: -1, size: cut.size };
            Some((format!("dimension {axis} reversed"), View { form: ViewForm::Slice(cuts) }.into()))
        }
        _ => map("mul(x0, 1.01)"),
    }
}

fn other_op(op: &Op, rng: &mut Rng) -> Option<(String, Op)> {
    let changed = match op {
        Op::Map(map) => return other_expr(&map.expr, rng).map(|(said, expr)| (said, Map { expr }.into())),
        Op::Reduce(reduce) => {
            let mut other = reduce.clone();
            if rng.one_in(2) {
                other.kind = *rng.choose(ReduceKind::ALL);
            } else {
                let i = rng.index(other.axes.0.len());
                other.axes.0[i] = rng.below(4) as u32;
            }
            other.into()
        }
        Op::View(view) => View { form: other_form(&view.form, rng)? }.into(),
        Op::Concat(concat) => {
            let mut other = concat.clone();
            other.axis = rng.below(3) as u32;
            other.into()
        }
        Op::RmsNorm(norm) => {
            let mut other = norm.clone();
            if rng.one_in(2) {
                other.eps = F32(0.1)
            } else {
                other.unit_offset = !other.unit_offset
            }
            other.into()
        }
        Op::LayerNorm(norm) => {
            let mut other = norm.clone();
            other.eps = F32(0.1);
            other.into()
        }
        Op::Rope(rope) => {
            let mut other = rope.clone();
            other.interleaved = !other.interleaved;
            other.into()
        }
        _ => return None,
    };
    (changed != *op).then(|| (format!("{:?} instead of {:?}", changed, op), changed))
}

fn other_form(form: &ViewForm, rng: &mut Rng) -> Option<ViewForm> {
    match form {
        ViewForm::Permute(axes) => {
            let mut axes = axes.clone();
            rng.shuffle(&mut axes);
            Some(ViewForm::Permute(axes))
        }
        ViewForm::Slice(cuts) => {
            let mut cuts = cuts.clone();
            let at = rng.index(cuts.len());
            let cut = &mut cuts[at];
            match rng.below(3) {
                0 => cut.start += 1,
                1 => cut.start = cut.start.checked_sub(1)?,
                _ => cut.step = 2,
            }
            Some(ViewForm::Slice(cuts))
        }
        // In another order, which inference refuses where it is no reshape.
        ViewForm::Reshape(dims) => {
            let mut axes: Vec<u32> = (0..dims.len() as u32).collect();
            rng.shuffle(&mut axes);
            Some(ViewForm::Permute(axes))
        }
        ViewForm::Expand(_) => None,
    }
}

fn other_expr(expr: &Expr, rng: &mut Rng) -> Option<(String, Expr)> {
    let at = rng.index(expr.terms().len());
    let mut said = None;
    let mut made: Vec<Expr> = Vec::new();
    for (n, term) in expr.terms().iter().enumerate() {
        let args = || term.args().iter().map(|&a| made[a as usize].clone()).collect::<Vec<_>>();
        let same = match term {
            Term::Input(i) => Expr::input(*i),
            Term::Const(value) => Expr::constant(*value),
            Term::Cast(to, x) => made[*x as usize].cast(*to),
            Term::Call(func, _) => Expr::call(*func, &args()),
        };
        if n != at {
            made.push(same);
            continue;
        }
        let (what, other) = match term {
            Term::Const(Scalar::F32(x)) => {
                let value = *rng.choose(&[x.0 * 2.0, x.0 + 0.25, -x.0, x.0 * 1.01, 0.0]);
                (format!("{value} instead of {}", x.0), Expr::constant(value))
            }
            Term::Input(i) => {
                let other = rng.below(expr.inputs() as u64) as u32;
                (format!("x{other} instead of x{i}"), Expr::input(other))
            }
            Term::Call(func, _) => match rng.below(4) {
                0 => {
                    let like: Vec<Func> = Func::ALL.iter().copied().filter(|f| f.arity() == func.arity()).collect();
                    let other = *rng.choose(&like);
                    (format!("{} instead of {}", other.name(), func.name()), Expr::call(other, &args()))
                }
                1 => {
                    let mut args = args();
                    args.reverse();
                    (format!("arguments of {} exchanged", func.name()), Expr::call(*func, &args))
                }
                2 => (format!("{} dropped", func.name()), args().into_iter().next()?),
                _ => (format!("{} negated", func.name()), Expr::call(Func::Neg, &[same])),
            },
            _ => return None,
        };
        said = Some(what);
        made.push(other);
    }
    let other = made.pop()?;
    (other != *expr).then_some((said?, other))
}
