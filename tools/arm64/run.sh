#!/usr/bin/env bash
# Runs the tests that exercise NEON kernels on an x86-64 machine: builds them for aarch64 and runs them under qemu's
# user-mode emulation, at every level of NEON that there are kernels for. Everything comes from Debian's or Ubuntu's own
# packages (their compiler for browsers has an arm64 standard library), unpacked into a private folder: nothing is
# installed, no architecture is added to the system.
#
# Skips, loudly and successfully, where the packages are not to be had. Once they are, a failure is a failure.
# usage: tools/arm64/run.sh [model | unpack | ARGUMENTS FOR cargo test]     (default: what is listed below)
# `unpack` only brings the packages, for what follows to begin at once.
# With YIRAGE_NEON_TESTS=kernels these are the tests of the kernels and of the processor, less those of a minute each and of what has
# no NEON in it (a crate's own tests, the decoders): what every change waits for. Without, every op and case as well.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# What is run: every kernel against its oracle, every op and case at every level, and the decoders that both are compared
# with. What has nothing of a processor in it (plans that are spoilt, the pool's protocol) is left to the ordinary tests. A
# tiny model against its golden file is run with `tools/arm64/run.sh model`, which builds the engine for it.
cpu_tests=(attention_dense attention_paged device_probe general_contract general_copy general_forms general_map general_moves)
cpu_tests+=(levels linear_bfdot linear_kernels linear_pack rows_choice rows_reference)
# Small ones of every part of the kernels.
cpu_tests+=(activation general_hot general_operand kv_blocks limits linear_cut linear_levels memory recurrent sample_select simd_lanes)
# One of the processor's tests stands here so that both halves take as long.
conformance_tests=(backends bound contract copies general_reduce operands random tiled views)
# All together wherever one is built: which features their dependencies have goes by what is built with them. The kernels have no
# tests within, so that they are compiled once.
packages=(--package=yirage-cpu-kernels --package=yirage-cpu)
libraries=(--package=yirage-cpu --package=yirage-conformance --lib)
if [ "${YIRAGE_NEON_TESTS-}" != kernels ]; then
    packages+=(--package=yirage-conformance)
fi
# Tests are chosen by words that stand anywhere in their names: these have one of the words above in theirs.
others=(--skip=general_contract:: --skip=refused_operands::)
decoder_tests=("${packages[@]}" --package=yirage-ir --test=suite -- quant_golden::)
model_test=(--package=yirage-engine --test=suite golden_bedtime::f32_gguf)
# Minutes each under emulation, for nothing that the others do not run on this processor as well.
slow=(--skip=long_context_crosses_splits --skip=random_worlds_are_exact --skip=cpu_guarded_at_every_level --skip=cpu_alone_at_every_level)
slow+=(--skip=epilogues_have_the_bytes_of_op_by_op --skip=takes_or_refuses_every_operand_at_every_level)
# Begins processes of its own, which nothing emulates.
slow+=(--skip=reading_or_writing_past_the_end_is_a_fault)
if [ "${YIRAGE_NEON_TESTS-}" = kernels ]; then
    # Minutes each: products and attention have others, of fewer sizes, that stay.
    slow+=(--skip=sizes_about_the_edges_of_tiles_and_blocks --skip=every_level_part_and_stride_gives_the_same_bits)
    slow+=(--skip=close_to_f64_in_every_shape_and_storage)
fi
# The levels that a test insists on, the best one last: one that emulation lacked would be passed over in silence.
levels="scalar neon neoni8mm neonbf16"
# Kernels as they are released, and the reference optimised, or emulation takes minutes; the rest in little time.
profile=(--config 'profile.test.opt-level=0' --config 'profile.test.debug=0' --config 'profile.test.lto="off"')
profile+=(--config 'profile.test.package."*".opt-level=0')
for package in yirage-cpu-kernels yirage-cpu yirage-ir yirage-hal yirage-compile yirage-plan yirage-conformance; do
    profile+=(--config "profile.test.package.$package.opt-level=2")
done
profile+=(--config 'profile.test.package.yirage-cpu-kernels.debug-assertions=false')
profile+=(--config 'profile.test.package.yirage-cpu.debug-assertions=false')
wanted=(rustc-web libstd-rust-web-dev libstd-rust-web-dev:arm64 gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static)
triple=aarch64-unknown-linux-gnu
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")/arm64
root=$target/root

skip() {
    printf '\nSKIPPED: NEON tests were NOT run: %s\n\n' "$*" >&2
    exit 0
}

# apt-get with its own lists, status (nothing is installed) and both architectures; the machine's own sources and keys.
private_apt() {
    apt-get -o Dir::State="$target/apt" -o Dir::State::Lists="$target/apt/lists" \
        -o Dir::State::status="$target/apt/status" -o Dir::Cache="$target/apt/cache" \
        -o APT::Architecture=amd64 -o APT::Architectures::=amd64 -o APT::Architectures::=arm64 \
        -o APT::Sandbox::User=root -o Acquire::Languages=none -o Acquire::Retries=2 "$@"
}

# The packages that `wanted` needs, less what only a whole installed system would use: other compilers, documentation
# tools, run-time libraries for arm64 that the cross compiler brings itself, and the C library of this machine.
needed_packages() {
    private_apt install --yes --no-install-recommends --simulate "${wanted[@]}" |
        awk '$1 == "Inst" { print $2 }' |
        grep -vE '(^|lib)(gcc-[0-9]+|cpp-[0-9]+|gcc|cpp|perl.*|debconf|libc6|libc6-dev|linux-libc-dev|libc-dev-bin)$' |
        grep -vE 'san[0-9]+|krb5|gssapi|tirpc|libnsl|libcrypt|libssl|gprofng|^libgcc-[0-9]+-dev$' |
        grep -vE '^binutils-x86|^rpcsvc' |
        grep -E '^libstd-rust-web-dev:arm64$|^[^:]*$'
}

unpack_toolchain() {
    local stamp=$target/unpacked
    [ ! -f "$stamp" ] || return 0
    command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || skip "this system has no apt-get and dpkg-deb"
    rm -rf "$target/apt" "$target/debs" "$root"
    mkdir -p "$target"/{apt/lists/partial,apt/cache/archives/partial,debs} "$root"
    : >"$target/apt/status"
    private_apt update >"$target/apt.log" 2>&1 || skip "package lists cannot be read ($target/apt.log)"
    local packages
    packages=$(needed_packages 2>>"$target/apt.log") || skip "these packages are gone: ${wanted[*]} ($target/apt.log)"
    # shellcheck disable=SC2086
    (cd "$target/debs" && private_apt download $packages) >>"$target/apt.log" 2>&1 ||
        skip "packages cannot be downloaded ($target/apt.log)"
    local package
    for package in "$target"/debs/*.deb; do
        dpkg-deb --extract "$package" "$root"
    done
    # Documents and other machines' emulators are half of it.
    rm -rf "$target/debs" "$target/apt" "$root/usr/share"
    find "$root/usr/bin" -name 'qemu-*' ! -name qemu-aarch64-static -delete
    write_wrappers
    "$target/bin/rustc" --version >/dev/null 2>>"$target/apt.log" || skip "the unpacked compiler does not run here ($target/apt.log)"
    touch "$stamp"
}

# Small scripts that find the unpacked tools' own libraries without telling anyone else about them.
write_wrappers() {
    local libraries=$root/usr/lib/x86_64-linux-gnu:$root/lib/x86_64-linux-gnu
    mkdir -p "$target/bin"
    local tool
    for tool in rustc rustdoc; do
        printf '#!/bin/sh\nLD_LIBRARY_PATH=%s exec %s "$@"\n' "$libraries" "$root/usr/bin/$tool" >"$target/bin/$tool"
    done
    printf '#!/bin/sh\nPATH=%s:$PATH LD_LIBRARY_PATH=%s exec %s --sysroot=%s -B%s/ -B%s/ "$@"\n' \
        "$root/usr/bin" "$libraries" "$root/usr/bin/aarch64-linux-gnu-gcc" "$root" \
        "$root/usr/aarch64-linux-gnu/lib" "$root/usr/aarch64-linux-gnu/bin" >"$target/bin/cc-arm64"
    # The best CPU that qemu knows: dotprod, i8mm and bf16 are there, and kernels find them at run time.
    printf '#!/bin/sh\nexec %s -L %s -cpu "${YIRAGE_QEMU_CPU:-max}" "$@"\n' \
        "$root/usr/bin/qemu-aarch64-static" "$root/usr/aarch64-linux-gnu" >"$target/bin/run-arm64"
    chmod +x "$target"/bin/*
}

[ "$(uname -m)" = x86_64 ] || skip "this machine is $(uname -m), where the ordinary tests run them"
unpack_toolchain
[ "${1:-}" != unpack ] || exit 0

minimum=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
version=$("$target/bin/rustc" --version | cut -d' ' -f2)
[ "$(printf '%s\n' "$minimum" "$version" | sort -V | head -n1)" = "$minimum" ] ||
    skip "the packaged compiler is $version, older than the $minimum that the workspace needs"

echo "rustc $version for $triple under $("$root/usr/bin/qemu-aarch64-static" --version | head -n1)"
export RUSTC=$target/bin/rustc RUSTDOC=$target/bin/rustdoc CARGO_TARGET_DIR=$target/build
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=$target/bin/cc-arm64
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER=$target/bin/run-arm64
unset RUSTFLAGS CARGO_ENCODED_RUSTFLAGS
emulated() {
    cargo test --locked --target "$triple" "${profile[@]}" "$@"
}
if [ "${1:-}" = model ]; then
    emulated "${model_test[@]}"
elif [ $# -gt 0 ]; then
    emulated "$@"
else
    # Each random graph is run at four levels and by the reference.
    export YIRAGE_RANDOM_GRAPHS=30 YIRAGE_RANDOM_TILES=30 YIRAGE_REQUIRED_ISAS=$levels
    # Side by side: both have tests that keep one core alone busy for a minute. What the reference alone does is the same on
    # every processor.
    conformance=
    emulated "${packages[@]}" --test=suite --no-run
    if [ "${YIRAGE_NEON_TESTS-}" != kernels ]; then
        emulated "${libraries[@]}" --no-run
        emulated "${packages[@]}" --test=suite -- "${conformance_tests[@]/%/::}" "${others[@]}" "${slow[@]}" --skip=reference \
            >"$target/conformance.log" 2>&1 &
        conformance=$!
    fi
    failed=0
    emulated "${packages[@]}" --test=suite -- "${cpu_tests[@]/%/::}" "${slow[@]}" || failed=1
    if [ -n "$conformance" ]; then
        emulated "${libraries[@]}" -- "${slow[@]}" || failed=1
        wait "$conformance" || failed=1
        cat "$target/conformance.log"
    fi
    [ "$failed" = 0 ]
    # A processor with dot products alone: kernels of that level must not use what the better ones have.
    YIRAGE_QEMU_CPU=neoverse-n1 YIRAGE_REQUIRED_ISAS="scalar neon" \
        emulated "${packages[@]}" --test=suite -- required_levels all_instruction_sets exact_kernels norms
    [ "${YIRAGE_NEON_TESTS-}" = kernels ] || emulated "${decoder_tests[@]}"
fi
