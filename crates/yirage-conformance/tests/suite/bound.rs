//! What is bound to the names of a plan, and what is given for a step: not what the plan says is an error that says so,
//! never other memory.

use std::sync::Arc;
use yirage_compile::{CompileOptions, compile, plan_weights};
use yirage_cpu::Cpu;
use yirage_hal::reference::Reference;
use yirage_hal::{
    Backend, Bindings, Device, Executor, Fence, HalError, OpenOptions, Program, Record, StepInputValue, StepRequest,
    WeightHandle,
};
use yirage_ir::{DType, Dims, Format, Graph, Type, text};
use yirage_plan::{ExecutorKind, VerifiedPlan, WeightEntry};

const BUCKET: Dims = Dims { tokens: 5, seqs: 1, blocks: 1, rows: 1 };

fn cpu() -> Arc<dyn Device> {
    let options = OpenOptions { threads: Some(1), isa: None, guarded: cfg!(unix), ..OpenOptions::default() };
    Cpu.open(0, &options).unwrap().0
}

fn plan(device: &dyn Device, body: &str) -> VerifiedPlan {
    let graph: Graph = text::parse(&format!("graph g {{ {body} }}")).unwrap();
    let target = device.target();
    let weights = plan_weights(&graph, &target).unwrap();
    compile(&graph, BUCKET, &target, &weights, &CompileOptions::default()).unwrap()
}

fn rows(device: &dyn Device, n: u32, width: u32) -> WeightHandle {
    let ty = Type::new(DType::F32, [n, width]);
    let entry = WeightEntry { name: "w".into(), ty, layout: "rows".into(), groups: 1, shard_axis: None };
    let mut sink = device.weight(&entry).unwrap();
    sink.write_rows(0, &vec![0; (n * width * 4) as usize]).unwrap();
    sink.finish().unwrap()
}

fn load(device: &dyn Device, plan: &VerifiedPlan, bindings: &Bindings) -> Result<Box<dyn Program>, String> {
    device.load(plan, bindings).map_err(|e| match e {
        HalError::Load(why) => why,
        e => panic!("{e}"),
    })
}

const OF_A_WEIGHT: &str = "weight %w: f32[5, 64] %y = softmax(%w): f32[5, 64] output %y";

#[test]
fn a_weight_of_another_size_or_device_is_refused() {
    let device = cpu();
    let plan = plan(&*device, OF_A_WEIGHT);
    let bound = |handle: Option<WeightHandle>| {
        let weights = handle.into_iter().map(|handle| ("w".to_string(), handle)).collect();
        load(&*device, &plan, &Bindings { weights, ..Bindings::default() }).map(|_| ())
    };
    assert_eq!(bound(Some(rows(&*device, 5, 64))), Ok(()));
    let why = bound(Some(rows(&*device, 4, 64))).unwrap_err();
    assert!(why.contains("weight `w` is f32[5, 64]") && why.contains("of another size"), "{why}");
    let why = bound(Some(WeightHandle(Arc::new(7u8)))).unwrap_err();
    assert!(why.contains("weight `w`") && why.contains("another device"), "{why}");
    let why = bound(None).unwrap_err();
    assert!(why.contains("weight `w` is not bound"), "{why}");
}

#[test]
fn a_cache_that_is_split_otherwise_is_refused() {
    let device = cpu();
    let body = "input %k: f32[Tokens, 8] input %v: f32[Tokens, 24] input %at: i32[Tokens] kv_cache %s: f32[32, 1, 32]
        %t = kv_append{kv_heads=1}(%s, %k, %v, %at): f32[32, 1, 32] output %t";
    let plan = plan(&*device, body);
    let block = Type::new(DType::Stored(Format::F32), [32u32, 1, 32]);
    let bound = |k_width: u32| {
        let states = [("s".to_string(), device.kv_cache(&block, k_width, 2).unwrap())].into();
        load(&*device, &plan, &Bindings { kv_caches: states, ..Bindings::default() }).map(|_| ())
    };
    assert_eq!(bound(8), Ok(()));
    // Its blocks have as many bytes, but a key would be read past the end of its row.
    let why = bound(16).unwrap_err();
    assert!(why.contains("input 0 of `kv_append`") && why.contains("`s`"), "{why}");
}

#[test]
fn choices_that_a_device_does_not_have_are_refused() {
    let refused = |device: &dyn Device, variant: &str| {
        let bindings = Bindings { kernel_variant: Some(variant.into()), ..Bindings::default() };
        let plan = plan(device, "input %x: f32[Tokens, 8] %y = softmax(%x): f32[Tokens, 8] output %y");
        Executor::new(device, &plan, &bindings).err().map(|e| e.to_string())
    };
    assert_eq!(refused(&*cpu(), "piece=32K"), None);
    assert_eq!(refused(&*cpu(), "piece=1K").unwrap(), "option `variant`: piece=1K: 4K to 16384K bytes");
    let (reference, _) = Reference::new().open(0, &OpenOptions::default()).unwrap();
    let why = refused(&*reference, "piece=32K").unwrap();
    assert!(why.contains("piece=32K") && why.contains("compute in one way"), "{why}");
}

#[test]
fn slots_of_another_length_are_no_step() {
    let device = cpu();
    let plan = plan(&*device, "input %x: f32[Tokens, 8] %y = softmax(%x): f32[Tokens, 8] output %y");
    let mut program = load(&*device, &plan, &Bindings::default()).unwrap();
    let mut run = |tokens: u32, given: &[&[i32]]| {
        let slots = given.iter().map(|words| StepInputValue::Host(Arc::new(Record::of(words)))).collect();
        let step = StepRequest {
            kind: ExecutorKind::Steps,
            dims: Dims { tokens, ..BUCKET },
            inputs: slots,
            reads: Vec::new(),
        };
        program.submit(step).and_then(Fence::wait).map(|_| ())
    };
    assert_eq!(run(2, &[&[0; 16]]), Ok(()));
    for (tokens, given) in [(2, &[&[0; 15][..]][..]), (2, &[]), (2, &[&[0; 16], &[0; 16]]), (6, &[&[0; 48]])] {
        let error = run(tokens, given).unwrap_err();
        assert!(matches!(error, HalError::Step(_)), "{tokens} tokens, {} slots: {error}", given.len());
    }
}
