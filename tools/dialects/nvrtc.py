#!/usr/bin/env python3
"""Compiles sources of CUDA by NVRTC, without a GPU, for every architecture that is named, and says what each kernel takes.

NVRTC comes from the package nvidia-cuda-nvrtc, whose library is found beside the Python that runs this. Fails where a source is
not taken, a kernel spills registers that is not known to, or a product and a sum are fused.
"""

import argparse
import ctypes
import pathlib
import re
import sys
import sysconfig

from report import Figures, Job, finish, in_parallel, options_of, sources_of


class Nvrtc:
    """The library."""

    def __init__(self):
        folder = pathlib.Path(sysconfig.get_paths()["purelib"]) / "nvidia"
        found = sorted(folder.glob("**/libnvrtc.so.*[0-9]")) or sys.exit(f"no libnvrtc.so below {folder}")
        self.library = ctypes.CDLL(str(found[-1]))
        major, minor = ctypes.c_int(), ctypes.c_int()
        self.check(self.library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)))
        self.version = f"{major.value}.{minor.value}"

    def check(self, code):
        if code:
            text = self.library.nvrtcGetErrorString
            text.restype = ctypes.c_char_p
            raise RuntimeError(text(code).decode())

    def text(self, what, program):
        """A text of a program, such as its log."""
        size = ctypes.c_size_t()
        self.check(getattr(self.library, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
        buffer = ctypes.create_string_buffer(size.value)
        self.check(getattr(self.library, f"nvrtcGet{what}")(program, buffer))
        return buffer.value.decode()

    def compile(self, source, options):
        """The log and, of a virtual architecture, the PTX; an error where the source is not taken."""
        program = ctypes.c_void_p()
        name = source.name.encode()
        text = source.read_bytes()
        self.check(self.library.nvrtcCreateProgram(ctypes.byref(program), text, name, 0, None, None))
        try:
            given = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
            code = self.library.nvrtcCompileProgram(program, len(options), given)
            log = self.text("ProgramLog", program)
            if code:
                raise RuntimeError(log)
            is_virtual = any("compute_" in option for option in options)
            return log, self.text("PTX", program) if is_virtual else ""
        finally:
            self.library.nvrtcDestroyProgram(ctypes.byref(program))


ENTRY = re.compile(
    r"Compiling entry function '(?P<name>\w+)' for.*?"
    r"(?P<stack>\d+) bytes stack frame, (?P<stores>\d+) bytes spill stores, (?P<loads>\d+) bytes spill loads.*?"
    r"Used (?P<registers>\d+) registers(?:.*?(?P<shared>\d+) bytes smem)?[^\n]*",
    re.DOTALL,
)


def figures(log):
    """What the assembler says of each kernel."""
    for part in re.split(r"(?=ptxas info\s*: Compiling entry function)", log):
        found = ENTRY.search(part)
        if found:
            spilled = int(found["stores"]) + int(found["loads"])
            yield Figures(found["name"], int(found["registers"]), spilled, int(found["shared"] or 0))


def compiled(job):
    """Compiles a source for an architecture, and once for a virtual one, whose text shows what is fused, unless it may be."""
    nvrtc = Nvrtc()
    given = [f"--gpu-architecture={job.arch}", "-std=c++17", *job.options]
    if job.arch.startswith("compute_"):
        _, ptx = nvrtc.compile(job.source, given)
        fused = re.findall(r"^\s*(?:fma|mad)\.[\w.]*f(?:32|64)\b.*$", ptx, re.MULTILINE)
        return [] if not fused else [f"{job.source}: a product and a sum are fused: {fused[0].strip()}"], []
    log, _ = nvrtc.compile(job.source, [*given, "--ptxas-options=-v"])
    return [], list(figures(log))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="sources, and a file `options`")
    parser.add_argument("--arch", action="append", required=True, help="such as sm_90a; once for each")
    parser.add_argument("--by-hand", action="store_true", help="kernels that fuse where they say so, and may not spill")
    parser.add_argument("--report", type=pathlib.Path, help="where a table of all kernels goes")
    asked = parser.parse_args()
    options = options_of(asked.folder)
    print(f"NVRTC {Nvrtc().version}, options {' '.join(options)}")
    virtual = asked.arch[0].replace("sm_", "compute_").rstrip("af")
    archs = asked.arch if asked.by_hand else [*asked.arch, virtual]
    jobs = [Job(source, arch, options) for arch in archs for source in sources_of(asked.folder)]
    finish(in_parallel(compiled, jobs), asked.arch, asked.report, may_spill=not asked.by_hand)


if __name__ == "__main__":
    main()
