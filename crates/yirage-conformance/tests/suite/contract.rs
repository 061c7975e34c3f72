//! What every device promises beside its kernels, on the processor, on the reference and on a simulated accelerator.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use yirage_compile::{CompileOptions, compile, plan_weights};
use yirage_cpu::Cpu;
use yirage_hal::reference::Reference;
use yirage_hal::{
    Backend, Bindings, Device, Executor, HalError, HostMemory, KvCacheHandle, OpenOptions, Record, WeightHandle,
};
use yirage_ir::{Dims, Format, Type, text};
use yirage_plan::{ExecutorKind, WeightEntry};
use yirage_sim::{Faults, Settings, Sim};

const DIMS: Dims = Dims { tokens: 2, seqs: 1, blocks: 1, rows: 1 };

fn open(backend: &dyn Backend) -> Arc<dyn Device> {
    backend.open(0, &OpenOptions::default()).unwrap().0
}

/// A device of each kind; the accelerator is late.
fn devices() -> Vec<Arc<dyn Device>> {
    let late = Sim::with(Settings { seed: 3, delay: Duration::from_millis(2), devices: 2, ..Settings::default() });
    vec![open(&Cpu), open(&Reference::new()), open(&late)]
}

fn load(device: &dyn Device, body: &str) -> Executor {
    let graph = text::parse(&format!("graph g {{ {body} }}")).unwrap();
    let target = device.target();
    let weights = plan_weights(&graph, &target).unwrap();
    let plan = compile(&graph, Dims { tokens: 4, ..DIMS }, &target, &weights, &CompileOptions::default()).unwrap();
    Executor::new(device, &plan, &Bindings::default()).unwrap()
}

const DOUBLE: &str = "input %x: f32[Tokens, 2] %y = map{expr=\"add(x0, x0)\"}(%x): f32[Tokens, 2] output %y";

#[test]
fn elements_of_every_type_go_in_and_come_out() {
    let cases: [(&str, &str, Record); 6] = [
        ("f32", "x0", Record::of(&[1.5f32, f32::NAN, -0.0, f32::INFINITY])),
        ("f16", "x0", Record::of(&[0x3c00u16, 0x7e00, 0x8000, 0x0001])),
        ("bf16", "x0", Record::of(&[0x3f80u16, 0x7fc0, 0x8000, 0x0001])),
        ("i32", "x0", Record::of(&[i32::MIN, -1, 0, i32::MAX])),
        ("u32", "x0", Record::of(&[u32::MAX, 1, 0, 1 << 31])),
        ("bool", "x0", Record::of(&[1u8, 0, 0, 1])),
    ];
    for device in devices() {
        for (ty, expr, given) in &cases {
            let body = format!("input %x: {ty}[Tokens, 2] %y = map{{expr=\"{expr}\"}}(%x): {ty}[Tokens, 2] output %y");
            let mut executor = load(&*device, &body);
            executor.set_memory("x", Arc::new(given.clone()));
            let outputs = executor.run(&DIMS).unwrap();
            assert_eq!(outputs.bytes(0).unwrap().1, given.bytes(), "{ty} on {}", device.info().backend);
        }
    }
}

/// Memory of somebody else, who is told when it is let go.
struct Foreign {
    bytes: Vec<u8>,
    gone: Arc<AtomicUsize>,
}

impl HostMemory for Foreign {
    fn bytes(&self) -> &[u8] {
        &self.bytes[1..]
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        self.gone.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn imported_memory_is_read_where_it_lies_and_let_go_behind_the_fence() {
    for device in devices() {
        let gone = Arc::new(AtomicUsize::new(0));
        // At an address of no element's alignment.
        let bytes = [&[0u8][..], &[1.0f32, 2.0, 3.0, 4.0].map(f32::to_le_bytes).concat()].concat();
        let mut executor = load(&*device, DOUBLE);
        executor.set_memory("x", Arc::new(Foreign { bytes, gone: gone.clone() }));
        let flight = executor.submit(&DIMS, &[], &[0]).unwrap();
        if !flight.is_done() {
            assert_eq!(gone.load(Ordering::SeqCst), 0, "let go before the step is over");
        }
        let outputs = flight.wait().unwrap();
        assert_eq!(outputs.floats(0).unwrap(), [2.0, 4.0, 6.0, 8.0]);
        assert_eq!(gone.load(Ordering::SeqCst), 1, "{}", device.info().backend);
    }
}

#[test]
fn outputs_stay_on_the_device_for_the_next_step() {
    for device in devices() {
        let (mut first, mut second) = (load(&*device, DOUBLE), load(&*device, DOUBLE));
        first.set_floats("x", [1.0, 2.0, 3.0, 4.0]);
        let flights = [first.submit(&DIMS, &[], &[]).unwrap(), {
            let given = first.resident_output(0).unwrap();
            second.submit(&DIMS, &[("x", given)], &[0]).unwrap()
        }];
        let [_, last] = flights.map(|flight| flight.wait().unwrap());
        assert_eq!(last.floats(0).unwrap(), [4.0, 8.0, 12.0, 16.0]);
        // A program may read what it has made itself.
        let own = first.resident_output(0).unwrap();
        let again = first.run_on(&DIMS, &[("x", own)]).unwrap();
        assert_eq!(again.floats(0).unwrap(), [4.0, 8.0, 12.0, 16.0], "{}", device.info().backend);
    }
}

#[test]
fn outputs_that_are_gone_or_elsewhere_are_refused() {
    let devices = devices();
    for device in devices.iter().filter(|device| device.info().backend != "reference") {
        let (mut first, mut second) = (load(&**device, DOUBLE), load(&**device, DOUBLE));
        first.set_floats("x", [0.0; 4]);
        first.run(&DIMS).unwrap();
        let old = first.resident_output(0).unwrap();
        first.set_floats("x", [1.0; 4]);
        first.run(&DIMS).unwrap();
        let error = second.submit(&DIMS, &[("x", old)], &[0]).unwrap_err();
        assert!(matches!(&error, HalError::Step(why) if why.contains("written over")), "{error}");
        let other = open(&Cpu);
        let error = load(&*other, DOUBLE).submit(&DIMS, &[("x", first.resident_output(0).unwrap())], &[0]).unwrap_err();
        assert!(matches!(&error, HalError::Step(why) if why.contains("another device")), "{error}");
    }
}

#[test]
fn accounts_move_with_what_is_held() {
    for device in devices().iter().filter(|device| device.info().backend != "reference") {
        let name = device.info().backend;
        assert_eq!(device.memory().arena.used, 0);
        let executor = load(&**device, DOUBLE);
        assert!(device.memory().arena.used > 0, "{name}");
        drop(executor);
        let block = Type::new(Format::F32.into(), [32u32, 1, 8]);
        let state: KvCacheHandle = device.kv_cache(&block, 4, 3).unwrap();
        assert_eq!(device.memory().cache.used, 3 * device.kv_block_bytes(&block, 4).unwrap(), "{name}");
        let ty = Type::new(Format::F32.into(), [4u32, 8]);
        let entry = WeightEntry {
            name: "w".into(),
            ty,
            layout: yirage_plan::WeightLayout::ROWS.name().into(),
            groups: 1,
            shard_axis: None,
        };
        let mut sink = device.weight(&entry).unwrap();
        sink.write_rows(0, &[0; 128]).unwrap();
        let weight: WeightHandle = sink.finish().unwrap();
        assert!(device.memory().weights.used >= 128, "{name}");
        drop((state, weight));
        let held = device.memory();
        assert_eq!((held.weights.used, held.cache.used, held.arena.used), (0, 0, 0), "{name}");
        assert!(held.weights.peak >= 128 && held.cache.peak > 0 && held.arena.peak > 0, "{name}");
    }
}

#[test]
fn what_a_device_cannot_do_is_typed() {
    let unrecorded = Sim::with(Settings { captures_graphs: false, ..Settings::default() });
    for device in [open(&Cpu), open(&Reference::new()), open(&unrecorded)] {
        let error = load(&*device, DOUBLE).force(ExecutorKind::Replay).unwrap_err();
        assert!(matches!(error, HalError::Unsupported { .. }), "{error}");
    }
    let error = load(&*open(&Sim::default()), DOUBLE).force(ExecutorKind::Persistent).unwrap_err();
    assert!(matches!(error, HalError::Unsupported { .. }), "{error}");
    for backend in [&Cpu as &dyn Backend, &Sim::default()] {
        let error = backend.open(7, &OpenOptions::default()).err().unwrap();
        assert!(matches!(error, HalError::Option { option: "device", .. }), "{error}");
    }
}

#[test]
fn a_graph_moves_from_device_to_device() {
    let body = "input %x: f32[Tokens, 2] %r = reduce{kind=sum, axes=\"[1]\", keep=true}(%x): f32[Tokens, 1]
        %y = map{expr=\"div(x0, x1)\"}(%x, %r): f32[Tokens, 2] output %y";
    let mut each = devices().into_iter().map(|device| {
        let mut executor = load(&*device, body);
        executor.set_floats("x", [1.0, 3.0, -2.0, 6.0]);
        executor.run(&DIMS).unwrap().floats(0).unwrap().to_vec()
    });
    let first = each.next().unwrap();
    assert_eq!(first, [0.25, 0.75, -0.5, 1.5]);
    assert!(each.all(|other| other == first));
}

#[test]
fn buckets_that_share_an_arena_take_no_more_than_the_largest() {
    for device in devices().iter().filter(|device| device.info().backend != "reference") {
        let graph = text::parse(&format!("graph g {{ {DOUBLE} }}")).unwrap();
        let target = device.target();
        let plan = |tokens| {
            let weights = plan_weights(&graph, &target).unwrap();
            compile(&graph, Dims { tokens, ..DIMS }, &target, &weights, &CompileOptions::default()).unwrap()
        };
        let bindings = Bindings::default();
        let mut large = Executor::new(&**device, &plan(4096), &bindings).unwrap();
        let alone = device.memory().arena.used;
        let mut small = Executor::new(&**device, &plan(2), &bindings).unwrap();
        assert_eq!(device.memory().arena.used, alone, "{}", device.info().backend);
        for executor in [&mut large, &mut small] {
            executor.set_floats("x", [1.0, 2.0, 3.0, 4.0]);
            assert_eq!(executor.run(&DIMS).unwrap().floats(0).unwrap(), [2.0, 4.0, 6.0, 8.0]);
        }
        // A step of one ends what the other has left.
        let left = large.resident_output(0).unwrap();
        let error = load(&**device, DOUBLE).submit(&DIMS, &[("x", left)], &[0]).unwrap_err();
        assert!(error.to_string().contains("written over"), "{error}");
    }
}

/// What `%y` holds after each of these steps: the slot's values, and the tokens of the step.
fn doubled(executor: &mut Executor, steps: &[(u32, f32)]) -> Vec<Vec<f32>> {
    let run = |&(tokens, value): &(u32, f32)| {
        executor.set_floats("x", vec![value; 2 * tokens as usize]);
        executor.run(&Dims { tokens, ..DIMS }).unwrap().floats(0).unwrap().to_vec()
    };
    steps.iter().map(run).collect()
}

#[test]
fn a_step_that_is_played_again_reads_its_slots_anew() {
    let sim = Sim::default();
    let device = open(&sim);
    let mut executor = load(&*device, DOUBLE);
    assert_eq!(executor.executors(), [ExecutorKind::Replay, ExecutorKind::Steps]);
    assert_eq!(executor.chosen().0, ExecutorKind::Replay);
    // The slot grows at the third step, whose recording is of another place.
    let steps = [(1, 1.0), (1, 2.0), (4, 3.0), (1, 4.0), (4, f32::INFINITY), (2, 5.0), (4, 6.0)];
    let played = doubled(&mut executor, &steps);
    executor.force(ExecutorKind::Steps).unwrap();
    assert_eq!(doubled(&mut executor, &steps), played);
    assert_eq!(played[3], [8.0; 2]);
    assert_eq!(played[6], [12.0; 8]);
    drop((executor, device));
    assert!(
        sim.memory_stats().iter().all(|held| held.bytes == 0 && held.allocations == held.frees),
        "{:?}",
        sim.memory_stats()
    );
}

#[test]
fn an_output_of_one_device_is_the_slot_of_another() {
    let sim = Sim::with(Settings { devices: 2, seed: 5, delay: Duration::from_millis(2), ..Settings::default() });
    let [first, second] = [0, 1].map(|n| sim.open(n, &OpenOptions::default()).unwrap().0);
    let (mut first, mut second) = (load(&*first, DOUBLE), load(&*second, DOUBLE));
    for value in [1.0, -3.5] {
        first.set_floats("x", [value; 4]);
        let begun = first.submit(&DIMS, &[], &[]).unwrap();
        let there = second.submit(&DIMS, &[("x", first.resident_output(0).unwrap())], &[0]).unwrap();
        // The next step here writes where the other device reads, and comes after it.
        first.set_floats("x", [100.0; 4]);
        let next = first.submit(&DIMS, &[], &[]).unwrap();
        assert_eq!(there.wait().unwrap().floats(0).unwrap(), [4.0 * value; 4]);
        begun.wait().unwrap();
        next.wait().unwrap();
    }
}

#[test]
fn what_a_lost_device_should_have_given_is_an_error_of_the_one_that_waits() {
    let faults = Faults { lost: Some(2), ..Faults::default() };
    let lost = open(&Sim::with(Settings { faults, delay: Duration::from_millis(100), ..Settings::default() }));
    let sound = open(&Sim::default());
    let (mut from, mut to) = (load(&*lost, DOUBLE), load(&*sound, DOUBLE));
    from.set_floats("x", [1.0; 4]);
    let begun = from.submit(&DIMS, &[], &[]).unwrap();
    let given = to.submit(&DIMS, &[("x", from.resident_output(0).unwrap())], &[0]);
    let error = given.and_then(|flight| flight.wait()).unwrap_err();
    assert!(matches!(error, HalError::Device(_) | HalError::Lost(_)), "{error}");
    assert!(matches!(begun.wait().unwrap_err(), HalError::Lost(_)));
    to.set_floats("x", [1.0; 4]);
    assert_eq!(to.run(&DIMS).unwrap().floats(0).unwrap(), [2.0; 4], "the other device goes on");
}
