"""What the compilers of several languages are asked and answer alike: jobs, figures of kernels, tables."""

import collections
import concurrent.futures
import dataclasses
import os
import pathlib
import sys


@dataclasses.dataclass(frozen=True)
class Job:
    """A source to be compiled for an architecture."""

    source: pathlib.Path
    arch: str
    options: tuple
    compiler: str = ""


@dataclasses.dataclass(frozen=True)
class Figures:
    """What a kernel takes: registers of a thread, bytes spilled, bytes that a group shares."""

    kernel: str
    registers: int
    spilled: int
    shared: int

    @property
    def family(self):
        """The kernel's name without the hash of its text."""
        return self.kernel.rpartition("_")[0] or self.kernel


def options_of(folder):
    """What a language's compiler is told."""
    return tuple((folder / "options").read_text().split())


def sources_of(folder):
    """The sources of a language."""
    return sorted(folder.glob("*.cpp")) or sys.exit(f"no sources in {folder}")


def in_parallel(task, jobs):
    """Does all jobs on all cores: (job, what is wrong, figures) of each."""

    def done(job, future):
        try:
            return job, *future.result()
        except RuntimeError as e:
            return job, [f"{job.source} for {job.arch}:\n{e}"], []

    with concurrent.futures.ProcessPoolExecutor(os.cpu_count()) as pool:
        futures = [(job, pool.submit(task, job)) for job in jobs]
        return [done(job, future) for job, future in futures]


def finish(results, archs, report, may_spill=True):
    """Prints a line an architecture, writes all figures where they are wanted, and ends with an error where one was."""
    wrong = [line for _, lines, _ in results for line in lines]
    figures = collections.defaultdict(list)
    for job, _, of_job in results:
        figures[job.arch].extend(of_job)
    for arch in archs:
        kernels = figures[arch]
        spilling = [kernel for kernel in kernels if kernel.spilled]
        if not may_spill:
            wrong.extend(f"{kernel.kernel} for {arch}: {kernel.spilled} bytes spilled" for kernel in spilling)
        most = max(kernels, key=lambda kernel: kernel.registers, default=None)
        worst = f", most registers {most.registers} ({most.family})" if most else ""
        print(f"{arch}: {len(kernels)} kernels{worst}, {len(spilling)} spill")
    if report:
        report.write_text(table(figures, archs))
    for line in wrong:
        print(line, file=sys.stderr)
    sys.exit(bool(wrong))


def table(figures, archs):
    """Of each family of kernels: how many, most registers, bytes spilled and shared on each architecture."""
    families = collections.defaultdict(dict)
    for arch in archs:
        for kernel in figures[arch]:
            families[kernel.family].setdefault(arch, []).append(kernel)
    lines = ["| kernels | number | " + " | ".join(f"{arch}: registers, spilled, shared" for arch in archs) + " |"]
    lines.append("|---|---|" + "---|" * len(archs))
    for family, by_arch in sorted(families.items()):
        cells = []
        for arch in archs:
            of_arch = by_arch.get(arch, [])
            most = [max((getattr(kernel, what) for kernel in of_arch), default=0) for what in ("registers", "spilled", "shared")]
            cells.append(", ".join(map(str, most)))
        count = max(len(kernels) for kernels in by_arch.values())
        lines.append(f"| `{family}` | {count} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"
