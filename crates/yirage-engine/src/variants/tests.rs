//! Choices with a device whose times are made up.

use super::pick::pick;
use super::record::{Key, Records};
use std::cell::Cell;
use std::sync::Mutex;
use std::time::Duration;
use yirage_hal::{HalError, Question, Trial, Variants, WeightHandle};
use yirage_plan::{Precision, WeightPlan};

/// A device of two choices, `a` from 0 to 3 and `b` from 0 to 1, whose own choice is what the test's table says.
struct Made {
    selected: Mutex<[usize; 2]>,
    /// Seconds of products with each value of `a` and of `b`.
    times: [Vec<f64>; 2],
    /// Factors that others add to readings, one after the other.
    disturbed: Mutex<Vec<f64>>,
}

impl Made {
    fn new(own: [usize; 2], a: [f64; 4], b: [f64; 2]) -> Made {
        Made { selected: Mutex::new(own), times: [a.to_vec(), b.to_vec()], disturbed: Mutex::default() }
    }

    fn with(&self, text: &str) -> Result<[usize; 2], HalError> {
        let mut now = *self.selected.lock().unwrap();
        for choice in text.split(',').filter(|c| !c.is_empty()) {
            let bad = || HalError::Option { option: "variant", why: format!("no choice {choice}") };
            let (name, value) = choice.split_once('=').ok_or_else(bad)?;
            let at = ["a", "b"].iter().position(|n| *n == name).ok_or_else(bad)?;
            now[at] = value.parse().ok().filter(|v| *v < self.times[at].len()).ok_or_else(bad)?;
        }
        Ok(now)
    }
}

impl Variants for Made {
    fn facts(&self) -> String {
        "a made-up processor".into()
    }

    fn selected(&self) -> String {
        let [a, b] = *self.selected.lock().unwrap();
        format!("a={a},b={b}")
    }

    fn select(&self, text: &str) -> Result<(), HalError> {
        let now = self.with(text)?;
        *self.selected.lock().unwrap() = now;
        Ok(())
    }

    fn questions(&self) -> Vec<Question> {
        let of = |tokens, name: &str, n: usize| Question {
            tokens,
            answers: (0..n).map(|v| format!("{name}={v}")).collect(),
        };
        vec![of(1, "a", 4), of(64, "b", 2)]
    }

    fn trial(&self, _: &[WeightHandle], _: Precision, tokens: usize) -> Result<Box<dyn Trial + '_>, HalError> {
        Ok(Box::new(Timed(self, if tokens == 1 { 0 } else { 1 })))
    }
}

struct Timed<'a>(&'a Made, usize);

impl Trial for Timed<'_> {
    fn seconds(&mut self, variant: &str) -> Result<f64, HalError> {
        let factor = self.0.disturbed.lock().unwrap().pop().unwrap_or(1.0);
        Ok(factor * self.0.times[self.1][self.0.with(variant)?[self.1]])
    }
}

const LONG: Duration = Duration::from_secs(1);

fn picked(made: &Made, most: Duration, now: &dyn Fn() -> Duration) -> (String, usize) {
    let picked = pick(made, &[], Precision::Fast, most, now).unwrap();
    (made.selected(), picked.unanswered)
}

#[test]
fn a_wrong_table_is_corrected_by_the_first_start() {
    let made = Made::new([3, 0], [2.0, 1.0, 4.0, 9.0], [3.0, 2.0]);
    assert_eq!(picked(&made, LONG, &|| Duration::ZERO), ("a=1,b=1".into(), 0));
}

#[test]
fn differences_that_are_none_change_nothing() {
    let made = Made::new([2, 0], [1.0, 1.01, 1.015, 1.5], [1.0, 0.985]);
    assert_eq!(picked(&made, LONG, &|| Duration::ZERO), ("a=2,b=0".into(), 0));
}

#[test]
fn what_others_disturb_changes_nothing() {
    let made = Made::new([2, 0], [1.1, 1.1, 1.0, 1.1], [1.0, 1.0]);
    // For all of the first rounds' readings but one of another answer, which others left alone.
    *made.disturbed.lock().unwrap() = [[1.3; 9].as_slice(), &[0.8], &[1.3; 6]].concat();
    assert_eq!(picked(&made, LONG, &|| Duration::ZERO), ("a=2,b=0".into(), 0));
}

#[test]
fn what_there_is_no_time_for_stays_the_devices_own() {
    let made = Made::new([3, 0], [2.0, 1.0, 4.0, 9.0], [3.0, 2.0]);
    let looks = Cell::new(0u64);
    let clock = || {
        looks.set(looks.get() + 1);
        Duration::from_millis(100 * looks.get())
    };
    assert_eq!(picked(&made, LONG, &clock), ("a=1,b=0".into(), 1), "one round of four answers is over in time");
    let made = Made::new([3, 0], [2.0, 1.0, 4.0, 9.0], [3.0, 2.0]);
    assert_eq!(picked(&made, Duration::ZERO, &|| Duration::ZERO), ("a=3,b=0".into(), 2));
}

#[test]
fn records_are_whole_of_this_key_and_of_choices_that_exist_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (records, made) = (Records::new(folder.path()), Made::new([0, 0], [1.0; 4], [1.0; 2]));
    let key = |facts| Key::of(facts, &WeightPlan { entries: Vec::new() }, Precision::Fast);
    let mine = key("mine");
    assert_eq!(records.read(&mine, &made), Ok(false));
    records.write(&mine, "a=3,b=1", &[]).unwrap();
    assert_eq!((records.read(&mine, &made), made.selected()), (Ok(true), "a=3,b=1".into()));
    assert_eq!(records.read(&key("another"), &made), Ok(false), "another processor has records of its own");

    records.write(&mine, "a=4", &[]).unwrap();
    assert!(records.read(&mine, &made).unwrap_err().contains("no choice a=4"));
    let file = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("a=4", "a=1")).unwrap();
    assert!(records.read(&mine, &made).unwrap_err().contains("damaged"));

    records.write(&key("another"), "a=2,b=0", &[]).unwrap();
    let other = std::fs::read_dir(folder.path()).unwrap().map(|f| f.unwrap().path()).find(|f| *f != file).unwrap();
    std::fs::rename(other, &file).unwrap();
    assert!(records.read(&mine, &made).unwrap_err().contains("another processor"));
    assert_eq!(made.selected(), "a=3,b=1", "what is refused selects nothing");
}
