//! The graph gives the same logits however a sequence is cut into steps: nothing in it depends on the step.

use crate::arch_support::{ArchRunner, tiny};

#[test]
fn chunks_do_not_change_the_logits() {
    let ids: Vec<u32> = (0..45).map(|i| 3 + i * 37 % 90).collect();
    for folder in tiny("safetensors").into_iter().chain(tiny("converted")) {
        let mut runner = ArchRunner::new(&folder, 64).unwrap();
        let all: Vec<usize> = (0..ids.len()).collect();
        let whole = runner.step(&ids, &all);
        for size in [1, 7, 32] {
            runner.reset();
            let pieces = ids.chunks(size).flat_map(|c| runner.step(c, &(0..c.len()).collect::<Vec<_>>()));
            assert!(pieces.eq(whole.iter().cloned()), "{} in chunks of {size}", folder.display());
        }
    }
}

#[test]
fn only_wanted_rows_are_computed_in_the_order_asked_for() {
    for folder in tiny("gguf") {
        let mut runner = ArchRunner::new(&folder, 64).unwrap();
        let all = runner.step(&[5, 6, 7, 8], &[0, 1, 2, 3]);
        runner.reset();
        assert_eq!(runner.step(&[5, 6, 7, 8], &[3, 1]), [all[3].clone(), all[1].clone()]);
        runner.reset();
        assert!(runner.step(&[5, 6, 7, 8], &[]).is_empty());
    }
}
