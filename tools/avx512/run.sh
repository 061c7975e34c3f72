#!/usr/bin/env bash
# Runs the tests that exercise AVX-512 kernels on an x86-64 machine without AVX-512: builds them static, and runs them
# under a small Linux on Bochs, an emulator of whole PCs whose CPUs have these instructions. Bochs, the kernel and the
# shell come from Debian's own packages, unpacked into a private folder: nothing is installed. Needs a C compiler and
# python3 besides what the workspace needs.
#
# Skips, loudly and successfully, where the packages are not to be had. Once they are, a failure is a failure, and so is
# an emulated machine without AVX-512. A machine that has AVX-512 itself runs the tests itself.
# YIRAGE_EMULATED_LEVEL=avxvnni: the same for the instructions of AVX-VNNI, on an emulated machine without AVX-512, in
# minutes and with Bochs 3.0 or later only.
# The BF16 instructions are emulated by Bochs 3.0 and later only. YIRAGE_BOCHS names another Bochs than the packaged one
# (with the nogui display); takes its BIOS files from the package all the same.
# usage: tools/avx512/run.sh [ARGUMENTS FOR cargo test]     (default: what is listed below; tens of minutes)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
tools=$PWD/tools/avx512

# What is run: every kernel against its oracle, and one tiny model against its golden file.
kernel_crates=(yirage-cpu-kernels yirage-cpu yirage-conformance)
model_test=(--package=yirage-engine --test=suite golden_bedtime::)
# The level that is emulated: avx512 stands for that with the BF16 instructions too.
level=${YIRAGE_EMULATED_LEVEL:-avx512}
# What is run at avxvnni: its products. The rest of it is what avx2 has. A test of many batches is left out: it takes longer
# than all others together, and runs the same kernels.
product_tests=(levels:: linear_kernels::)
# Minutes each under emulation, for nothing that the others do not run on this processor as well.
slow=(--skip=long_context_crosses_splits --skip=random_worlds_are_exact)
# The best first; the first that this Bochs knows is taken.
models=(sapphire_rapids corei7_icelake_u)
wanted=(bochs bochs-term linux-image-cloud-amd64 busybox-static)
# Of what these depend on, what is used; other libraries are this system's own or stand-ins (stand_ins).
used='^(bochs|bochs-term|bochsbios|vgabios|busybox-static|linux-image-[0-9].*)$|^lib(ltdl7|samplerate0|readline8)$'
used+='|^lib(ncurses|tinfo)6$'
# The clock without the timer that Bochs emulates badly, and CPUs without what they emulate in part: fast string moves
# are announced without the flag that Linux expects with them, and protection keys, tiles and compact register areas in
# sizes that make Linux refuse all of AVX.
command_line='console=ttyS0,115200 quiet loglevel=1 nokaslr hpet=disable tsc=reliable no_timer_check mitigations=off
    random.trust_cpu=on init_on_alloc=0 audit=0 clearcpuid=fsrm,pku,xsaves,xsavec,amx_tile'
limit_s=${YIRAGE_EMULATION_LIMIT_S:-7200}
triple=x86_64-unknown-linux-gnu
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")/avx512
root=$target/root
guest=$target/guest

skip() {
    printf '\nSKIPPED: tests of %s were NOT run: %s\n\n' "$level" "$*" >&2
    exit 0
}

# cargo test for each thing that is run; the arguments of this script if there are any.
cargo_tests() {
    if [ $# -gt 0 ]; then
        cargo test --locked --target "$triple" "$@"
    elif [ "$level" = avxvnni ]; then
        cargo test --locked --target "$triple" --package=yirage-cpu-kernels --test=suite -- \
            --test-threads=1 --skip=a_row_does_not_depend "${product_tests[@]}"
    else
        cargo test --locked --target "$triple" "${kernel_crates[@]/#/--package=}" --tests -- \
            --test-threads=1 "${slow[@]}"
        cargo test --locked --target "$triple" "${model_test[@]}" -- --test-threads=1
    fi
}

# apt-get with its own lists and status (nothing is installed); the machine's own sources and keys.
private_apt() {
    apt-get -o Dir::State="$target/apt" -o Dir::State::Lists="$target/apt/lists" \
        -o Dir::State::status="$target/apt/status" -o Dir::Cache="$target/apt/cache" \
        -o APT::Architecture=amd64 -o APT::Architectures::=amd64 \
        -o APT::Sandbox::User=root -o Acquire::Languages=none -o Acquire::Retries=2 "$@"
}

needed_packages() {
    private_apt install --yes --no-install-recommends --simulate "${wanted[@]}" |
        awk '$1 == "Inst" { print $2 }' | grep -E "$used"
}

unpack_emulator() {
    local stamp=$target/unpacked
    [ ! -f "$stamp" ] || return 0
    local tool
    for tool in apt-get dpkg-deb cc nm as ld python3 script; do
        command -v "$tool" >/dev/null || skip "this system has no $tool"
    done
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
    rm -rf "$target/debs" "$target/apt" "$root"/lib/modules "$root"/usr/share/{doc,man}
    stand_ins
    bochs --help cpu >/dev/null 2>>"$target/apt.log" ||
        skip "the unpacked emulator does not run here ($target/apt.log)"
    touch "$stamp"
}

# Libraries of windows, which the packaged Bochs wants at start for its debugger's window, which nobody opens: a hundred
# packages otherwise. Each function stops the program.
stand_ins() {
    local folder=$target/stand-ins
    mkdir -p "$folder"
    nm -D --undefined-only "$root/usr/bin/bochs-bin" |
        awk '$2 ~ /^(gtk|gdk|g|pango)_/ { print "void " $2 "(void) { __builtin_trap(); }" }' |
        cc -shared -nostdlib -Wl,-soname,libgtk-3.so.0 -o "$folder/libgtk-3.so.0" -x c -
    local name
    for name in libgdk-3.so.0 libpango-1.0.so.0 libgobject-2.0.so.0 libglib-2.0.so.0; do
        cc -shared -nostdlib -Wl,-soname,"$name" -o "$folder/$name" -x c /dev/null
    done
}

# The emulator, with its own libraries and nobody else's knowledge of them.
bochs() {
    if [ -n "${YIRAGE_BOCHS:-}" ]; then
        "$YIRAGE_BOCHS" "$@"
    else
        local libraries=$root/usr/lib/x86_64-linux-gnu
        LD_LIBRARY_PATH=$target/stand-ins:$libraries:$root/lib/x86_64-linux-gnu \
            LTDL_LIBRARY_PATH=$libraries/bochs/plugins "$root/usr/bin/bochs-bin" "$@"
    fi
}

# Makes cargo hand over the test programs and their arguments instead of running them.
collect_tests() {
    rm -rf "$guest"
    mkdir -p "$guest"/{bin,tests}
    cat >"$target/collect" <<'END'
#!/usr/bin/env bash
set -euo pipefail
program=$1
shift
name=$(basename "$program")
earlier=$(find "$YIRAGE_GUEST/tests" -mindepth 1 -maxdepth 1 | wc -l)
folder=$(printf '%s/tests/%02d-%s' "$YIRAGE_GUEST" "$earlier" "${name%-*}")
mkdir "$folder"
cp "$program" "$folder/program"
printf '%q ' "$@" >"$folder/arguments"
END
    chmod +x "$target/collect"
    YIRAGE_GUEST=$guest CARGO_TARGET_DIR=$target/build CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER=$target/collect \
        RUSTFLAGS='-C target-feature=+crt-static -C strip=symbols' \
        CARGO_PROFILE_DEV_DEBUG=0 CARGO_PROFILE_TEST_DEBUG=0 \
        cargo_tests "$@"
}

make_disk() {
    cp "$root/bin/busybox" "$guest/bin/busybox"
    cp "$tools/init" "$guest/init"
    chmod +x "$guest/init"
    # Tests find files of the checkout from the folder that they were compiled in: it is at the same place here.
    local crate
    for crate in crates/*; do
        mkdir -p "$guest$PWD/$crate"
    done
    (cd "$guest" && find . | "$root/bin/busybox" cpio -o -H newc 2>/dev/null | gzip -1) >"$target/initrd"
    local kernels=("$root"/boot/vmlinuz-*)
    # shellcheck disable=SC2086
    python3 "$tools/disk.py" "$tools/boot.S" "${kernels[0]}" "$target/initrd" "$(echo $command_line)" \
        "$target/disk.img"
}

# Runs the machine until it turns itself off, its console shown as it comes.
emulate() {
    local known model
    known=$(bochs --help cpu 2>&1)
    for model in "${models[@]}"; do
        if grep -qx "$model" <<<"$known"; then break; fi
    done
    [ "$level" = avx512 ] || grep -qx "${models[0]}" <<<"$known" || skip "this Bochs has no CPU with AVX-VNNI"
    sed -e "s|@MODEL@|$model|" -e "s|@ROOT@|$root|" -e "s|@DISK@|$target/disk.img|" \
        -e "s|@CONSOLE@|$target/console|" -e "s|@LOG@|$target/bochs.log|" "$tools/bochsrc" >"$target/bochsrc"
    if [ -n "${YIRAGE_BOCHS:-}" ]; then sed -i 's/^display_library: .*/display_library: nogui/' "$target/bochsrc"; fi
    echo continue >"$target/commands" # the packaged Bochs has its debugger, which asks for commands
    rm -f "$target"/{disk.img.lock,console}
    tail -n +1 -F "$target/console" 2>/dev/null &
    local show=$!
    # It wants a terminal to draw its screen on.
    export -f bochs
    export target root
    local arguments=(-q -f "$target/bochsrc")
    if [ -z "${YIRAGE_BOCHS:-}" ]; then arguments+=(-rc "$target/commands"); fi
    local command
    command="bochs $(printf '%q ' "${arguments[@]}")"
    TERM=vt100 SHELL=$BASH timeout --kill-after=10 "$limit_s" \
        script --quiet --command "$command" /dev/null </dev/null >"$target/screen" 2>&1 || true
    sleep 1
    kill "$show"
    wait "$show" 2>/dev/null || true
}

# Whether this machine has all that the kernels of the level need.
has_level() {
    local flags flag
    flags=" $(grep -m1 '^flags' /proc/cpuinfo || true) "
    for flag in "${needed[@]}"; do
        [[ $flags == *" $flag "* ]] || return 1
    done
}

case $level in
    avx512) needed=(avx512f avx512bw avx512vl avx512_vnni) ;;
    avxvnni) needed=(avx_vnni) command_line+=,avx512f ;;
    *)
        echo "YIRAGE_EMULATED_LEVEL is avx512 or avxvnni, not $level" >&2
        exit 2
        ;;
esac
# Of what the kernel does not know it makes variables of its first program.
command_line+=" level=$level"
[ "$(uname -sm)" = "Linux x86_64" ] || skip "this machine is $(uname -sm)"
if has_level; then
    echo "this machine has $level: its ordinary tests run it, and so does this"
    cargo_tests "$@"
    exit
fi
unset CARGO_ENCODED_RUSTFLAGS
unpack_emulator
collect_tests "$@"
make_disk
emulate
grep -qE '^done: [1-9][0-9]* programs, 0 failed' "$target/console" || {
    echo "tests of $level FAILED or did not end: see $target/console, bochs.log and screen beside it" >&2
    exit 1
}
