//! What real drivers have answered, as people's logs have it: names, memory, cores and versions, given by libraries of these tests and
//! told as they have to be. Where a log leaves out memory, cores, a number of an architecture or a version, it is what the maker
//! publishes, or the library's own.

use crate::fakes::Machine;
use yirage_probe::{Family, families};

/// An answer, and what is to be told of it.
struct Recorded {
    /// Who has seen it.
    log: &'static str,
    family: &'static Family,
    /// Where the library lies, its source, and what it answers.
    library: (&'static str, &'static str, &'static [&'static str]),
    name: &'static str,
    arch: &'static str,
    mib: u64,
    cores: Option<u32>,
    /// As the driver has it, or as what it is for.
    version: &'static str,
    bf16: bool,
}

const HIP: [&str; 8] = [
    "START=hipInit",
    "VERSION=hipRuntimeGetVersion",
    "COUNT=hipGetDeviceCount",
    "DEVICE=hipDeviceGet",
    "NAME=hipDeviceGetName",
    "MEMORY=hipDeviceTotalMem",
    "ATTRIBUTE=hipDeviceGetAttribute",
    "MAJOR=9",
];

const ANSWERS: &[Recorded] = &[
    Recorded {
        log: "nvidia-smi and `yirage devices` on an H200: driver 580.159.04 for CUDA 13.0",
        family: &families::CUDA,
        library: (
            "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
            "driver.c",
            &["ANSWER=13000", "TITLE=\"NVIDIA H200\"", "MIB=143771ull", "CORES=132", "MAJOR=9", "MINOR=0"],
        ),
        name: "NVIDIA H200",
        arch: "sm_90",
        mib: 143_771,
        cores: Some(132),
        version: "13.0",
        bf16: true,
    },
    Recorded {
        log: "rocminfo of an MI300X (ROCm/legacy-rocm-build, issue 4414: ROCm 6.3)",
        family: &families::HIP,
        library: (
            "/opt/rocm/lib/libamdhip64.so.6",
            "driver.c",
            &[
                "ANSWER=60342133",
                "TITLE=\"AMD Instinct MI300X\"",
                "MIB=196592ull",
                "CORES=304",
                "MINOR=4",
                "RECORD=hipGetDevicePropertiesR0600",
                "AT=1160",
                "ARCH=\"gfx942:sramecc+:xnack-\"",
            ],
        ),
        name: "AMD Instinct MI300X",
        arch: "gfx942",
        mib: 196_592,
        cores: Some(304),
        version: "6.3",
        bf16: true,
    },
    Recorded {
        log: "a program on an MI50 (AlphaMine-Tech/alpha-miner, issue 5: ROCm 7.2), whose name is no card's",
        family: &families::HIP,
        library: (
            "/opt/rocm/lib/libamdhip64.so.7",
            "driver.c",
            &[
                "ANSWER=70200000",
                "TITLE=\"AMD Radeon Graphics\"",
                "MIB=16368ull",
                "CORES=60",
                "MINOR=0",
                "RECORD=hipGetDevicePropertiesR0600",
                "AT=1160",
                "ARCH=\"gfx906:sramecc+:xnack-\"",
            ],
        ),
        name: "AMD Radeon Graphics",
        arch: "gfx906",
        mib: 16_368,
        cores: Some(60),
        version: "7.2",
        bf16: false,
    },
    Recorded {
        log: "a detector on a K100_AI (gpustack/gpustack, issue 5170: DTK 25.04), HIP 5.7 by AlphaMine-Tech/alpha-miner, issue 18",
        family: &families::HYGON,
        library: (
            "/opt/dtk/lib/libgalaxyhip.so.5",
            "driver.c",
            &[
                "ANSWER=50724311",
                "TITLE=\"K100_AI\"",
                "MIB=65520ull",
                "CORES=120",
                "MINOR=2",
                "RECORD=hipGetDeviceProperties",
                "AT=396",
                "ARCH=\"gfx928:sramecc+:xnack-\"",
            ],
        ),
        name: "K100_AI",
        arch: "gfx928",
        mib: 65_520,
        cores: Some(120),
        version: "5.7",
        bf16: true,
    },
    Recorded {
        log: "mthreads-gmi on an S5000 (vllm-project/vllm-omni, pull request 2337), files of MooreThreads/torch_musa, issue 117",
        family: &families::MUSA,
        library: (
            "/usr/local/musa/lib/libmusa.so.4",
            "driver.c",
            &[
                "START=muInit",
                "VERSION=muDriverGetVersion",
                "COUNT=muDeviceGetCount",
                "DEVICE=muDeviceGet",
                "NAME=muDeviceGetName",
                "MEMORY=muDeviceTotalMem_v2",
                "ATTRIBUTE=muDeviceGetAttribute",
                "ANSWER=40100",
                "TITLE=\"MTT S5000\"",
                "MIB=81920ull",
                "MAJOR=3",
                "MINOR=1",
            ],
        ),
        name: "MTT S5000",
        arch: "mp_31",
        mib: 81_920,
        cores: Some(108),
        version: "40100",
        bf16: true,
    },
    Recorded {
        log: "mx-smi 2.2.6 (MetaX-MACA/vLLM-metax, issue 49), which writes maker and card as one word",
        family: &families::MACA,
        library: (
            "/opt/maca/lib/libmcruntime.so",
            "driver.c",
            &[
                "START=mcInit",
                "VERSION=mcRuntimeGetVersion",
                "COUNT=mcGetDeviceCount",
                "DEVICE=mcDeviceGet",
                "NAME=mcDeviceGetName",
                "MEMORY=mcDeviceTotalMem",
                "TITLE=\"MXC500\"",
                "MIB=65536ull",
            ],
        ),
        name: "MXC500",
        arch: "C500",
        mib: 65_536,
        cores: None,
        version: "12040",
        bf16: true,
    },
    Recorded {
        log: "ixsmi of CoreX 3.1.1 (gpustack/gpustack, issue 3256): CUDA 10.2 to the outside",
        family: &families::COREX,
        library: (
            "/usr/local/corex/lib64/libcuda.so.1",
            "driver.c",
            &["ANSWER=10020", "TITLE=\"Iluvatar BI-V100\"", "MIB=32768ull", "MAJOR=7", "MINOR=0"],
        ),
        name: "Iluvatar BI-V100",
        arch: "ivcore70",
        mib: 32_768,
        cores: Some(108),
        version: "10.2",
        bf16: false,
    },
    Recorded {
        log: "npu-smi 25.2.0 (Project-HAMi/HAMi-WebUI, issue 47): 3,197 of 65,536 MB in use",
        family: &families::ASCEND,
        library: (
            "/usr/local/Ascend/ascend-toolkit/latest/lib64/libascendcl.so",
            "ascend.c",
            &["CHIP=\"Ascend910B4-1\"", "LEFT=((size_t)62339 << 20)"],
        ),
        name: "Ascend910B4-1",
        arch: "Ascend910B4-1",
        mib: 65_536,
        cores: None,
        version: "1.14.0",
        bf16: true,
    },
];

/// The names of functions that a recorded answer leaves out because its family has the same ones.
fn functions(recorded: &Recorded) -> Vec<&'static str> {
    match recorded.family.name {
        "cuda" | "iluvatar" => crate::fakes::CUDA
            .iter()
            .copied()
            .filter(|name| !name.starts_with('M') || name.starts_with("MEMORY"))
            .collect(),
        "hip" | "hygon" => HIP.to_vec(),
        _ => Vec::new(),
    }
}

#[test]
fn what_drivers_have_answered_is_told_as_it_is() {
    for recorded in ANSWERS {
        let (path, source, answers) = recorded.library;
        let machine = Machine::new();
        let mut definitions = functions(recorded);
        definitions.extend(answers);
        definitions.push("WHOLE_TITLE");
        machine.library(path, source, &definitions);
        let device =
            recorded.family.look(&machine.surroundings()).unwrap_or_else(|e| panic!("{}: {e}", recorded.log)).remove(0);
        let version = device.driver_version.as_deref().or(device.sdk_version.as_deref());
        assert_eq!(
            (device.name.as_str(), device.arch.as_str(), device.total_memory_bytes.map(|bytes| bytes >> 20)),
            (recorded.name, recorded.arch, Some(recorded.mib)),
            "{}",
            recorded.log
        );
        assert_eq!((device.cores, version), (recorded.cores, Some(recorded.version)), "{}", recorded.log);
        assert!(!device.software && device.capabilities.fp16, "{}", recorded.log);
        assert_eq!(device.capabilities.bf16, recorded.bf16, "{}", recorded.log);
    }
}

/// A machine of Hygon's has a library of AMD's name in its own folder, and may have AMD's own one, which finds no device of Hygon's
/// (AlphaMine-Tech/alpha-miner, issue 18): each maker is asked by its own.
#[test]
fn hygons_and_amds_libraries_of_one_name_are_told_apart() {
    let of = |arch: &'static str, record: &'static str, at: &'static str| {
        let mut all = HIP.to_vec();
        all.extend([arch, record, at, "MINOR=0", "ANSWER=60342133"]);
        all
    };
    let machine = Machine::new();
    machine.library(
        "/opt/dtk-26.04/lib/libamdhip64.so.5",
        "driver.c",
        &of("ARCH=\"gfx928\"", "RECORD=hipGetDeviceProperties", "AT=396"),
    );
    let root = machine.path("/opt/dtk-26.04").to_str().unwrap().to_owned();
    // What DTK's own script sets names its folder as ROCm's, too.
    let surroundings =
        machine.with(&[("ROCM_PATH", &root), ("DTK_ROOT", &root), ("LD_LIBRARY_PATH", &format!("{root}/lib"))]);
    assert!(families::HIP.look(&surroundings).unwrap_err().why.contains("is in none of the"));
    assert_eq!(families::HYGON.look(&surroundings).unwrap()[0].arch, "gfx928");
    machine.library(
        "/opt/rocm/lib/libamdhip64.so.6",
        "driver.c",
        &of("ARCH=\"gfx90a\"", "RECORD=hipGetDevicePropertiesR0600", "AT=1160"),
    );
    assert_eq!(families::HIP.look(&surroundings).unwrap()[0].arch, "gfx90a");
    assert_eq!(families::HYGON.look(&surroundings).unwrap()[0].arch, "gfx928");
}
