//! The text form of weight plans: what is printed is read back, and what is not a plan is refused by line.

use yirage_ir::{DType, Format, Type};
use yirage_plan::{WeightEntry, WeightPlan};

fn entry(name: &str, format: Format, shape: &[u32], layout: &str, shard_axis: Option<u32>) -> WeightEntry {
    let ty = Type::new(DType::Stored(format), shape.iter().copied());
    WeightEntry { name: name.into(), ty, layout: layout.into(), groups: 1, shard_axis }
}

fn plan() -> WeightPlan {
    let mut strided = entry("view", Format::F32, &[4, 6], "rows", None);
    strided.ty.strides = Some(vec![1, 9]);
    let grouped = WeightEntry { groups: 16, ..entry("l0.kv_b", Format::BF16, &[64, 32], "tiles16x64@1", Some(0)) };
    let mut entries: Vec<WeightEntry> = Format::ALL
        .iter()
        .map(|f| entry(&format!("w.{}", f.info().name), *f, &[3, 7, 256], "tiles16x64@1", Some(1)))
        .collect();
    entries.extend([entry("embed.w", Format::F32, &[32000, 64], "rows", None), grouped, strided]);
    WeightPlan { entries }
}

#[test]
fn what_is_printed_is_read_back() {
    for plan in [plan(), WeightPlan::default()] {
        let text = plan.print();
        let read = WeightPlan::parse(&text).unwrap();
        assert_eq!(read, plan);
        assert_eq!((read.print(), read.stable_hash()), (text, plan.stable_hash()));
    }
}

#[test]
fn what_is_no_plan_is_refused_by_line() {
    let good = "weight %a: f32[4, 8] layout=rows groups=1 shard=-";
    for (bad, says) in [
        ("", "wanted"),
        ("weigth %b: f32[4] layout=rows groups=1 shard=-", "wanted"),
        ("weight %b f32[4] layout=rows groups=1 shard=-", "wanted"),
        ("weight %b: f32[4] layout=rows groups=1", "wanted"),
        ("weight %a: f32[4] layout=rows groups=1 shard=-", "already"),
        ("weight %b: f33[4] layout=rows groups=1 shard=-", "dtype"),
        ("weight %b: f32[4 layout=rows groups=1 shard=-", "type of `b`"),
        ("weight %b: f32[4]] layout=rows groups=1 shard=-", "after the end"),
        ("weight %b: f32[1, 2, 3, 4, 5, 6, 7, 8, 9] layout=rows groups=1 shard=-", "dimensions"),
        ("weight %b: f32[99999999999] layout=rows groups=1 shard=-", "no dimension"),
        ("weight %b: q4_0[4, 33] layout=rows groups=1 shard=-", "multiple of 32"),
        ("weight %b: f32[4]/[1, 2] layout=rows groups=1 shard=-", "stride"),
        ("weight %b: f32[4] layout=ro ws groups=1 shard=-", "no word"),
        ("weight %: f32[4] layout=rows groups=1 shard=-", "no word"),
        ("weight %b: f32[4] layout=rows groups=-1 shard=-", "no number"),
        ("weight %b: f32[4] layout=rows groups=0 shard=-", "0 groups"),
        ("weight %b: f32[4] layout=rows groups=1 shard=1", "shard axis 1"),
        ("weight %b: f32[4] layout=rows groups=1 shard=1 more", "no number"),
        ("\u{0}\u{ffff}%%%", "wanted"),
    ] {
        let error = WeightPlan::parse(&format!("{good}\n{bad}\n{good}")).unwrap_err();
        assert_eq!(error.line, 2, "{bad}: {error}");
        assert!(error.to_string().contains(says), "{bad}: {error}");
    }
}

/// Any cut and any changed byte of a plan's text gives a plan or an error, never a panic.
#[test]
fn damaged_text_never_panics() {
    let text = plan().print();
    for at in 0..text.len() {
        drop(WeightPlan::parse(&text[..at]));
        for byte in [b' ', b'9', b'[', b'\n', b'%', b'\0'] {
            let mut bytes = text.clone().into_bytes();
            bytes[at] = byte;
            drop(WeightPlan::parse(std::str::from_utf8(&bytes).unwrap()));
        }
    }
}
