#!/usr/bin/env bash
# Checks the files of deploy/ with what is at hand, and says what is not: YAML by Python's yaml, manifests by kubectl, the unit
# by systemd-analyze, rules by promtool, images by hadolint. Nothing is built and no cluster is asked.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

skipped=()
at_hand() { command -v "$1" >/dev/null || { skipped+=("$1"); return 1; }; }

if python3 -c 'import yaml' 2>/dev/null; then
    find deploy -name '*.y*ml' -print0 | xargs -0 python3 -c '
import sys, yaml
for path in sys.argv[1:]:
    documents = [one for one in yaml.safe_load_all(open(path)) if one is not None]
    assert documents, f"{path} is empty"
    print(f"{path}: ok")'
else
    skipped+=("Python's yaml")
fi

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
fi

if at_hand hadolint; then
    hadolint --failure-threshold error Dockerfile
fi

[ ${#skipped[@]} -eq 0 ] || printf 'not here: %s\n' "${skipped[@]}"
