#!/usr/bin/env bash
# The documents as a site, in target/site: mkdocs with --strict, so that a link or an anchor that leads nowhere is an error.
# What the native module says of itself comes from the wheel that tools/python/run.sh builds; without it the reference has
# signatures alone. Needs python3 with venv, and a way to PyPI.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

target=${CARGO_TARGET_DIR:-$PWD/target}
tools=$target/ci-tools/site

if [ ! -x "$tools/bin/mkdocs" ]; then
    python3 -m venv "$tools"
    "$tools/bin/pip" install --quiet 'mkdocs>=1.6.1,<2'
fi

wheels=("$target"/python/yirage-*.whl)
if [ -f "${wheels[0]}" ]; then
    "$tools/bin/pip" install --quiet --no-deps --force-reinstall "${wheels[0]}"
else
    echo "there is no wheel in $target/python: the reference has no descriptions of the native module" >&2
    "$tools/bin/pip" uninstall --quiet --yes yirage 2>/dev/null || true
fi

"$tools/bin/mkdocs" build --strict --quiet --site-dir "$target/site"
echo "the site is in $target/site"
