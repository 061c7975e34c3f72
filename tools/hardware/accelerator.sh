#!/usr/bin/env bash
# Everything that is to be known of an accelerator, in one call of less than ten minutes: what it says of itself, what `doctor` says,
# conformance of every op and of the bundled model, a model's greedy answer beside the processor's, and its speed. Needs the program,
# the maker's libraries and the folder OUT, where it leaves everything, and all of it packed as OUT.tar.gz; no network. A step that
# fails or takes too long does not end the others.
# Where PRODUCTS names the example `products_on_device` of yirage-cuda, products are timed too: kernels written by hand beside
# generated ones.
# With the backend `cuda` the model is also run and timed by each of its three executors.
# Where VERIFY_MODEL names a model, `verify` compares that one layer by layer, and not the bundled one.
# usage: accelerator.sh YIRAGE BACKEND OUT [MODEL]     (BACKEND as `yirage devices` names it; MODEL is a file or folder)
set -uo pipefail
[ $# -ge 3 ] || { sed -n 's/^# usage: //p' "$0" >&2; exit 2; }
yirage=$1 backend=$2 out=$3 model=${4-}
mkdir -p "$out"
failed=0

# Runs a program for at most so many seconds, its results into OUT/$1 and what it says into OUT/$1.log.
program() {
    local file=$1 seconds=$2 started=$SECONDS code=0
    shift 2
    timeout "$seconds" "$@" >"$out/$file" 2>"$out/$file.log" </dev/null || code=$?
    printf '%s: exit code %d after %d s: %s\n' "$file" "$code" "$((SECONDS - started))" "$*" | tee -a "$out/steps.txt"
    [ "$code" = 0 ] || failed=1
}

# The same of a command of yirage's.
step() {
    local file=$1 seconds=$2
    shift 2
    program "$file" "$seconds" "$yirage" "$@"
}

step devices.json 20 devices --json
step doctor.json 20 doctor --json
if [ -n "${PRODUCTS-}" ]; then
    program products.jsonl 100 "$PRODUCTS"
fi
verify=(verify "$backend" --quick --json)
[ -z "${VERIFY_MODEL-}" ] || verify+=(--model "$VERIFY_MODEL")
step verify.json 120 "${verify[@]}"
if [ -n "$model" ]; then
    # In the exact precision, in which all backends give the same tokens.
    greedy=(run "$model" "Why is the sky blue?" --temperature 0 --max-tokens 32 --precision exact --no-weight-cache)
    step answer-cpu.txt 40 "${greedy[@]}" --backend cpu
    step answer.txt 80 "${greedy[@]}" --backend "$backend"
    # The second time the driver has what it compiled.
    step answer-warm.txt 40 "${greedy[@]}" --backend "$backend"
    for other in answer.txt answer-warm.txt; do
        if ! cmp "$out/answer-cpu.txt" "$out/$other" >>"$out/steps.txt" 2>&1; then
            echo "$other is not the processor's" | tee -a "$out/steps.txt"
            failed=1
        fi
    done
    step bench.json 40 bench "$model" --backend "$backend" --json
    if [ "$backend" = cuda ]; then
        for executor in steps replay persistent; do
            step "answer-$executor.txt" 20 "${greedy[@]}" --backend "$backend" --executor "$executor"
            cmp "$out/answer-cpu.txt" "$out/answer-$executor.txt" >>"$out/steps.txt" 2>&1 || failed=1
            step "bench-$executor.json" 20 bench "$model" --backend "$backend" --executor "$executor" --json
        done
    fi
fi
tar -C "$(dirname "$out")" -czf "${out%/}.tar.gz" "$(basename "$out")" || failed=1
exit "$failed"
