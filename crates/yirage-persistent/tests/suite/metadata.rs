//! Both forms of metadata, options, and what of them is refused.

use crate::support::{build, cpu, meta};
use yirage_persistent::{
    KernelBuilder, KernelConfig, KernelDType, KernelMode, MetaData, MetaTensor, MetaTensors, PersistentError,
    PromptLookup,
};
use yirage_testkit::tiny;

fn step(values: Vec<i32>) -> MetaTensor {
    MetaTensor { shape: vec![values.len()], data: MetaData::Int32(values) }
}

fn tokens(rows: usize, width: usize) -> MetaTensor {
    MetaTensor { shape: vec![rows, width], data: MetaData::Int64(vec![0; rows * width]) }
}

#[test]
fn the_list_form_is_the_named_form_by_its_order() {
    let all = [step(vec![0, 3]), tokens(2, 16), step(vec![2, 4]), step(vec![1, 1])];
    let names = ["step", "tokens", "prompt_lengths", "num_new_tokens"].map(str::to_owned);
    for n in 2..=4 {
        let listed = MetaTensors::from_list(all[..n].to_vec()).unwrap();
        let mut named: Vec<_> = names.iter().cloned().zip(all[..n].to_vec()).collect();
        named.reverse();
        named.push(("paged_kv_indices_buffer".into(), step(vec![1])));
        assert_eq!(MetaTensors::from_named(named).unwrap(), listed);
        assert_eq!((listed.requests(), listed.max_seq_length()), (2, 16));
        assert_eq!(listed.known(0).unwrap().len(), if n > 2 { 2 } else { 1 });
        assert_eq!(listed.known(1).unwrap().len(), 4);
    }
}

#[test]
fn wrong_types_and_shapes_are_refused_with_their_name() {
    let wide_step = MetaTensor { shape: vec![1], data: MetaData::Int64(vec![0]) };
    let narrow_tokens = MetaTensor { shape: vec![1, 4], data: MetaData::Int32(vec![0; 4]) };
    let flat = MetaTensor { shape: vec![4], data: MetaData::Int64(vec![0; 4]) };
    let cases = vec![
        (vec![], "`step`: it is missing"),
        (vec![step(vec![0])], "`tokens`: it is missing"),
        (vec![wide_step, tokens(1, 4)], "int64"),
        (vec![step(vec![0]), narrow_tokens], "int32"),
        (vec![step(vec![0]), flat], "[4]"),
        (vec![step(vec![0, 0]), tokens(1, 4)], "[2, max_seq_length]"),
        (vec![step(vec![4]), tokens(1, 4)], "request 0 has 4"),
        (vec![step(vec![-1]), tokens(1, 4)], "request 0 has -1"),
        (vec![step(vec![0]), tokens(1, 4), step(vec![0])], "`prompt_lengths`"),
        (vec![step(vec![0]), tokens(1, 4), step(vec![1, 1])], "2 elements"),
        (vec![step(Vec::new()), tokens(0, 4)], "0 requests"),
        (vec![step(vec![0]), tokens(1, 4), step(vec![1]), step(vec![1]), step(vec![1])], "5 tensors"),
    ];
    for (list, part) in cases {
        let text = MetaTensors::from_list(list).unwrap_err().to_string();
        assert!(text.contains(part), "{text}: {part}");
    }
    let named = |name: &str| {
        vec![("step".to_owned(), step(vec![0])), ("tokens".into(), tokens(1, 4)), (name.into(), step(vec![0]))]
    };
    assert!(MetaTensors::from_named(named("steps")).unwrap_err().to_string().contains("no meaning"));
    assert!(MetaTensors::from_named(named("step")).unwrap_err().to_string().contains("twice"));
}

#[test]
fn options_out_of_range_are_refused_by_name() {
    let base = KernelConfig::default;
    let cases = vec![
        (KernelConfig { world_size: 0, ..base() }, "world_size"),
        (KernelConfig { world_size: 65, ..base() }, "world_size"),
        (KernelConfig { mpi_rank: 1, ..base() }, "mpi_rank"),
        (KernelConfig { max_seq_length: 0, ..base() }, "max_seq_length"),
        (KernelConfig { max_num_batched_requests: 9, max_num_batched_tokens: 8, ..base() }, "max_num_batched_tokens"),
        (KernelConfig { page_size: 48, ..base() }, "page_size"),
        (KernelConfig { page_size: 16, ..base() }, "page_size"),
        (KernelConfig { max_num_pages: Some(0), ..base() }, "max_num_pages"),
        (KernelConfig { rms_norm_eps: f32::NAN, ..base() }, "rms_norm_eps"),
        (KernelConfig { num_workers: Some(0), ..base() }, "num_workers"),
        (KernelConfig { spec_decode: Some(PromptLookup { ngram_size: 1, spec_length: 5 }), ..base() }, "ngram_size"),
        (KernelConfig { spec_decode: Some(PromptLookup { ngram_size: 3, spec_length: 0 }), ..base() }, "spec_length"),
        (KernelConfig { max_seq_length: 65, ..base() }, "max_seq_length is 65"),
    ];
    for (config, part) in cases {
        let text = KernelBuilder::new(config, meta(&[vec![1]], 64)).err().unwrap().to_string();
        assert!(text.contains(part), "{text}: {part}");
    }
    assert!("offline".parse::<KernelMode>().is_ok());
    let unknown = "eager".parse::<KernelMode>().unwrap_err().to_string();
    assert!(unknown.contains("eager") && unknown.contains("online_multi_turn"), "{unknown}");
    assert_eq!(KernelDType::parse("torch.bfloat16").unwrap().to_string(), "bfloat16");
    assert_eq!(KernelDType::parse("fp8_e4m3").unwrap().to_string(), "float8_e4m3fn");
    assert!(KernelDType::parse("fp8_e5m2").unwrap_err().is_unsupported());
}

/// As the seeds construct it: workers and schedulers of a GPU, metadata as a list.
#[test]
fn options_of_gpus_are_taken_and_told() {
    let config = KernelConfig {
        num_workers: Some(96),
        num_local_schedulers: 48,
        max_seq_length: 64,
        eos_token_id: Some(2),
        mode: KernelMode::Online,
        ..KernelConfig::default()
    };
    let mut kernel = build(&tiny::model("llama"), config, meta(&[vec![0]], 64)).compile(cpu(2), None).unwrap();
    assert!(kernel.call(None).unwrap().finished);
    let told: Vec<String> = kernel.notices().iter().map(ToString::to_string).collect();
    for part in ["num_workers is 96", "num_local_schedulers", "grid_dim", "`online`", "caches"] {
        assert_eq!(told.iter().filter(|text| text.contains(part)).count(), 1, "{part}: {told:?}");
    }
    assert!(kernel.notices().is_empty(), "each once");
}

#[test]
fn tokens_that_the_model_has_not_are_refused() {
    let kernel = build(
        &tiny::model("llama"),
        KernelConfig { max_seq_length: 32, ..KernelConfig::default() },
        meta(&[vec![3], vec![5, 256]], 32),
    );
    let mut kernel = kernel.compile(cpu(1), None).unwrap();
    let error = kernel.call(None).unwrap_err();
    assert!(
        matches!(&error, PersistentError::Request { row: 1, .. })
            && error.to_string().contains("token 256 at position 1"),
        "{error}"
    );
}
