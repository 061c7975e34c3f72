//! Where libraries are looked for, and which of several is taken.

use crate::fakes::{CUDA, Machine};
use std::fs;
use yirage_probe::{Family, families};

/// What a device says of where its library lies.
fn library(family: &'static Family, machine: &Machine, variables: &[(&str, &str)]) -> Result<String, String> {
    let devices = family.look(&machine.with(variables)).map_err(|e| e.why)?;
    Ok(devices[0].facts.iter().find(|(name, _)| *name == "library").unwrap().1.clone())
}

fn text(machine: &Machine, absolute: &str) -> String {
    machine.path(absolute).to_str().unwrap().to_owned()
}

#[test]
fn the_loaders_order_with_the_makers_folders_between() {
    let machine = Machine::new();
    // From the last place to the first: each beats those before it.
    let places = ["/usr/local/lib", "/usr/lib", "/usr/lib64", "/conf.d/two", "/conf.d/one", "/conf/zero"];
    let places =
        places.into_iter().chain(["/usr/lib/wsl/lib", "/usr/local/nvidia/lib64", "/tools/cuda/lib64", "/first"]);
    fs::write(machine.file("/etc/ld.so.conf"), "# folders\n/conf/zero\ninclude /etc/ld.so.conf.d/*.conf\n").unwrap();
    fs::write(machine.file("/etc/ld.so.conf.d/b.conf"), "/conf.d/two # the second\n").unwrap();
    fs::write(machine.file("/etc/ld.so.conf.d/a.conf"), "\n/conf.d/one\nrelative\n").unwrap();
    fs::write(machine.file("/etc/ld.so.conf.d/c.txt"), "/nowhere\n").unwrap();
    let (home, first) = (text(&machine, "/tools/cuda"), text(&machine, "/first"));
    let listed = format!("relative::{first}");
    let variables = [("CUDA_HOME", home.as_str()), ("LD_LIBRARY_PATH", listed.as_str())];
    for place in places {
        let path = format!("{place}/libcuda.so.1");
        machine.library(&path, "driver.c", CUDA);
        assert_eq!(library(&families::CUDA, &machine, &variables), Ok(text(&machine, &path)));
    }
}

#[test]
fn the_roots_that_makers_name_are_searched() {
    let cases: [(&Family, &str, &str); 4] = [
        (&families::ASCEND, "ASCEND_TOOLKIT_HOME", "lib64/libascendcl.so"),
        (&families::CAMBRICON, "NEUWARE_HOME", "lib64/libcndrv.so"),
        (&families::MUSA, "MUSA_HOME", "lib/libmusa.so"),
        (&families::HYGON, "DTK_ROOT", "hip/lib/libamdhip64.so"),
    ];
    for (family, variable, file) in cases {
        let machine = Machine::new();
        // Found and opened: it says what it lacks.
        machine.library(&format!("/tools/{file}"), "driver.c", &[]);
        let why = library(family, &machine, &[(variable, &text(&machine, "/tools"))]).unwrap_err();
        assert!(why.contains(file) && why.contains("no function"), "{variable}: {why}");
        assert!(library(family, &machine, &[]).unwrap_err().contains("is in none of the"), "{variable}");
        assert!(library(family, &machine, &[(variable, "root")]).unwrap_err().contains("is in none"), "{variable}");
    }
}

#[test]
fn what_is_broken_is_passed_over_and_named() {
    let machine = Machine::new();
    fs::write(machine.file("/first/libcuda.so.1"), "GROUP(libcuda.so)").unwrap();
    machine.library("/usr/lib/libcuda.so.1", "driver.c", CUDA);
    let devices = families::CUDA.look(&machine.with(&[("LD_LIBRARY_PATH", &text(&machine, "/first"))])).unwrap();
    let fact = |name| devices[0].facts.iter().find(|(fact, _)| *fact == name).map(|(_, value)| value.clone());
    assert_eq!(fact("library"), Some(text(&machine, "/usr/lib/libcuda.so.1")));
    assert!(fact("passed_over").unwrap().contains("/first/libcuda.so.1: no ELF library"));
}

#[test]
fn makers_with_the_same_names_of_files_are_told_apart() {
    let machine = Machine::new();
    machine.library("/usr/local/corex/lib64/libcuda.so.1", "driver.c", CUDA);
    let listed = text(&machine, "/usr/local/corex/lib64");
    let variables = [("LD_LIBRARY_PATH", listed.as_str())];
    assert!(library(&families::CUDA, &machine, &variables).unwrap_err().contains("is in none of the"));
    assert!(library(&families::COREX, &machine, &variables).is_ok());
    let machine = Machine::new();
    machine.library("/usr/lib/libcuda.so.1", "driver.c", CUDA);
    assert!(library(&families::COREX, &machine, &[]).unwrap_err().contains("is in none of the"));
    assert!(library(&families::CUDA, &machine, &[]).is_ok());
}
