//! Views cancel, and move past maps and into products.

use super::shapes::is;
use crate::rule::Rule;
use yirage_compile::terms::{MapArg, MapFunc, Terms, Val};
use yirage_ir::expr::Func;
use yirage_ir::op::{Concat, Contract, Cut, ViewForm};
use yirage_ir::{Dim, Op};

pub(super) const CANCEL: Rule = Rule::local(
    "cancel views",
    "a permutation of a permutation is one, as are two reshapes and two slices; a view that changes nothing is what it \
     sees; repeating before a map is the map's own matter",
    cancel,
    &[
        "graph g { input %x: f32[B, M, K] %p = view{form=\"permute(2, 0, 1)\"}(%x): f32[K, B, M]
           %q = view{form=\"permute(1, 2, 0)\"}(%p): f32[B, M, K] %y = map{expr=\"exp(x0)\"}(%q): f32[B, M, K] output %y }",
        "graph g { input %x: f32[M, 6] %p = view{form=\"reshape(M, 2, 3)\"}(%x): f32[M, 2, 3]
           %y = view{form=\"reshape(M, 3, 2)\"}(%p): f32[M, 3, 2] output %y }",
        "graph g { input %x: f32[M, 9] %p = view{form=\"slice(0:1:M, 1:2:4)\"}(%x): f32[M, 4]
           %y = view{form=\"slice(0:1:M, 3:-1:2)\"}(%p): f32[M, 2] output %y }",
        "graph g { input %x: f32[M, 1] input %z: f32[M, K] %p = view{form=\"expand(M, K)\"}(%x): f32[M, K]
           %y = map{expr=\"add(x0, x1)\"}(%p, %z): f32[M, K] output %y }",
    ],
);

fn cancel(t: &mut Terms, v: Val) -> Vec<Option<Val>> {
    vec![nothing(t, v), twice(t, v), repeated(t, v)]
}

fn nothing(t: &mut Terms, v: Val) -> Option<Val> {
    let (form, x) = t.view(v)?;
    let still = match form {
        ViewForm::Permute(axes) => axes.iter().copied().eq(0..axes.len() as u32),
        ViewForm::Reshape(_) | ViewForm::Expand(_) => true,
        ViewForm::Slice(cuts) => cuts.iter().all(|c| c.start == 0 && c.step == 1),
    };
    (still && is(t, v, t.shape(x)) && t.ty(x).strides.is_none()).then_some(x)
}

fn twice(t: &mut Terms, v: Val) -> Option<Val> {
    let (outer, p) = t.view(v)?;
    let (inner, x) = t.view(p)?;
    let form = match (outer, inner) {
        (ViewForm::Permute(a), ViewForm::Permute(b)) => ViewForm::Permute(a.iter().map(|&i| b[i as usize]).collect()),
        (ViewForm::Reshape(shape), ViewForm::Reshape(_)) => ViewForm::Reshape(shape.clone()),
        (ViewForm::Slice(a), ViewForm::Slice(b)) => {
            ViewForm::Slice(a.iter().zip(b).map(|(a, b)| of_cut(a, b)).collect::<Option<_>>()?)
        }
        _ => return None,
    };
    t.add_view(form, x)
}

/// A cut of a cut.
fn of_cut(outer: &Cut, inner: &Cut) -> Option<Cut> {
    if *inner == Cut::whole(inner.size) {
        return Some(*outer);
    }
    let start = i64::from(inner.start) + i64::from(outer.start) * i64::from(inner.step);
    let step = outer.step.checked_mul(inner.step)?;
    Some(Cut { start: u32::try_from(start).ok()?, step, size: outer.size })
}

/// A function of a value that is repeated, where it would be repeated anyway.
fn repeated(t: &mut Terms, v: Val) -> Option<Val> {
    let call = t.call(v)?;
    let inner = |a: &MapArg| match a {
        MapArg::Val(x) => match t.view(*x) {
            Some((ViewForm::Expand(_), x)) => MapArg::Val(x),
            _ => *a,
        },
        constant => *constant,
    };
    let args: Vec<MapArg> = call.args.iter().map(inner).collect();
    if args == call.args {
        return None;
    }
    t.step(call.step, &args)?.val().filter(|&y| is(t, y, t.shape(v)))
}

pub(super) const PAST_MAPS: Rule = Rule::local(
    "views past maps",
    "f(view x, view z) = view f(x, z) for permutations and reshapes; slices and permutations of a map become the map of \
     slices and permutations",
    past_maps,
    &[
        "graph g { input %x: f32[M, K] input %z: f32[M, K] %p = view{form=\"permute(1, 0)\"}(%x): f32[K, M]
           %q = view{form=\"permute(1, 0)\"}(%z): f32[K, M]
           %y = map{expr=\"add(x0, exp(x1))\"}(%p, %q): f32[K, M] output %y }",
        "graph g { input %x: f32[M, K] input %z: f32[M, K] %p = map{expr=\"mul(x0, x1)\"}(%x, %z): f32[M, K]
           %y = view{form=\"slice(0:1:1, 0:1:K)\"}(%p): f32[1, K] output %y }",
        "graph g { input %x: f32[M, K] %p = map{expr=\"exp(x0)\"}(%x): f32[M, K]
           %y = view{form=\"permute(1, 0)\"}(%p): f32[K, M] output %y }",
    ],
);

fn past_maps(t: &mut Terms, v: Val) -> Vec<Option<Val>> {
    vec![outwards(t, v), inwards(t, v)]
}

fn outwards(t: &mut Terms, v: Val) -> Option<Val> {
    let call = t.call(v)?;
    let mut seen: Option<(ViewForm, Vec<Dim>)> = None;
    let mut args = Vec::with_capacity(call.args.len());
    for arg in &call.args {
        let MapArg::Val(x) = arg else {
            args.push(*arg);
            continue;
        };
        let (form, x) = t.view(*x)?;
        let this = (form.clone(), t.shape(x).to_vec());
        let moves = matches!(form, ViewForm::Permute(_) | ViewForm::Reshape(_));
        if !moves || seen.as_ref().is_some_and(|known| *known != this) {
            return None;
        }
        seen = Some(this);
        args.push(MapArg::Val(x));
    }
    let y = t.step(call.step, &args)?.val()?;
    t.add_view(seen?.0, y)
}

fn inwards(t: &mut Terms, v: Val) -> Option<Val> {
    let (form, p) = t.view(v)?;
    let form = Some(form).filter(|form| matches!(form, ViewForm::Permute(_) | ViewForm::Slice(_)))?.clone();
    let call = t.call(p)?;
    let shape = t.shape(p).to_vec();
    let mut args = Vec::with_capacity(call.args.len());
    for arg in &call.args {
        args.push(match *arg {
            MapArg::Val(x) if is(t, x, &shape) => MapArg::Val(t.add_view(form.clone(), x)?),
            MapArg::Val(_) => return None,
            constant => constant,
        });
    }
    t.step(call.step, &args)?.val()
}

pub(super) const INTO_PRODUCTS: Rule = Rule::local(
    "slices into products",
    "some rows and columns of a b are those rows of a times those columns of b",
    into_products,
    &["graph g { input %a: f32[B, M, K] input %b: f32[B, K, 7] %p = contract(%a, %b): f32[B, M, 7]
           %y = view{form=\"slice(0:1:B, 0:1:1, 2:1:3)\"}(%p): f32[B, 1, 3] output %y }"],
);

fn into_products(t: &mut Terms, v: Val) -> Vec<Option<Val>> {
    let inside = |t: &mut Terms| {
        let (ViewForm::Slice(cuts), p) = t.view(v)? else { return None };
        let (a, b) = t.contract(p)?;
        let rank = t.rank(p);
        let (batch, [rows, columns]) = cuts.split_last_chunk::<2>()?;
        let whole = batch.iter().zip(t.shape(p)).all(|(cut, &dim)| *cut == Cut::whole(dim));
        if !whole || t.rank(a) > rank || t.rank(b) > rank {
            return None;
        }
        let (rows, columns) = (*rows, *columns);
        let a = along(t, a, 1, rows)?;
        let b = along(t, b, 0, columns)?;
        t.op(Contract {}, &[a, b])
    };
    vec![inside(t)]
}

/// A value with one dimension cut.
fn along(t: &mut Terms, x: Val, from_last: usize, cut: Cut) -> Option<Val> {
    let at = t.rank(x).checked_sub(from_last + 1)?;
    let mut cuts: Vec<Cut> = t.shape(x).iter().map(|&d| Cut::whole(d)).collect();
    if cut == cuts[at] {
        return Some(x);
    }
    cuts[at] = cut;
    t.add_view(ViewForm::Slice(cuts), x)
}

pub(super) const PARTS: Rule = Rule::local(
    "parts of joined values",
    "a slice inside of one part of a concat is a slice of the part; the parts of a value in their order, joined, are the \
     value; a function of joined values is the joined function of the parts",
    parts,
    &[
        "graph g { input %x: f32[M, 3] input %z: f32[M, 4] %p = concat{axis=1}(%x, %z): f32[M, 7]
           %y = view{form=\"slice(0:1:M, 4:1:2)\"}(%p): f32[M, 2] output %y }",
        "graph g { input %x: f32[M, 7] %p = view{form=\"slice(0:1:M, 0:1:4)\"}(%x): f32[M, 4]
           %q = view{form=\"slice(0:1:M, 4:1:3)\"}(%x): f32[M, 3] %j = concat{axis=1}(%p, %q): f32[M, 7]
           %y = map{expr=\"exp(x0)\"}(%j): f32[M, 7] output %y }",
        "graph g { input %x: f32[M, 3] input %z: f32[M, 4] %p = map{expr=\"exp(x0)\"}(%x): f32[M, 3]
           %q = map{expr=\"exp(x0)\"}(%z): f32[M, 4] %y = concat{axis=1}(%p, %q): f32[M, 7] output %y }",
    ],
);

fn parts(t: &mut Terms, v: Val) -> Vec<Option<Val>> {
    vec![inside_part(t, v), put_together(t, v), joined_calls(t, v)]
}

fn concat(t: &Terms, v: Val) -> Option<(usize, Vec<Val>)> {
    match t.producing_op(v)? {
        (Op::Concat(concat), args) => Some((concat.axis as usize, args.to_vec())),
        _ => None,
    }
}

fn inside_part(t: &mut Terms, v: Val) -> Option<Val> {
    let (ViewForm::Slice(cuts), p) = t.view(v)? else { return None };
    let cuts = cuts.clone();
    let (axis, args) = concat(t, p)?;
    let cut = cuts[axis];
    let (Dim::Const(size), 1) = (cut.size, cut.step) else { return None };
    let mut start = 0;
    for x in args {
        let Dim::Const(n) = t.shape(x)[axis] else { return None };
        if cut.start >= start && u64::from(cut.start) + u64::from(size) <= u64::from(start) + u64::from(n) {
            let mut cuts = cuts;
            cuts[axis].start -= start;
            return t.add_view(ViewForm::Slice(cuts), x);
        }
        start += n;
    }
    None
}

fn put_together(t: &mut Terms, v: Val) -> Option<Val> {
    let (axis, args) = concat(t, v)?;
    let mut whole: Option<Val> = None;
    let mut next = 0;
    for part in args {
        let (ViewForm::Slice(cuts), x) = t.view(part)? else { return None };
        let rest = cuts.iter().zip(t.shape(x)).enumerate().all(|(at, (c, &d))| at == axis || *c == Cut::whole(d));
        let Dim::Const(size) = cuts[axis].size else { return None };
        if !rest || cuts[axis].start != next || cuts[axis].step != 1 || whole.is_some_and(|w| w != x) {
            return None;
        }
        next += size;
        whole = Some(x);
    }
    whole.filter(|&x| is(t, x, t.shape(v)) && t.ty(x).strides.is_none())
}

fn joined_calls(t: &mut Terms, v: Val) -> Option<Val> {
    let (axis, args) = concat(t, v)?;
    let unary = |t: &Terms, x: Val| {
        let call = t.call(x).filter(|call| call.args.len() == 1)?;
        let MapFunc::Func(func) = call.step else { return None };
        Some((func, call.args[0].val()?))
    };
    let inner: Vec<(Func, Val)> = args.iter().map(|&x| unary(t, x)).collect::<Option<_>>()?;
    let func = inner.first()?.0;
    if inner.iter().any(|(f, _)| *f != func) {
        return None;
    }
    let parts: Vec<Val> = inner.into_iter().map(|(_, x)| x).collect();
    let joined = t.op(Concat { axis: axis as u32 }, &parts)?;
    t.map(func, &[joined.into()])
}
