"""Runs a program under limits and says how it ended."""
import contextlib
import os
import signal
import subprocess
import time
from dataclasses import dataclass

ALIVE = set()
TICKS, PAGE = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")


@dataclass
class Limits:
    """What a run may take."""
    wall: float
    memory_bytes: int


@dataclass
class Ran:
    """How a program ended: its exit code, or minus the signal that ended it."""
    code: int
    out: bytes
    err: bytes
    seconds: float
    peak_bytes: int
    # Why it was killed; empty where it ended by itself.
    killed: str


@dataclass
class Running:
    """A program that runs, for those who disturb it."""
    pid: int
    out: object

    def wait_for_output(self, seconds=5.0):
        """Waits until it has said something; whether it has."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.out.stat().st_size:
                return True
            time.sleep(0.002)
        return False


def run(command, folder, env, stdin, limits, during=None):
    """Runs `command` in `folder` under `limits`; its output goes through files beside the folder."""
    out_path, err_path, in_path = (folder.parent / (folder.name + end) for end in (".out", ".err", ".in"))
    in_path.write_bytes(stdin)
    started = time.monotonic()
    with open(in_path, "rb") as i, open(out_path, "wb") as o, open(err_path, "wb") as e:
        child = subprocess.Popen(command, cwd=folder, env=env, stdin=i, stdout=o, stderr=e, start_new_session=True)
    ALIVE.add(child.pid)
    try:
        if during:
            during(folder, Running(child.pid, out_path))
        killed, status, usage = wait(child.pid, started, limits)
    finally:
        ALIVE.discard(child.pid)
    child.returncode = status  # It has been waited for.
    code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)
    out, err = (head(path) for path in (out_path, err_path))
    for path in (in_path, out_path, err_path):
        path.unlink()
    return Ran(code, out, err, time.monotonic() - started, usage.ru_maxrss * 1024, killed)


def wait(pid, started, limits):
    """(why it had to be killed or "", status, resource usage)"""
    pause = 0.001
    while True:
        done, status, usage = os.wait4(pid, os.WNOHANG)
        if done:
            return "", status, usage
        reason = excess(pid, time.monotonic() - started, limits)
        if reason:
            os.killpg(pid, signal.SIGKILL)
            _, status, usage = os.wait4(pid, 0)
            return reason, status, usage
        time.sleep(pause)
        pause = min(pause * 1.5, 0.02)


def excess(pid, seconds, limits):
    """Why a program has to be killed now. On a busy machine time passes without the program: then it gets more."""
    busy, held = taken(pid)
    if held > 1.5 * limits.memory_bytes:
        return f"memory: {held >> 20} MiB and growing"
    if seconds > 3 * limits.wall or seconds > limits.wall and busy > 0.8 * limits.wall:
        return f"hang: {seconds:.1f} s, {busy:.1f} s of them computing"
    return ""


def taken(pid):
    """(processor seconds, bytes in memory) of a process and those that it started."""
    busy, held = 0.0, 0
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            others = file.read().split()
        for one in [pid, *others]:
            with open(f"/proc/{one}/stat") as file:
                fields = file.read().rsplit(")", 1)[1].split()
            busy += (int(fields[11]) + int(fields[12])) / TICKS
            held += int(fields[21]) * PAGE
    except (OSError, IndexError):
        pass  # One of them has just ended.
    return busy, held


def kill_all():
    """Ends whatever still runs: the trial was interrupted."""
    for pid in list(ALIVE):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)


def head(path, limit=4 << 20):
    with open(path, "rb") as file:
        return file.read(limit)
