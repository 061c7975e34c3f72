#!/usr/bin/env bash
# The Python package as users get it: its wheel is built by pip and maturin, installed into a fresh environment, and
# tested there. After `cargo test --workspace --locked` this compiles the native module alone. Needs python3 with venv, and
# a way to PyPI. `PYTHON` names another interpreter to install it for; where that has PyTorch (Debian's python3-torch), the
# tests that want PyTorch run as well. With --release the wheel is the one that is published: it takes minutes, and its size is checked.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

target=${CARGO_TARGET_DIR:-$PWD/target}
tools=$target/ci-tools/python
wheels=$target/python
most=$((15 * 1000 * 1000))
# Before a release the notebook is run by Jupyter, else its cells are run one after the other.
jupyter=()

if [ ! -x "$tools/bin/maturin" ] || [ ! -x "$tools/bin/pyright" ]; then
    python3 -m venv "$tools"
    "$tools/bin/pip" install --quiet 'maturin>=1.9.4,<2' cmake mypy pyright
fi

rm -rf "$wheels"
mkdir -p "$wheels"
if [ "${1-}" = --release ]; then
    shift
    jupyter=(nbclient ipykernel)
    PATH=$tools/bin:$PATH "$tools/bin/pip" wheel --quiet --no-deps --no-build-isolation --wheel-dir "$wheels" .
    bytes=$(stat -c %s "$wheels"/*.whl)
    echo "the wheel has $bytes bytes"
    [ "$bytes" -le $most ] || { echo "the wheel has $bytes bytes, $most are allowed" >&2; exit 1; }
else
    PATH=$tools/bin:$PATH CARGO=$PWD/tools/python/cargo-of-the-tests MATURIN_PEP517_ARGS="--profile dev" \
        "$tools/bin/pip" wheel --quiet --no-deps --no-build-isolation --wheel-dir "$wheels" .
fi

fresh=$wheels/environment
shared=() numpy='numpy>=1.23'
if "${PYTHON:-python3}" -c 'import torch' 2>/dev/null; then
    # PyTorch was built for the NumPy that stands beside it.
    shared=(--system-site-packages)
    numpy=$("${PYTHON:-python3}" -c 'import numpy; print(f"numpy=={numpy.__version__}")')
else
    echo "${PYTHON:-python3} has no PyTorch: tests that want it are skipped"
fi
"${PYTHON:-python3}" -m venv "${shared[@]}" "$fresh"
"$fresh/bin/pip" install --quiet "$wheels"/*.whl "$numpy" ml_dtypes 'pytest>=8' pyyaml 'pillow>=9' "${jupyter[@]}"
"$fresh/bin/yirage" --version

"$tools/bin/pyright" --pythonpath "$fresh/bin/python"
# From another folder, so that the package is the installed one.
repository=$PWD
cd "$wheels"
"$tools/bin/mypy" --strict --python-executable "$fresh/bin/python" --package yirage
PATH=$fresh/bin:$PATH:$tools/bin "$fresh/bin/python" -m pytest --quiet -rs -p no:cacheprovider "$repository/python/tests" "$@"
