"""The package's build backend: maturin's wheel, with the `yirage` command in it.

Maturin builds a module or a program, and a wheel here has both. So the command is built by the same cargo, for the same
target, with the same profile and features, and put where installers look for programs. Everything else is maturin's.
"""

import base64
import hashlib
import os
import pathlib
import shlex
import shutil
import subprocess
import zipfile

import maturin
from maturin import build_sdist, get_requires_for_build_sdist, get_requires_for_build_wheel  # noqa: F401
from maturin import prepare_metadata_for_build_wheel  # noqa: F401

ROOT = pathlib.Path(__file__).resolve().parents[2]


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """A wheel in that folder; gives its name."""
    words = arguments(config_settings)
    program = build_command(words)
    name = maturin.build_wheel(wheel_directory, config_settings, metadata_directory)
    add(pathlib.Path(wheel_directory) / name, program)
    return name


def arguments(config_settings):
    """What maturin is told beside its own settings: profile, target and features are the command's, too."""
    given = (config_settings or {}).get("build-args", os.environ.get("MATURIN_PEP517_ARGS", ""))
    return given if isinstance(given, list) else shlex.split(given)


def value(words, *names):
    """The value of an option, `--name value` or `--name=value`."""
    for at, word in enumerate(words):
        if word in names and at + 1 < len(words):
            return words[at + 1]
        for name in names:
            if name.startswith("--") and word.startswith(f"{name}="):
                return word.partition("=")[2]
    return None


def build_command(words):
    """Builds the command, and gives its file."""
    profile, target = value(words, "--profile") or "release", value(words, "--target")
    passed = [word for word in ("--locked", "--offline", "--frozen", "--no-default-features") if word in words]
    for option in ("--features", "--target", "--target-dir"):
        if (given := value(words, option)) is not None:
            passed += [option, given]
    cargo = [os.environ.get("CARGO", "cargo"), "rustc", "--package", "yirage", "--bin", "yirage", "--profile", profile]
    # Symbols are left out of the program alone, so that every library is what the module is built from.
    subprocess.run([*cargo, *passed, "--", "-C", "strip=symbols"], cwd=ROOT, check=True)
    folder = pathlib.Path(value(words, "--target-dir") or os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
    built = {"dev": "debug"}.get(profile, profile)
    return ROOT / folder / (target or "") / built / "yirage"


def add(wheel, program):
    """Puts a program into a wheel, which lists it."""
    changed = wheel.with_suffix(".changed")
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(changed, "w", zipfile.ZIP_DEFLATED) as new:
        record = next(name for name in old.namelist() if name.endswith(".dist-info/RECORD"))
        place = f"{record.partition('.dist-info/')[0]}.data/scripts/{program.name}"
        for entry in old.infolist():
            if entry.filename != record:
                new.writestr(entry, old.read(entry), zipfile.ZIP_DEFLATED)
        elements = program.read_bytes()
        executable = zipfile.ZipInfo(place)
        executable.external_attr = 0o100755 << 16
        new.writestr(executable, elements, zipfile.ZIP_DEFLATED)
        digest = base64.urlsafe_b64encode(hashlib.sha256(elements).digest()).rstrip(b"=").decode()
        listed = old.read(record).decode().splitlines()
        listed.insert(-1, f"{place},sha256={digest},{len(elements)}")
        new.writestr(record, "\n".join(listed) + "\n")
    shutil.move(changed, wheel)
