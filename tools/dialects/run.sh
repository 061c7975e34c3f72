#!/usr/bin/env bash
# Compiles the kernels that GPUs share, as the C++ of each dialect, by the compilers of their makers that need no GPU: CUDA by
# NVRTC, HIP by clang. What is compiled are the kernels of the conformance suite and of the tiny models. Installs nothing: NVRTC
# comes from PyPI into an environment of its own, clang from this system's packages, unpacked into a private folder.
#
# Skips a compiler, loudly and successfully, where it is not to be had. Once it is, a failure is a failure.
# usage: tools/dialects/run.sh [STEP]     with a number, every such case of the suite alone, and no model
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

step=${1:-}
cargo_target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
target=$cargo_target/dialects
sources=$target/sources
clang_version=19
cuda=(--arch sm_80 --arch sm_90a --arch sm_120)
by_hand=(--arch sm_80 --arch sm_86 --arch sm_89 --arch sm_90a --arch sm_100a --arch sm_120)
cdna=(--arch gfx90a --arch gfx942)
rdna=(--arch gfx1100)

skipped() {
    printf '\nSKIPPED: kernels were NOT compiled by %s\n\n' "$*" >&2
    return 1
}

# apt-get with its own lists, but knowing what this system has; the machine's own sources and keys.
private_apt() {
    apt-get -o Dir::State="$target/apt" -o Dir::State::Lists="$target/apt/lists" \
        -o Dir::State::status=/var/lib/dpkg/status -o Dir::Cache="$target/apt/cache" \
        -o APT::Sandbox::User=root -o Acquire::Languages=none -o Acquire::Retries=2 "$@"
}

# What clang needs that is not here, less what only compiling for this processor would use.
needed_packages() {
    private_apt install --yes --no-install-recommends --simulate "clang-$clang_version" |
        awk '$1 == "Inst" { print $2 }' | grep -vE -- '-dev(:|$)|^libc6|gcc|objc|binutils|linker-tools|san[0-9]|libquadmath'
}

unpack_clang() {
    [ ! -f "$target/unpacked" ] || return 0
    command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || return 1
    rm -rf "$target/apt" "$target/debs" "$target/root"
    mkdir -p "$target"/{apt/lists/partial,apt/cache/archives/partial,debs,root,bin}
    private_apt update >"$target/apt.log" 2>&1 || return 1
    local packages package
    packages=$(needed_packages 2>>"$target/apt.log") || return 1
    # shellcheck disable=SC2086
    (cd "$target/debs" && private_apt download $packages) >>"$target/apt.log" 2>&1 || return 1
    for package in "$target"/debs/*.deb; do
        dpkg-deb --extract "$package" "$target/root"
    done
    rm -rf "$target/debs" "$target/apt"
    touch "$target/unpacked"
}

# A clang with AMD's processors among its targets: this system's, or one that is unpacked.
find_clang() {
    clang=$(command -v "clang-$clang_version") && return 0
    unpack_clang || skipped "clang: the package clang-$clang_version is not to be had ($target/apt.log)" || return 1
    clang=$target/bin/clang
    printf '#!/bin/sh\nLD_LIBRARY_PATH=%s exec %s "$@"\n' "$(find "$target/root/usr/lib" -maxdepth 1 -name '*-linux-gnu')" \
        "$target/root/usr/lib/llvm-$clang_version/bin/clang" >"$clang"
    chmod +x "$clang"
    "$clang" --version >/dev/null 2>>"$target/apt.log" || skipped "clang: the unpacked one does not run ($target/apt.log)"
}

find_nvrtc() {
    python=$target/venv/bin/python
    "$python" -c '' 2>/dev/null || python3 -m venv "$target/venv" || skipped "NVRTC: Python has no venv" || return 1
    "$python" -m pip install --quiet --disable-pip-version-check 'nvidia-cuda-nvrtc>=13,<14' ||
        skipped "NVRTC: the package nvidia-cuda-nvrtc is not to be had"
}

mkdir -p "$target"
cargo build --workspace --locked --example dialect_sources
cargo build --workspace --locked --example native_sources
rm -rf "$sources"
"$cargo_target/debug/examples/dialect_sources" "$sources" ${step:+"$step"}

failed=0
if find_nvrtc; then
    "$python" tools/dialects/nvrtc.py "$sources/cuda" "${cuda[@]}" --report "$target/cuda.md" || failed=1
    "$cargo_target/debug/examples/native_sources" "$sources/native"
    "$python" tools/dialects/nvrtc.py "$sources/native" "${by_hand[@]}" --by-hand --report "$target/native.md" || failed=1
    # The backend's own way to the same compiler.
    VIRTUAL_ENV=$target/venv cargo test --workspace --locked --lib -- --ignored a_source_becomes_code || failed=1
fi
if find_clang; then
    python3 tools/dialects/amd.py "$sources/hip" --clang "$clang" "${cdna[@]}" --report "$target/hip.md" || failed=1
    python3 tools/dialects/amd.py "$sources/hip-rdna" --clang "$clang" "${rdna[@]}" --report "$target/hip-rdna.md" || failed=1
fi
exit $failed
