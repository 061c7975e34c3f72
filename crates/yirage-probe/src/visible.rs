//! Variables that hide devices: `CUDA_VISIBLE_DEVICES` and its kin.
//!
//! A list of numbers or names; the devices are renumbered in its order. The first entry that makes no sense ends the list,
//! and an empty list hides everything: so do the makers' runtimes. They apply their variables themselves before they
//! count. Filtering a second time would hide what is there, so for them the list only tells which physical device each
//! number is. Where no runtime reads the variable, it is applied here.

use crate::environment::ProbeEnvironment;
use yirage_hal::DeviceInfo;

/// The fact of what lists select.
const VISIBLE: &str = "visible_devices";
/// The fact of variables that mean nothing inside of a container.
const OF_CONTAINERS: &str = "container_devices";

/// The variables of a family.
pub struct VisibilityVariables {
    /// Lists that the maker's runtime applies, the last one first. Of the names of one list, the first that is set counts.
    pub by_runtime: &'static [&'static [&'static str]],
    /// A list that no runtime of the maker reads.
    pub by_us: Option<&'static str>,
    /// Variables that decide what a container gets, and mean nothing inside of it.
    pub of_containers: &'static [&'static str],
}

/// What a list selects.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceSelection {
    /// For each device that is visible, the number or name that it has in the list.
    pub devices: Vec<String>,
    /// The entry that ended the list, and why.
    pub ended: Option<String>,
}

impl DeviceSelection {
    /// Reads a list. How many devices are `present` is known only where the list is applied here.
    pub fn of(list: &str, present: Option<usize>) -> DeviceSelection {
        let mut devices: Vec<String> = Vec::new();
        // An empty list has no entry, not one that is empty.
        for entry in list.split(',').map(str::trim).filter(|_| !list.trim().is_empty()) {
            match refused(entry, &devices, present) {
                None => devices.push(entry.to_owned()),
                // The usual way to hide everything is no mistake.
                Some(_) if entry == "-1" => return DeviceSelection { devices, ended: None },
                Some(why) => return DeviceSelection { devices, ended: Some(format!("{entry:?} {why}")) },
            }
        }
        DeviceSelection { devices, ended: None }
    }
}

impl DeviceSelection {
    /// The devices that are numbers.
    fn numbers(&self) -> impl Iterator<Item = usize> {
        self.devices.iter().filter_map(|device| device.parse().ok())
    }
}

/// Why an entry ends the list.
fn refused(entry: &str, before: &[String], present: Option<usize>) -> Option<String> {
    if before.iter().any(|seen| seen == entry) {
        return Some("is there twice".into());
    }
    // Only a runtime knows its devices' names.
    if present.is_none() && ["GPU-", "MIG-"].iter().any(|prefix| entry.starts_with(prefix)) {
        return None;
    }
    match (entry.parse::<usize>(), present) {
        (Err(_), _) => Some("is neither a number nor a name of a device".into()),
        (Ok(number), Some(present)) if number >= present => Some(format!("is none of the {present} devices")),
        _ => None,
    }
}

impl VisibilityVariables {
    /// No variable.
    pub const NONE: VisibilityVariables = VisibilityVariables { by_runtime: &[], by_us: None, of_containers: &[] };

    /// The devices that are visible, renumbered, and with what the variables say of them.
    pub fn apply(&self, mut devices: Vec<DeviceInfo>, surroundings: &ProbeEnvironment) -> Vec<DeviceInfo> {
        if let Some((name, list)) = self.own_list(surroundings) {
            let selection = DeviceSelection::of(&list, Some(devices.len()));
            let chosen = selection.numbers().filter_map(|number| devices.get(number).cloned());
            devices = (0..).zip(chosen).map(|(ordinal, info)| DeviceInfo { ordinal, ..info }).collect();
            say(&mut devices, name, &list, &selection);
        }
        let lists: Vec<_> = self.by_runtime.iter().filter_map(|names| set(names, surroundings)).collect();
        for (name, list) in &lists {
            say(&mut devices, name, list, &DeviceSelection::of(list, None));
        }
        let selections: Vec<_> = lists.iter().map(|(_, list)| DeviceSelection::of(list, None)).collect();
        for info in devices.iter_mut().filter(|_| !selections.is_empty()) {
            let physical = physical(&selections, info.ordinal);
            info.facts.extend(physical.map(|physical| ("physical_device", physical)));
        }
        for name in self.of_containers.iter().filter(|name| surroundings.variable(name).is_some()) {
            let fact = format!("{name} is set: it is for containers, and hides nothing from this process");
            devices.iter_mut().for_each(|info| info.facts.push((OF_CONTAINERS, fact.clone())));
        }
        devices
    }

    /// Of so many devices of which no runtime hides any, the numbers of those that are visible: what [`Self::apply`] leaves,
    /// in its order.
    pub fn chosen(&self, present: usize, surroundings: &ProbeEnvironment) -> Vec<usize> {
        match self.own_list(surroundings) {
            Some((_, list)) => DeviceSelection::of(&list, Some(present)).numbers().collect(),
            None => (0..present).collect(),
        }
    }

    /// The list that is applied here, where it is set.
    fn own_list(&self, surroundings: &ProbeEnvironment) -> Option<(&'static str, String)> {
        self.by_us.and_then(|name| set(&[name], surroundings))
    }

    /// What hides devices here, for a family that has none.
    pub(crate) fn hidden(&self, surroundings: &ProbeEnvironment) -> Option<String> {
        let own = self.by_us.iter().copied().collect::<Vec<_>>();
        let lists = self.by_runtime.iter().copied().chain([&own[..]]);
        let set: Vec<_> = lists.filter_map(|names| set(names, surroundings)).collect();
        let named: Vec<_> = set.iter().map(|(name, list)| format!("{name}={list:?}")).collect();
        (!named.is_empty()).then(|| format!(": {} is set", named.join(" and ")))
    }
}

/// The first of the variables that is set.
fn set(names: &[&'static str], surroundings: &ProbeEnvironment) -> Option<(&'static str, String)> {
    names.iter().find_map(|&name| Some((name, surroundings.variable(name)?.to_string_lossy().into_owned())))
}

/// The number or name below all lists of the device that has `ordinal` above them.
fn physical(selections: &[DeviceSelection], ordinal: u32) -> Option<String> {
    let number = |at: &str| at.parse::<usize>().ok();
    selections.iter().try_fold(ordinal.to_string(), |at, selection| selection.devices.get(number(&at)?).cloned())
}

fn say(devices: &mut [DeviceInfo], name: &str, list: &str, selection: &DeviceSelection) {
    let ended = selection.ended.as_ref().map(|entry| format!(": {entry}; it and what follows hide their devices"));
    let said = format!("{name}={list}{}", ended.unwrap_or_default());
    for info in devices {
        match info.facts.iter_mut().find(|(fact, _)| *fact == VISIBLE) {
            // Several lists are one fact: a fact stands once.
            Some((_, fact)) => *fact = format!("{fact}; {said}"),
            None => info.facts.push((VISIBLE, said.clone())),
        }
    }
}
