//! Whole files of every mix beside those that llama.cpp writes of the same file: hashes that
//! `tools/oracle/quantize_golden.py` made. The files have layers enough for every rule about them.

#![allow(clippy::unwrap_used)]

mod synthetic;

use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::Path;
use synthetic::{SYNTHETIC, Synthetic};
use yirage_convert::{ConvertError, Mix, Output, QuantizeOptions, QuantizePlan, quantize};
use yirage_model::gguf::Gguf;

fn quantized(bytes: &[u8], mix: Mix, options: &QuantizeOptions, threads: usize) -> Result<Vec<u8>, ConvertError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.gguf");
    let gguf = Gguf::parse(bytes, "synthetic.gguf").unwrap();
    let plan = QuantizePlan::new(&gguf, mix, options, None)?;
    let output = Output { path: &path, force: false, threads: NonZeroUsize::new(threads).unwrap() };
    let written = quantize(bytes, &gguf, &plan, None, &output, &mut |_| {});
    let Ok(written) = written else {
        assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none(), "nothing is left of it");
        return Err(written.unwrap_err());
    };
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!(bytes.len() as u64, written);
    Ok(bytes)
}

fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().take(8).map(|b| format!("{b:02x}")).collect()
}

#[test]
fn files_of_every_mix_are_those_of_another_implementation() {
    let golden: BTreeMap<String, String> = serde_json::from_str(include_str!("../../fixtures/files.json")).unwrap();
    let mut compared = 0;
    for Synthetic { name, make } in SYNTHETIC {
        let bytes = make();
        assert_eq!(golden[*name], hash(&bytes), "{name}: the golden files were made of other numbers");
        for mix in Mix::ALL {
            let Some(wanted) = golden.get(&format!("{name} {}", mix.name)) else { continue };
            for threads in [1, 3] {
                let found = quantized(&bytes, *mix, &QuantizeOptions::default(), threads).unwrap();
                assert_eq!(hash(&found), *wanted, "{name} as {} by {threads} threads", mix.name);
            }
            compared += 1;
        }
    }
    assert_eq!(compared, SYNTHETIC.len() * (Mix::ALL.len() - 1), "all but Q2_K_S, which needs importances");
}

#[test]
fn what_cannot_be_quantised_is_told() {
    let bytes = (SYNTHETIC[0].make)();
    let told = |bytes: &[u8], mix: &str, options: &QuantizeOptions| {
        quantized(bytes, Mix::parse(mix).unwrap(), options, 2).unwrap_err().to_string()
    };
    let options = QuantizeOptions::default();
    let text = told(&bytes, "Q2_K_S", &options);
    assert!(text.contains("needs importances") && text.contains("--imatrix"), "{text}");
    let eight = quantized(&bytes, Mix::parse("Q8_0").unwrap(), &options, 1).unwrap();
    assert!(told(&eight, "Q4_0", &options).contains("--allow-requantize"));
    let allowed = QuantizeOptions { allow_requantize: true, ..options.clone() };
    assert!(quantized(&eight, Mix::parse("Q4_0").unwrap(), &allowed, 1).is_ok());
    let unknown = QuantizeOptions { output_format: Some("IQ1_S".into()), ..options.clone() };
    assert!(told(&bytes, "Q8_0", &unknown).contains("\"IQ1_S\""));
    let mut damaged = bytes.clone();
    let last = damaged.len() - 4;
    damaged[last..].copy_from_slice(&f32::NAN.to_le_bytes());
    let text = told(&damaged, "Q4_K_M", &options);
    assert!(text.contains("NaN") && text.contains("synthetic.gguf") && text.contains("element 511"), "{text}");
}

#[test]
fn a_file_that_is_there_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.gguf");
    std::fs::write(&path, "mine").unwrap();
    let bytes = (SYNTHETIC[0].make)();
    let gguf = Gguf::parse(&bytes, "synthetic.gguf").unwrap();
    let plan = QuantizePlan::new(&gguf, Mix::parse("Q8_0").unwrap(), &QuantizeOptions::default(), None).unwrap();
    let write = |path: &Path, force| {
        quantize(&bytes, &gguf, &plan, None, &Output { path, force, threads: NonZeroUsize::MIN }, &mut |_| {})
    };
    assert!(matches!(write(&path, false), Err(ConvertError::Exists { .. })));
    assert_eq!(std::fs::read(&path).unwrap(), b"mine");
    assert!(write(&path, true).is_ok() && std::fs::read(&path).unwrap().starts_with(b"GGUF"));
    let nowhere = folder.path().join("none/out.gguf");
    assert!(matches!(write(&nowhere, false), Err(ConvertError::Write { .. })));
}
