//! Variables that hide devices.

use crate::fakes::{CUDA, Machine};
use yirage_hal::DeviceInfo;
use yirage_probe::{DeviceSelection, Family, families};

#[test]
fn lists_end_where_they_make_no_sense() {
    type Row = (&'static str, Option<usize>, &'static [&'static str], Option<&'static str>);
    let rows: &[Row] = &[
        ("0", Some(2), &["0"], None),
        ("1,0", Some(2), &["1", "0"], None),
        (" 1 , 0 ", Some(2), &["1", "0"], None),
        ("", Some(2), &[], None),
        ("  ", Some(2), &[], None),
        ("-1", Some(2), &[], None),
        ("0,-1,1", Some(2), &["0"], None),
        ("0,7,1", Some(2), &["0"], Some("\"7\" is none of the 2 devices")),
        ("0,0", Some(2), &["0"], Some("\"0\" is there twice")),
        ("x", Some(2), &[], Some("\"x\" is neither a number nor a name of a device")),
        ("0,,1", Some(2), &["0"], Some("\"\" is neither")),
        ("1,GPU-8932f937,MIG-1", None, &["1", "GPU-8932f937", "MIG-1"], None),
        ("GPU-8932f937", Some(2), &[], Some("is neither a number")),
        ("7", None, &["7"], None),
    ];
    for (list, present, devices, ended) in rows {
        let selection = DeviceSelection::of(list, *present);
        assert_eq!(selection.devices, *devices, "{list:?}");
        match (ended, &selection.ended) {
            (Some(ended), Some(says)) => assert!(says.contains(ended), "{list:?}: {says}"),
            (ended, says) => assert_eq!((&None, &None), (ended, says), "{list:?}"),
        }
    }
}

fn facts(device: &DeviceInfo, name: &str) -> Vec<String> {
    device.facts.iter().filter(|(fact, _)| *fact == name).map(|(_, value)| value.clone()).collect()
}

/// For each device of a library with two, the physical device that it is.
fn physical(family: &'static Family, machine: &Machine, variables: &[(&str, &str)]) -> Vec<Vec<String>> {
    let devices = family.look(&machine.with(variables)).unwrap();
    devices.iter().map(|device| facts(device, "physical_device")).collect()
}

#[test]
fn every_maker_has_its_variable_and_applies_it_itself() {
    type Case = (&'static Family, &'static [(&'static str, &'static str)], [&'static str; 2]);
    let cases: &[Case] = &[
        (&families::CUDA, &[("CUDA_VISIBLE_DEVICES", "5,3")], ["5", "3"]),
        (&families::HIP, &[("HIP_VISIBLE_DEVICES", "5,3")], ["5", "3"]),
        (&families::HIP, &[("CUDA_VISIBLE_DEVICES", "5,3")], ["5", "3"]),
        (&families::HIP, &[("HIP_VISIBLE_DEVICES", "1,0"), ("CUDA_VISIBLE_DEVICES", "5,3")], ["1", "0"]),
        (&families::HIP, &[("ROCR_VISIBLE_DEVICES", "5,GPU-abc")], ["5", "GPU-abc"]),
        (&families::HIP, &[("HIP_VISIBLE_DEVICES", "1,0"), ("ROCR_VISIBLE_DEVICES", "5,3")], ["3", "5"]),
        (&families::HYGON, &[("HIP_VISIBLE_DEVICES", "5,3")], ["5", "3"]),
        (&families::ASCEND, &[("ASCEND_RT_VISIBLE_DEVICES", "5,3")], ["5", "3"]),
        (&families::CAMBRICON, &[("MLU_VISIBLE_DEVICES", "5,3")], ["5", "3"]),
        (&families::MUSA, &[("MUSA_VISIBLE_DEVICES", "5,3")], ["5", "3"]),
        (&families::MACA, &[("MACA_VISIBLE_DEVICES", "5,3")], ["5", "3"]),
        (&families::COREX, &[("ILUVATAR_VISIBLE_DEVICES", "5,3")], ["5", "3"]),
        (&families::COREX, &[("CUDA_VISIBLE_DEVICES", "5,3")], ["5", "3"]),
    ];
    for (family, variables, want) in cases {
        let machine = Machine::new();
        crate::working::install(family, &machine);
        let want: Vec<Vec<String>> = want.iter().map(|id| vec![(*id).to_owned()]).collect();
        assert_eq!(physical(family, &machine, variables), want, "{} {variables:?}", family.name);
        assert!(physical(family, &machine, &[]).iter().all(Vec::is_empty));
    }
}

#[test]
fn a_variable_that_no_runtime_reads_is_applied_here() {
    let machine = Machine::new();
    crate::working::install(&families::VULKAN, &machine);
    let look = |list: &str| families::VULKAN.look(&machine.with(&[("GGML_VK_VISIBLE_DEVICES", list)]));
    let names = |list: &str| -> Vec<(u32, String)> {
        look(list).unwrap().into_iter().map(|device| (device.ordinal, device.name)).collect()
    };
    assert_eq!(names("1"), [(0, "llvmpipe".to_owned())]);
    assert_eq!(names("1,0"), [(0, "llvmpipe".to_owned()), (1, "Radeon".to_owned())]);
    assert_eq!(names("0,9,1"), [(0, "Radeon".to_owned())]);
    let said = facts(&look("0,9,1").unwrap()[0], "visible_devices");
    assert!(said[0].contains("\"9\" is none of the 2 devices; it and what follows hide their devices"), "{said:?}");
    let error = look("").unwrap_err();
    assert!(error.why.contains("GGML_VK_VISIBLE_DEVICES=\"\" is set") && error.remedy.contains("unset"), "{error}");
}

#[test]
fn what_hides_all_devices_is_named() {
    let machine = Machine::new();
    machine.library("/usr/lib/libcuda.so.1", "driver.c", &[CUDA, &["CODE=100"]].concat());
    let error = families::CUDA.look(&machine.with(&[("CUDA_VISIBLE_DEVICES", "-1")])).unwrap_err();
    assert!(error.why.contains("finds no device: CUDA_VISIBLE_DEVICES=\"-1\" is set"), "{error}");
    assert!(error.remedy.contains("unset the variable"), "{error}");
}

#[test]
fn a_list_that_ends_the_start_is_named_and_not_the_driver() {
    let machine = Machine::new();
    machine.library("/usr/lib/libcuda.so.1", "driver.c", &[CUDA, &["CODE=101"]].concat());
    let error = families::CUDA.look(&machine.with(&[("CUDA_VISIBLE_DEVICES", "0,0")])).unwrap_err();
    assert!(error.why.contains("CUDA_VISIBLE_DEVICES=\"0,0\" is set"), "{error}");
    assert!(error.remedy.contains("name devices that are there"), "{error}");
    let error = families::CUDA.look(&machine.surroundings()).unwrap_err();
    assert!(error.why.contains("cuInit failed with code 101"), "{error}");
}

#[test]
fn a_list_beside_a_variable_of_containers_is_kept() {
    let machine = Machine::new();
    crate::working::install(&families::CUDA, &machine);
    let variables = [("CUDA_VISIBLE_DEVICES", "5,3"), ("NVIDIA_VISIBLE_DEVICES", "all")];
    let devices = families::CUDA.look(&machine.with(&variables)).unwrap();
    assert_eq!(facts(&devices[0], "visible_devices"), ["CUDA_VISIBLE_DEVICES=5,3"]);
    let mut names: Vec<_> = devices[0].facts.iter().map(|(name, _)| name).collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "a fact stands twice: {names:?}");
}

#[test]
fn variables_of_containers_are_said_to_hide_nothing() {
    let machine = Machine::new();
    crate::working::install(&families::MUSA, &machine);
    let devices = families::MUSA.look(&machine.with(&[("MTHREADS_VISIBLE_DEVICES", "1")])).unwrap();
    let said = facts(&devices[1], "container_devices");
    assert!(
        devices.len() == 2 && said[0].contains("MTHREADS_VISIBLE_DEVICES is set: it is for containers"),
        "{said:?}"
    );
}
