//! What it costs to verify several tokens of a sequence in one step, against one: the whole model.
//!
//! `cargo run --release -p yirage-engine --example verify_cost -- MODEL [DEPTH]`: medians in milliseconds for 1 to 16
//! rows behind DEPTH tokens (64), and the ratio to one row. Rounds of all sizes take turns.
#![allow(clippy::print_stdout)] // what it measures is what it says

use std::error::Error;
use yirage_engine::{Engine, EngineOptions, Request, Speculation, SpeculationControl};
use yirage_hal::{Backend, OpenOptions};
use yirage_model::Checkpoint;

const ROWS: [u32; 9] = [1, 2, 3, 4, 6, 8, 10, 12, 16];
const ROUNDS: usize = 3;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let model = arguments.next().ok_or("usage: verify_cost MODEL [DEPTH]")?;
    let depth: u32 = arguments.next().map_or(Ok(64), |text| text.parse())?;
    let checkpoint = Checkpoint::open(&model)?;
    let (device, _) = yirage_cpu::Cpu.open(0, &OpenOptions::default())?;
    let speculation = Speculation { most: 15, control: SpeculationControl::Most, ..Speculation::lookup() };
    let options = EngineOptions { max_seqs: 1, speculation, ..EngineOptions::default() };
    let mut engine = Engine::load(&checkpoint, device, &options, &mut |_, _| {})?;
    // One token over and over: whatever comes, a step has as many guesses as are left to make.
    for round in 0..ROUNDS as u32 {
        for rows in ROWS {
            for _ in 0..4 {
                engine.add(Request::greedy(vec![100 + round; depth as usize], rows + 1))?;
                while !engine.is_idle() {
                    engine.step()?;
                }
            }
        }
    }
    let costs = engine.step_costs();
    let one = costs.first().map_or(1.0, |cost| cost.seconds);
    for cost in costs {
        println!(
            "{:2} rows: {:7.2} ms, {:.2} x, {} steps",
            cost.rows,
            cost.seconds * 1e3,
            cost.seconds / one,
            cost.steps
        );
    }
    Ok(())
}
