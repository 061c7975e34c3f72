#!/usr/bin/env python3
"""Compiles sources of HIP by clang alone, without HIP's headers or a GPU, for every architecture that is named, and says what
each kernel takes. Fails where a source is not taken, or a product and a sum are fused.
"""

import argparse
import pathlib
import re
import subprocess

from report import Figures, Job, finish, in_parallel, options_of, sources_of

# No header and no library of AMD's.
OPTIONS = ["-x", "hip", "-std=c++17", "-O3", "--cuda-device-only", "-nogpuinc", "-nogpulib", "-Wno-unused-command-line-argument"]


def run(job, more):
    command = [job.compiler, *OPTIONS, f"--offload-arch={job.arch}", *job.options, *more, "-o", "-", str(job.source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[:4000])
    return done.stdout


def figures(assembly):
    """What the metadata of each kernel says."""
    # Lists of a kernel's own begin further to the right.
    for part in re.split(r"^  - (?=\.)", assembly[assembly.find("amdhsa.kernels:") :], flags=re.MULTILINE)[1:]:
        number = {key: int(value) for key, value in re.findall(r"^\s*\.(\w+):\s+(\d+)$", part, re.MULTILINE)}
        name = re.search(r"^\s*\.name:\s+(\w+)$", part, re.MULTILINE)[1]
        spilled = 4 * (number["vgpr_spill_count"] + number["sgpr_spill_count"])
        yield Figures(name, number["vgpr_count"], spilled, number["group_segment_fixed_size"])


def compiled(job):
    """Compiles a source, and looks at what the language's own operations became."""
    ir = run(job, ["-S", "-emit-llvm", "-Xclang", "-disable-llvm-passes"])
    fused = re.search(r"^.*(?:llvm\.fmuladd|llvm\.fma\.|\bcontract\b).*$", ir, re.MULTILINE)
    wrong = [f"{job.source}: a product and a sum may be fused: {fused[0].strip()}"] if fused else []
    return wrong, list(figures(run(job, ["-S"])))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="sources, and a file `options`")
    parser.add_argument("--clang", required=True, help="clang with AMD's processors among its targets")
    parser.add_argument("--arch", action="append", required=True, help="such as gfx942; once for each")
    parser.add_argument("--report", type=pathlib.Path, help="where a table of all kernels goes")
    asked = parser.parse_args()
    options = options_of(asked.folder)
    version = subprocess.run([asked.clang, "--version"], capture_output=True, text=True, check=True).stdout
    print(f"{version.splitlines()[0]}, options {' '.join(options)}")
    jobs = [Job(source, arch, options, asked.clang) for arch in asked.arch for source in sources_of(asked.folder)]
    finish(in_parallel(compiled, jobs), asked.arch, asked.report)


if __name__ == "__main__":
    main()
