//! Machines that are given as figures, and the ways in which their devices can divide a model.

use super::figures::{DeviceFigures, LinkFigures};
use super::rank_step::{RankStep, StepCollective};
use super::step_time::StepTime;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Nodes of several devices each, all alike.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fleet {
    /// What it is called, and where its figures come from.
    pub name: String,
    /// Bytes of memory that a device has for weights and caches.
    pub memory_bytes: f64,
    /// What a device does.
    pub device: DeviceFigures,
    /// Devices of a node.
    pub node_devices: u32,
    /// Between devices of a node.
    pub node_link: LinkFigures,
    /// Between devices of different nodes.
    pub network_link: LinkFigures,
}

/// A figure of a fleet that is none.
#[derive(Clone, PartialEq, Debug, Error)]
#[error("`{field}`: expected {expected}, got {got}")]
pub struct FleetError {
    /// Which.
    pub field: &'static str,
    /// What it may be.
    pub expected: &'static str,
    /// What it is.
    pub got: f64,
}

/// How devices divide a model and its sequences: replicas that each have their own sequences, of stages, of ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Division {
    /// Ranks that share every layer.
    pub tp: u32,
    /// Stages that have layers whole.
    pub pp: u32,
    /// Models that have nothing to do with each other.
    pub replicas: u32,
    /// Sequences of each replica, at most.
    pub sequences: u32,
}

/// A step of a division.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct DividedStep {
    /// How the model is divided.
    #[serde(flatten)]
    pub division: Division,
    /// The time of its step.
    pub time: StepTime,
    /// Bytes that a device holds.
    pub device_bytes: f64,
}

impl Fleet {
    /// That all figures are numbers that a machine can have.
    ///
    /// # Errors
    /// The first that is not.
    pub fn check(&self) -> Result<(), FleetError> {
        let device = &self.device;
        let rates = [
            ("memory_bytes", Some(self.memory_bytes)),
            ("device.bytes_per_second", Some(device.bytes_per_second)),
            ("device.ops_per_second", device.ops_per_second),
            ("node_devices", Some(f64::from(self.node_devices))),
            ("node_link.bytes_per_second", Some(self.node_link.bytes_per_second)),
            ("network_link.bytes_per_second", Some(self.network_link.bytes_per_second)),
        ];
        let seconds = [
            ("device.step_seconds", device.step_seconds),
            ("device.kernel_seconds", device.kernel_seconds),
            ("node_link.seconds", self.node_link.seconds),
            ("network_link.seconds", self.network_link.seconds),
        ];
        for (field, got) in rates.into_iter().filter_map(|(field, given)| Some((field, given?))) {
            if !(got.is_finite() && got > 0.0) {
                return Err(FleetError { field, expected: "a number above 0", got });
            }
        }
        for (field, got) in seconds {
            if !(got.is_finite() && got >= 0.0) {
                return Err(FleetError { field, expected: "seconds, 0 or more", got });
            }
        }
        Ok(())
    }

    /// The link that the slowest message among so many neighbouring devices takes.
    fn link(&self, devices: u32) -> &LinkFigures {
        if devices <= self.node_devices { &self.node_link } else { &self.network_link }
    }

    /// The step of a division: `step` is what one rank does of all layers, `resident` are the bytes that it would hold of them,
    /// and `rows` those that a stage hands on. A step goes through the stages one after the other.
    pub fn divided(&self, division: Division, step: &RankStep, resident: f64, rows: f64) -> DividedStep {
        let Division { tp, pp, .. } = division;
        let link = self.link(tp);
        let mut time = StepTime::shared(step, &self.device, link, 1.0);
        let stages = f64::from(pp);
        time.step *= stages;
        // The hand-over between two stages is between nodes only where one of them ends there.
        let handed = StepCollective { messages: 1.0, bytes: rows };
        let between = (1..pp).map(|stage| {
            let next = stage * tp;
            let link = if next.is_multiple_of(self.node_devices) { &self.network_link } else { &self.node_link };
            link.collective_seconds(&handed)
        });
        time.stages = between.fold(0.0, |all, one| all + one);
        DividedStep { division, time, device_bytes: resident / stages }
    }

    /// Whether each device has room for it.
    pub fn has_room(&self, step: &DividedStep) -> bool {
        step.device_bytes <= self.memory_bytes
    }
}

impl Division {
    /// How many devices have something to do.
    pub fn devices(&self) -> u32 {
        self.tp * self.pp * self.replicas
    }
}

/// The ways in which devices, so many at most, can divide a model and so many sequences: by powers of two ranks of which `can_share`
/// says whether they can share every layer, at most `layers` stages, and as many replicas as there are devices and sequences
/// for. Devices that would have nothing to do are left out.
pub fn divisions(devices: u32, layers: u32, sequences: u32, can_share: &dyn Fn(u32) -> bool) -> Vec<Division> {
    let powers = |most: u32| (0..32).map(|power| 1u32 << power).take_while(move |&n| n <= most);
    let shared = powers(devices).filter(|&tp| can_share(tp));
    let staged = shared.flat_map(|tp| powers(layers.min(devices / tp)).map(move |pp| (tp, pp)));
    let division = |(tp, pp): (u32, u32)| {
        let replicas = (devices / tp / pp).min(sequences);
        Division { tp, pp, replicas, sequences: sequences.div_ceil(replicas.max(1)) }
    };
    staged.map(division).filter(|division| division.replicas > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use yirage_plan::work::Work;

    fn fleet() -> Fleet {
        let device = DeviceFigures {
            bytes_per_second: 100.0,
            ops_per_second: Some(1e3),
            step_seconds: 1.0,
            kernel_seconds: 0.5,
        };
        Fleet {
            name: "round".into(),
            memory_bytes: 1000.0,
            device,
            node_devices: 4,
            node_link: LinkFigures { seconds: 1.0, bytes_per_second: 50.0 },
            network_link: LinkFigures { seconds: 10.0, bytes_per_second: 5.0 },
        }
    }

    fn step() -> RankStep {
        let work = Work { weight_bytes: 1000.0, ..Work::default() };
        RankStep { work, kernels: 4, collectives: vec![StepCollective { messages: 2.0, bytes: 75.0 }] }
    }

    #[test]
    fn divisions_have_room_for_all_sequences_and_no_more_devices_than_there_are() {
        let all = divisions(16, 5, 64, &|tp| tp <= 4);
        assert!(all.iter().all(|d| d.devices() == 16 && d.tp <= 4 && d.pp <= 4), "{all:?}");
        assert_eq!(all.len(), 9, "1, 2 or 4 ranks by 1, 2 or 4 stages");
        assert!(all.iter().all(|d| d.replicas * d.sequences == 64), "{all:?}");
        let few = divisions(6, 8, 4, &|_| true);
        let ways: Vec<[u32; 4]> = few.iter().map(|d| [d.tp, d.pp, d.replicas, d.sequences]).collect();
        assert_eq!(ways, [[1, 1, 4, 1], [1, 2, 3, 2], [1, 4, 1, 4], [2, 1, 3, 2], [2, 2, 1, 4], [4, 1, 1, 4]]);
        assert_eq!(divisions(1, 1, 1, &|_| true), [Division { tp: 1, pp: 1, replicas: 1, sequences: 1 }]);
        assert!(divisions(4, 4, 1, &|_| false).is_empty() && divisions(4, 4, 0, &|_| true).is_empty());
    }

    #[test]
    fn ranks_beyond_a_node_and_stages_pay_their_links() {
        let fleet = fleet();
        let divided = |tp, pp| fleet.divided(Division { tp, pp, replicas: 3, sequences: 2 }, &step(), 800.0, 50.0);
        let within = divided(4, 1);
        assert_eq!((within.time.step, within.time.work, within.time.kernels), (1.0, 10.0, 2.0));
        assert_eq!(within.time.collectives, 2.0 + 75.0 / 50.0);
        assert_eq!(divided(8, 1).time.collectives, 20.0 + 75.0 / 5.0, "eight devices are on two nodes");
        assert_eq!(divided(1, 4).time.stages, 3.0 * (1.0 + 1.0), "four stages are on one node");
        assert_eq!(divided(2, 4).time.stages, 2.0 * (1.0 + 1.0) + (10.0 + 10.0), "the third is on the next one");
        assert_eq!((divided(2, 4).time.step, divided(2, 4).device_bytes), (4.0, 200.0));
        assert_eq!(within.division.devices(), 12);
        let tight = Fleet { memory_bytes: 500.0, ..fleet.clone() };
        assert!(!tight.has_room(&within) && tight.has_room(&divided(2, 2)));
    }

    #[test]
    fn figures_that_no_machine_has_are_named() {
        fleet().check().unwrap();
        let mut wrong = fleet();
        wrong.network_link.bytes_per_second = f64::NAN;
        assert!(
            wrong
                .check()
                .unwrap_err()
                .to_string()
                .starts_with("`network_link.bytes_per_second`: expected a number above 0")
        );
        let none = Fleet { node_devices: 0, ..fleet() };
        assert_eq!(none.check().unwrap_err().field, "node_devices");
        let mut early = fleet();
        early.device.kernel_seconds = -1.0;
        assert_eq!(
            early.check().unwrap_err().to_string(),
            "`device.kernel_seconds`: expected seconds, 0 or more, got -1"
        );
    }
}
