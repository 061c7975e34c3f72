//! Choices with a device whose times are made up.

use super::pick::{Effort, TunedVariant, VariantTuningJob, pick};
use super::record::{Records, VariantRecordKey};
use super::{ChosenVariant, VariantOrigin};
use std::cell::Cell;
use std::sync::Mutex;
use std::time::Duration;
use yirage_hal::{HalError, KernelVariants, Length, Question, VariantTimer, WeightHandle};
use yirage_plan::{Precision, WeightPlan};

/// A device of two choices, `a` from 0 to 3 and `b` from 0 to 1, whose own choice is what the test's table says.
struct FakeVariants {
    own: [usize; 2],
    /// Seconds of products with each value of `a` and of `b`.
    times: [Vec<f64>; 2],
    /// Factors that others add to readings, one after the other.
    disturbed: Mutex<Vec<f64>>,
}

impl FakeVariants {
    fn new(own: [usize; 2], a: [f64; 4], b: [f64; 2]) -> FakeVariants {
        FakeVariants { own, times: [a.to_vec(), b.to_vec()], disturbed: Mutex::default() }
    }

    fn with(&self, text: &str) -> Result<[usize; 2], HalError> {
        let mut now = self.own;
        for choice in text.split(',').filter(|c| !c.is_empty()) {
            let bad = || HalError::Option { option: "variant", why: format!("no choice {choice}") };
            let (name, value) = choice.split_once('=').ok_or_else(bad)?;
            let at = ["a", "b"].iter().position(|n| *n == name).ok_or_else(bad)?;
            now[at] = value.parse().ok().filter(|v| *v < self.times[at].len()).ok_or_else(bad)?;
        }
        Ok(now)
    }
}

impl KernelVariants for FakeVariants {
    fn facts(&self) -> String {
        "a made-up processor".into()
    }

    fn resolve(&self, text: &str) -> Result<String, HalError> {
        let [a, b] = self.with(text)?;
        Ok(format!("a={a},b={b}"))
    }

    fn questions(&self) -> Vec<Question> {
        let of = |tokens, name: &str, n: usize| Question {
            tokens,
            step: 2 * tokens,
            answers: (0..n).map(|v| format!("{name}={v}")).collect(),
        };
        vec![of(1, "a", 4), of(64, "b", 2)]
    }

    fn timer(
        &self,
        _: &[WeightHandle],
        _: Precision,
        tokens: usize,
        length: Length,
    ) -> Result<Box<dyn VariantTimer + '_>, HalError> {
        let of = if length == Length::Full { tokens / 2 } else { tokens };
        Ok(Box::new(FakeTrial(self, [1, 64].iter().position(|tokens| *tokens == of).unwrap())))
    }
}

struct FakeTrial<'a>(&'a FakeVariants, usize);

impl VariantTimer for FakeTrial<'_> {
    fn seconds(&mut self, variant: &str) -> Result<f64, HalError> {
        let factor = self.0.disturbed.lock().unwrap().pop().unwrap_or(1.0);
        Ok(factor * self.0.times[self.1][self.0.with(variant)?[self.1]])
    }
}

const LONG: Duration = Duration::from_secs(1);

fn effort(length: Length, most: Duration) -> Effort {
    Effort { length, rounds: 3, most }
}

fn run_pick(made: &FakeVariants, way: &str, effort: Effort, now: &dyn Fn() -> Duration) -> TunedVariant {
    let (weights, precision, way) = (&[][..], Precision::Fast, made.resolve(way).unwrap());
    pick(VariantTuningJob { variants: made, weights, precision, variant: way }, effort, now).unwrap()
}

fn picked(made: &FakeVariants, most: Duration, now: &dyn Fn() -> Duration) -> (String, usize) {
    let picked = run_pick(made, "", effort(Length::Short, most), now);
    (picked.variant, picked.unanswered)
}

#[test]
fn a_wrong_table_is_corrected_by_the_first_start() {
    let made = FakeVariants::new([3, 0], [2.0, 1.0, 4.0, 9.0], [3.0, 2.0]);
    assert_eq!(picked(&made, LONG, &|| Duration::ZERO), ("a=1,b=1".into(), 0));
}

#[test]
fn differences_that_are_none_change_nothing() {
    let made = FakeVariants::new([2, 0], [1.0, 1.01, 1.015, 1.5], [1.0, 0.985]);
    assert_eq!(picked(&made, LONG, &|| Duration::ZERO), ("a=2,b=0".into(), 0));
}

#[test]
fn what_others_disturb_changes_nothing() {
    let made = FakeVariants::new([2, 0], [1.1, 1.1, 1.0, 1.1], [1.0, 1.0]);
    // For all of the first rounds' readings but one of another answer, which others left alone.
    *made.disturbed.lock().unwrap() = [[1.3; 9].as_slice(), &[0.8], &[1.3; 6]].concat();
    assert_eq!(picked(&made, LONG, &|| Duration::ZERO), ("a=2,b=0".into(), 0));
}

#[test]
fn a_full_measurement_goes_by_medians_from_what_is_selected_at_the_steps_own_sizes() {
    let made = FakeVariants::new([2, 0], [1.1, 1.0, 1.2, 1.0], [1.0, 1.0]);
    // The last readings come first: the second of `a=1` and the third of `a=3` are disturbed.
    *made.disturbed.lock().unwrap() = vec![1.0, 3.0, 1.0, 1.0, 1.0, 1.0, 1.0, 3.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
    let picked = run_pick(&made, "a=0", effort(Length::Full, Duration::MAX), &|| Duration::ZERO);
    assert_eq!(picked.variant, "a=1,b=0");
    let answers: Vec<_> = picked.answers.iter().map(|a| (&*a.choices, a.tokens, a.median, a.own, a.selected)).collect();
    let want = [
        ("a=0", 2, 1.1, true, false),
        ("a=1", 2, 1.0, false, true),
        ("a=2", 2, 1.2, false, false),
        ("a=3", 2, 1.0, false, false),
        ("b=0", 128, 1.0, true, true),
        ("b=1", 128, 1.0, false, false),
    ];
    assert_eq!(answers, want);
}

#[test]
fn what_there_is_no_time_for_stays_the_devices_own() {
    let made = FakeVariants::new([3, 0], [2.0, 1.0, 4.0, 9.0], [3.0, 2.0]);
    let looks = Cell::new(0u64);
    let clock = || {
        looks.set(looks.get() + 1);
        Duration::from_millis(100 * looks.get())
    };
    assert_eq!(picked(&made, LONG, &clock), ("a=1,b=0".into(), 1), "one round of four answers is over in time");
    let made = FakeVariants::new([3, 0], [2.0, 1.0, 4.0, 9.0], [3.0, 2.0]);
    assert_eq!(picked(&made, Duration::ZERO, &|| Duration::ZERO), ("a=3,b=0".into(), 2));
}

#[test]
fn records_are_whole_of_this_key_and_of_choices_that_exist_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (records, made) = (Records::new(folder.path()), FakeVariants::new([0, 0], [1.0; 4], [1.0; 2]));
    let key = |facts| VariantRecordKey::of(facts, &WeightPlan { entries: Vec::new() }, Precision::Fast);
    let mine = key("mine");
    let way = |text: &str| {
        let (text, origin) = (text.into(), VariantOrigin::Measured);
        ChosenVariant { text, origin, answers: Vec::new(), full: Vec::new() }
    };
    assert_eq!(records.read(&mine, &made), Ok(None));
    records.write(&mine, &way("a=3,b=1")).unwrap();
    assert_eq!(records.read(&mine, &made), Ok(Some("a=3,b=1".into())));
    assert_eq!(records.read(&key("another"), &made), Ok(None), "another processor has records of its own");

    records.write(&mine, &way("a=4")).unwrap();
    assert!(records.read(&mine, &made).unwrap_err().contains("no choice a=4"));
    let file = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("a=4", "a=1")).unwrap();
    assert!(records.read(&mine, &made).unwrap_err().contains("damaged"));

    records.write(&key("another"), &way("a=2,b=0")).unwrap();
    let other = std::fs::read_dir(folder.path()).unwrap().map(|f| f.unwrap().path()).find(|f| *f != file).unwrap();
    std::fs::rename(other, &file).unwrap();
    assert!(records.read(&mine, &made).unwrap_err().contains("another processor"));
}
