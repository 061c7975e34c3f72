//! Nodes of ops that work on caches, experts and samplers, and of several devices: cases of theirs with their own inputs.

use super::draft::Draft;
use crate::setup::KvCacheSetup;
use std::sync::LazyLock;
use yirage_hal::Record;
use yirage_ir::attr::F32;
use yirage_ir::op::{Attention, KvAppend, OpCase, Role};
use yirage_ir::{BuildError, DType, Dim, Op, Sym, Tensor, Type, ValueId, ValueSource};

/// For each op whose inputs are not drawn, its small cases, and of an op that has none its smallest ones.
static CASES: LazyLock<Vec<Vec<OpCase>>> = LazyLock::new(|| {
    let elements = |case: &OpCase| case.ins.iter().map(|t| t.shape.iter().product::<usize>()).sum::<usize>();
    let plain = |case: &OpCase| case.ins.iter().all(|t| t.activation_format().is_none());
    let mut ops: Vec<Vec<OpCase>> = Vec::new();
    for case in Op::all_cases().into_iter().filter(|case| whole(&case.op) && plain(case) && usual_blocks(case)) {
        match ops.last_mut().filter(|cases| cases[0].op.name() == case.op.name()) {
            Some(cases) => cases.push(case),
            None => ops.push(vec![case]),
        }
    }
    for cases in &mut ops {
        cases.sort_by_key(elements);
        let small = cases.iter().filter(|case| elements(case) < 20_000).count();
        cases.truncate(small.max(2));
    }
    ops
});

/// Whether caches are of blocks of 32 positions, which every device has.
fn usual_blocks(case: &OpCase) -> bool {
    let is_usual = |(i, t): (usize, &Tensor)| match t.shape[..] {
        [_, positions, _, _] if case.op.role(i, t) == Role::KvCache => positions == 32,
        _ => true,
    };
    case.ins.iter().enumerate().all(is_usual)
}

fn whole(op: &Op) -> bool {
    matches!(
        op,
        Op::KvAppend(_)
            | Op::Attention(_)
            | Op::CausalConv1d(_)
            | Op::SsmScan(_)
            | Op::GatedDelta(_)
            | Op::Route(_)
            | Op::ExpertLinear(_)
            | Op::ExpertBias(_)
            | Op::ExpertSum(_)
            | Op::Sample(_)
            | Op::AllReduce(_)
            | Op::AllGather(_)
            | Op::ReduceScatter(_)
            | Op::Broadcast(_)
            | Op::SendRecv(_)
    )
}

impl Draft<'_> {
    /// A case's node. Rows of f32 come from a slot; one of a cache is not there twice, since a cache is one state.
    pub(super) fn case(&mut self) -> Result<(), BuildError> {
        let cases = &CASES[self.choices.below(CASES.len())];
        let case = &cases[self.choices.below(cases.len())];
        let state = case.ins.iter().enumerate().any(|(i, t)| case.op.role(i, t) == Role::KvCache);
        if state && !self.kv_caches.is_empty() {
            return Ok(());
        }
        let append = matches!(case.op, Op::KvAppend(_));
        if append && (self.taken.contains(&Sym::Seqs) || self.taken.contains(&Sym::Blocks)) {
            return Ok(());
        }
        // Symbols have one value a step.
        for (i, t) in case.ins.iter().enumerate() {
            for (sym, n) in symbols(case, i).iter().zip(&t.shape) {
                if self.taken.contains(sym) && self.dims.get(*sym) as usize != *n {
                    return Ok(());
                }
            }
        }
        let mut ins = Vec::new();
        for i in 0..case.ins.len() {
            ins.push(self.case_input(case, i)?);
        }
        if let Op::KvAppend(op) = &case.op {
            self.append(case, op, &ins)
        } else {
            self.node(case.op.clone(), &ins).map(drop)
        }
    }

    /// A cache is read through attention alone: each token's over what lies up to its own slot.
    fn append(&mut self, case: &OpCase, op: &KvAppend, ins: &[ValueId]) -> Result<(), BuildError> {
        let name = self.name();
        let state = self.builder.op(&name, op.clone(), ins)?;
        let (heads, latent) = (op.kv_heads, ins.len() == 3);
        let k = case.ins[1].width() as u32 / heads;
        let v = if latent { k } else { case.ins[2].width() as u32 / heads };
        let tokens = self.dims.tokens as usize;
        let blocks = case.ins[0].shape[0] as u32;
        (self.dims.seqs, self.dims.blocks) = (1, blocks);
        self.taken.extend([Sym::Seqs, Sym::Blocks]);
        let q = self.input(Type::rows(Sym::Tokens, heads * k))?;
        let per_token = || Type::new(DType::I32, [Sym::Tokens]);
        let seqs = self.step_input(per_token(), Record::of(&vec![0i32; tokens]))?;
        let table = Type::new(DType::I32, [Sym::Seqs, Sym::Blocks]);
        let table = self.step_input(table, Record::of(&(0..blocks as i32).collect::<Vec<_>>()))?;
        let attention = Attention {
            heads,
            kv_heads: heads,
            k_width: k,
            v_width: v,
            scale: F32(1.0),
            softcap: F32(0.0),
            window: 0,
            causal: true,
            cached: true,
            v_in_k: latent,
        };
        self.op(attention, &[q, state, ins[ins.len() - 1], seqs, table]).map(drop)
    }

    fn case_input(&mut self, case: &OpCase, input: usize) -> Result<ValueId, BuildError> {
        let t = &case.ins[input];
        let mut shape: Vec<Dim> = t.shape.iter().map(|&n| Dim::Const(n as u32)).collect();
        for (dim, &sym) in shape.iter_mut().zip(symbols(case, input)) {
            self.dims.set(sym, dim.as_const().unwrap_or(0) as u32);
            self.taken.push(sym);
            *dim = sym.into();
        }
        match case.op.role(input, t) {
            Role::KvCache => {
                let name = self.name();
                let k_width = match &case.op {
                    Op::Attention(a) => a.k_width,
                    Op::KvAppend(op) => case.ins[1].width() as u32 / op.kv_heads,
                    _ => 0,
                };
                self.kv_caches.push(KvCacheSetup { name: name.clone(), values: t.clone(), k_width });
                self.builder.declare(&name, Type::new(t.dtype, shape[1..].iter().copied()), ValueSource::KvCache)
            }
            Role::Weight => self.weight_of_values(Type::new(t.dtype, shape), t.clone()),
            _ => self.step_input(Type::new(t.dtype, shape), Record::of(&t.memory())),
        }
    }
}

/// The symbols of an input's outermost sizes.
fn symbols(case: &OpCase, input: usize) -> &'static [Sym] {
    match case.op.role(input, &case.ins[input]) {
        Role::StepInput(syms) => syms,
        Role::Activation => &[Sym::Tokens],
        _ => &[],
    }
}
