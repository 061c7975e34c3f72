#!/usr/bin/env bash
# Builds and installs the Python package and the command from this checkout, for the Python that runs as `python3`.
# Needs: that Python with pip and venv, and Rust's stable toolchain. One build serves every machine: makers' runtimes are
# found when the program starts. --only leaves out what is not named.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

usage() {
    cat <<'TEXT'
usage: install_multi_backend.sh [--only BACKEND...] [--venv FOLDER] [--with-compat] [--test] [--dry-run]
  --only BACKEND...  of cpu cuda hip musa maca corex ascend cambricon mps vulkan dx12, all of which are in by default
  --venv FOLDER      make an environment there and install into it
  --with-compat      install the names of sageLLM, infinilm and infinicore, too
  --test             run the short test of backends afterwards
  --dry-run          print the commands
TEXT
}

only=() venv= compat= test= run=
while [ $# -gt 0 ]; do
    case $1 in
    --only)
        shift
        while [ $# -gt 0 ] && [[ $1 != --* ]]; do only+=("$1"); shift; done
        [ ${#only[@]} -gt 0 ] || { echo "--only: name a backend" >&2; exit 2; }
        ;;
    --venv) venv=${2:?--venv: name a folder}; shift 2 ;;
    --with-compat) compat=yes; shift ;;
    --test) test=yes; shift ;;
    --dry-run) run=echo; shift ;;
    --help | -h) usage; exit 0 ;;
    *) echo "unknown option $1" >&2; usage >&2; exit 2 ;;
    esac
done

command -v cargo >/dev/null || { echo "there is no cargo: install Rust from https://rustup.rs" >&2; exit 3; }
python=python3
if [ -n "$venv" ]; then
    $run python3 -m venv "$venv"
    python=$venv/bin/python
fi
arguments=()
if [ ${#only[@]} -gt 0 ]; then
    features=$(IFS=,; echo "${only[*]}")
    arguments=(--config-settings "build-args=--no-default-features --features $features")
fi
$run "$python" -m pip install "${arguments[@]}" .
[ -z "$compat" ] || $run "$python" -m pip install --no-deps python/compat
[ -z "$test" ] || $run "$python" tests/test_multi_backend.py
