//! Names that stand in sources as they are.

/// Words that mean something to WGSL (keywords, reserved words, types and functions that kernels use) or to the dialects of
/// C++, and names that sources give themselves.
const TAKEN: &str = "\
NULL Self abstract active alias alignas alignof and and_eq array as asm asm_fragment async atomic attribute auto await \
become bf16 binding bitand bitcast bitor block_id blockDim blockIdx bool break case cast catch char class co_await \
co_return co_yield coherent column_major common compile compile_fragment compl concept const const_assert const_cast \
consteval constexpr constinit continue continuing crate debugger decltype default delete demote demote_to_helper \
diagnostic discard do double dynamic_cast else enable enum explicit export extends extern external f16 f32 fallthrough \
false filter final finally float fn for friend from fxgroup get goto group groupshared half highp i32 if impl implements \
import inline instanceof int interface kernel layout let long loop lowp macro macro_rules main match mediump meta mod \
module move mut mutable namespace new nil noexcept noinline nointerpolation non_coherent noncoherent noperspective not \
not_eq null nullptr of operator or or_eq override package packoffset partial pass patch pixelfragment precise precision \
premerge priv private protected ptr pub public readonly ref regardless register reinterpret_cast require requires resource \
restrict return sampler self set shared short signed sizeof smooth snorm static static_assert static_cast std struct \
subgroup_lane subgroup_size subroutine super switch target template this thread thread_local threadgroup threadIdx throw \
trait true try type typedef typeid typename typeof u32 uint union unless unorm unsafe unsigned unsized use using var varying \
vec2 vec3 vec4 virtual void volatile wchar_t wgsl where while with writeonly xor xor_eq yield zero_bits \
abs ceil clamp cos countOneBits dot exp fabs floor fma fmax fmin log max memcpy min pack2x16float pow rint round select sin \
sqrt sqrtf storageBarrier subgroupAdd subgroupMax subgroupMin subgroupShuffle trunc unpack2x16float workgroupBarrier \
FUNCTION JoinAdd JoinMax JoinMin SUBGROUP bits_as_f32 bits_as_i32 bits_as_u32 count_ones f32_as_half group_barrier group_index \
group_of_grid_0 group_of_grid_1 group_of_grid_2 half_as_f32 joined lane_index lane_of_subgroup magnitude of_subgroup quotient \
remainder_of root round_down round_to_even subgroup_add subgroup_max subgroup_min subgroup_shuffle thread_index \
thread_of_group";

/// The longest name, in bytes.
const LONGEST: usize = 128;

/// Whether it is a word of letters, digits and single `_` that begins with a letter.
pub(super) fn is_word(name: &str) -> bool {
    let letters = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let begins = name.bytes().next().is_some_and(|b| b.is_ascii_alphabetic());
    letters && begins && !name.contains("__") && name.len() <= LONGEST
}

/// Whether a source has the word for something else: `b0`, `s1`, `r2` and `v3` are its buffers, arrays, registers and
/// variables.
pub(super) fn is_taken(name: &str) -> bool {
    let numbered = name.len() > 1 && name[1..].bytes().all(|b| b.is_ascii_digit());
    numbered || TAKEN.split(' ').any(|word| word == name)
}
