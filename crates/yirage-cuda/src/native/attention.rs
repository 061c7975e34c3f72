//! Attention over a cache in blocks by tensor cores, tiles of query rows against whole blocks of the cache.

use super::form::{KernelHead, as_kernel};
use super::{DEVICE, TERMS, count_of, has_instructions, named, sizes_parameter};
use std::sync::Arc;
use yirage_ir::Format;
use yirage_kernels::{AttentionKernel, NativeAttention, PagedAttentionShape};
use yirage_plan::{NumberTest, Predicate, Quantity};

const THREADS: u32 = 256;
/// Rows of queries that are multiplied at once.
const TILE: u32 = 16;
/// What the width of a key is a multiple of, and at most.
const KEY_STEP: u32 = 8;
const MOST_KEY: u32 = 256;
/// The same of a value.
const VALUE_STEP: u32 = 16;
const MOST_VALUE: u32 = 128;
/// Values of which a block has two tiles, where they are floats of 16 bits.
const NARROW: u32 = 64;

const FORMATS: [Format; 4] = [Format::F32, Format::F16, Format::BF16, Format::Q8_0];

/// The attention of a device of this architecture; none where it is too old for it.
pub fn attention(arch: &str) -> Option<Arc<dyn NativeAttention>> {
    has_instructions(arch).then(|| Arc::new(CachedAttention) as Arc<dyn NativeAttention>)
}

#[derive(Debug)]
struct CachedAttention;

impl NativeAttention for CachedAttention {
    fn name(&self) -> &'static str {
        "cuda/attention@1"
    }

    fn variant(&self) -> &'static str {
        "sm_80"
    }

    fn formats(&self) -> &'static [Format] {
        &FORMATS
    }

    fn block_positions(&self) -> &'static [u32] {
        &[32]
    }

    fn wants(&self) -> Vec<Predicate> {
        let number = |name: &str, test| Predicate::Number(Quantity::Attribute(name.into()), test);
        vec![
            Predicate::Attribute("v_in_k".into(), "false".into()),
            number("k_width", NumberTest::MultipleOf(KEY_STEP)),
            number("k_width", NumberTest::AtMost(MOST_KEY)),
            number("v_width", NumberTest::MultipleOf(VALUE_STEP)),
            number("v_width", NumberTest::AtMost(MOST_VALUE)),
        ]
    }

    fn kernel(&self, shape: &PagedAttentionShape) -> AttentionKernel {
        let PagedAttentionShape { op, cache, has_sinks, tokens, most_tokens, seqs, blocks } = shape;
        let ratio = op.heads / op.kv_heads;
        // More rows of a block read the cache less often. They change no byte.
        let is_narrow = op.v_width.max(op.k_width) <= NARROW && matches!(cache, Format::BF16 | Format::F16);
        let tiles = if is_narrow && most_tokens.saturating_mul(ratio) > TILE { 2 } else { 1 };
        let heads_of_block = ratio.min(tiles * TILE);
        let tokens_of_group = tiles * TILE / heads_of_block;
        let sizes = [*tokens, *seqs, *blocks];
        let [of_tokens, of_seqs, of_blocks] = sizes.map(count_of);
        let format = cache.info().name.to_ascii_uppercase();
        let text_of = |value: f32| format!("__uint_as_float({:#010x}u)", value.to_bits());
        // A window that is longer than positions can be hides nothing.
        let window = i32::try_from(op.window).unwrap_or(0);
        let name = format!(
            "attention_{}_{}of{}_{}x{}_{}_t{tiles}_w{window}_s{:08x}_c{:08x}{}",
            format.to_ascii_lowercase(),
            op.heads,
            op.kv_heads,
            op.k_width,
            op.v_width,
            sizes.map(named).join("_"),
            op.scale.0.to_bits(),
            op.softcap.0.to_bits(),
            if *has_sinks { "_sinks" } else { "" },
        );
        let (sinks_parameter, sinks) = if *has_sinks { ("const float* sinks, ", "sinks") } else { ("", "nullptr") };
        let parameters = format!(
            "{}const float* queries, const unsigned char* cache, const int* positions, const int* seqs, const int* table, \
             {sinks_parameter}float* out",
            sizes_parameter(&sizes)
        );
        let head =
            KernelHead { threads: THREADS, blocks: 1, name: &name, parameters: &parameters, memory: "AttentionMemory" };
        let body = format!(
            "  const AttentionInputs in = {{{of_tokens}, {of_seqs}, {of_blocks}, queries, cache, positions, seqs, table, \
             {sinks}}};\n  attention(memory, in, out);\n"
        );
        let source = format!(
            "#define CACHE Cache{format}\n#define HEADS {}u\n#define KV_HEADS {}u\n#define K_WIDTH {}u\n#define V_WIDTH {}u\n\
             #define TOKENS {tokens_of_group}u\n#define HEADS_OF_BLOCK {heads_of_block}u\n#define ROW_TILES {tiles}u\n\
             #define SCALE {}\n#define SOFTCAP {}\n#define WINDOW {window}\n#define SINKS {}\n{DEVICE}\n{TERMS}\n{TEXT}\n{}",
            op.heads,
            op.kv_heads,
            op.k_width,
            op.v_width,
            text_of(op.scale.0),
            text_of(op.softcap.0),
            u8::from(*has_sinks),
            as_kernel(&head, &body),
        );
        let groups_of_heads = op.kv_heads * ratio.div_ceil(heads_of_block);
        AttentionKernel { name, source, threads: THREADS, tokens_of_group, groups_of_heads, waits: true }
    }
}

const TEXT: &str = include_str!("attention.cu");
