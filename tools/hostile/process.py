"""Runs a program under limits and says how it ended."""
import os
import signal
import subprocess
import time
from dataclasses import dataclass


@dataclass
class Ran:
    """How a program ended: its exit code, or minus the signal that ended it."""
    code: int
    out: bytes
    err: bytes
    seconds: float
    processor_seconds: float
    peak_bytes: int
    late: bool


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


def run(command, folder, env, stdin, wall, during=None):
    """Runs `command` in `folder` for at most `wall` seconds; its output goes through files beside the folder."""
    out_path, err_path, in_path = (folder.parent / (folder.name + end) for end in (".out", ".err", ".in"))
    in_path.write_bytes(stdin)
    started = time.monotonic()
    with open(in_path, "rb") as i, open(out_path, "wb") as o, open(err_path, "wb") as e:
        child = subprocess.Popen(command, cwd=folder, env=env, stdin=i, stdout=o, stderr=e, start_new_session=True)
    if during:
        during(folder, Running(child.pid, out_path))
    late, status, usage = wait(child.pid, started + wall)
    child.returncode = status  # It has been waited for.
    code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)
    out, err = (head(path) for path in (out_path, err_path))
    for path in (in_path, out_path, err_path):
        path.unlink()
    busy = usage.ru_utime + usage.ru_stime
    return Ran(code, out, err, time.monotonic() - started, busy, usage.ru_maxrss * 1024, late)


def wait(pid, end):
    """(whether it had to be killed, status, resource usage)"""
    pause = 0.001
    while True:
        done, status, usage = os.wait4(pid, os.WNOHANG)
        if done:
            return False, status, usage
        if time.monotonic() > end:
            os.killpg(pid, signal.SIGKILL)
            _, status, usage = os.wait4(pid, 0)
            return True, status, usage
        time.sleep(pause)
        pause = min(pause * 1.5, 0.02)


def head(path, limit=4 << 20):
    with open(path, "rb") as file:
        return file.read(limit)
