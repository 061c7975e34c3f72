//! Templates of settings: each holds together, and a machine gets the one that is closest.
#![allow(clippy::unwrap_used)] // a test may stop at anything unexpected

use yirage_advisor::Hardware;
use yirage_advisor::templates::{TEMPLATES, Template, TemplateError, names};
use yirage_plan::KernelCapabilities;

const WORKERS: &str = "num_workers";
const LOCAL: &str = "num_local_schedulers";
const TOKENS: &str = "max_num_batched_tokens";
const PAGES: &str = "max_num_pages";

fn machine(backend: &str, processors: u32, gb: u64) -> Hardware {
    let (backend, name, capabilities) = (backend.to_owned(), "M".to_owned(), KernelCapabilities::LEAST);
    let memory_bytes = Some(gb * 1_000_000_000);
    Hardware { backend, device: 0, name, processors: Some(processors), memory_bytes, capabilities }
}

#[test]
fn every_template_holds_together_and_has_a_name_of_its_own() {
    let mut names = names();
    assert!(names.len() >= 15);
    for hardware in [machine("cpu", 1, 4), machine("cuda", 8, 80), machine("mps", 10, 16)] {
        for template in &TEMPLATES {
            let settings = template.settings(&hardware);
            settings.check().unwrap_or_else(|e| panic!("{}: {e}", template.name));
            let mut again = settings.clone();
            for &(name, value) in &settings.numbers {
                again.set(name, value.into()).unwrap();
            }
            again.fit_pages().unwrap();
            assert_eq!(again, settings);
            assert!(!template.about.is_empty());
        }
    }
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), TEMPLATES.len());
}

#[test]
fn a_machine_gets_the_template_that_is_closest() {
    let found = |backend, processors, gb| Template::recommended(&machine(backend, processors, gb), None).unwrap().name;
    assert_eq!(found("cpu", 2, 8), "cpu_low_power");
    assert_eq!(found("cpu", 8, 8), "cpu_standard");
    assert_eq!(found("cpu", 64, 8), "cpu_high_core");
    assert_eq!(found("cuda", 8, 80), "cuda_high_end");
    assert_eq!(found("cuda", 8, 16), "cuda_mid_range");
    assert_eq!(found("cuda", 8, 4), "cuda_low_end");
    assert_eq!(found("mps", 16, 64), "mps_m3_max");
    assert_eq!(found("mps", 8, 16), "mps_m1");
    assert_eq!(found("ascend", 8, 64), "inference", "no template is of its machines");
    let cpu = machine("cpu", 4, 8);
    assert_eq!(Template::recommended(&cpu, Some("latency")).unwrap().name, "latency");
    assert!(matches!(Template::recommended(&cpu, Some("dreaming")), Err(TemplateError::Unknown { .. })));
}

#[test]
fn work_takes_the_workers_of_the_device() {
    let settings = Template::named("latency").unwrap().settings(&machine("cpu", 6, 8));
    assert_eq!(
        (settings.backend.as_str(), settings.number(WORKERS), settings.number(LOCAL)),
        ("cpu", Some(6), Some(3))
    );
    let settings = Template::named("cuda_low_end").unwrap().settings(&machine("cpu", 6, 8));
    assert_eq!((settings.backend.as_str(), settings.number(WORKERS)), ("cuda", Some(32)));
}

#[test]
fn what_does_not_hold_together_is_told() {
    let mut settings = Template::named("inference").unwrap().settings(&machine("cpu", 4, 8));
    assert!(matches!(settings.set("colour", 1), Err(TemplateError::Key { .. })));
    assert!(matches!(settings.set(WORKERS, 0), Err(TemplateError::Range { least: 1, .. })));
    assert!(matches!(settings.set(WORKERS, -1), Err(TemplateError::Range { value: -1, .. })));
    for (name, value) in [(TOKENS, 3), (LOCAL, 99), (PAGES, 1)] {
        let mut wrong = settings.clone();
        wrong.set(name, value).unwrap();
        let told = wrong.check().unwrap_err();
        assert!(told.to_string().starts_with(&format!("{name} is {value}, and")), "{told}");
    }
}
