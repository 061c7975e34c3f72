"""Where ranks run: two network namespaces, a link between them that delays, loses, and can be cut, and their processes.

Each namespace has a TUN device; one thread carries the packets of one to the other. So no module of the kernel for
delay and loss (`tc netem`) is needed, which many machines lack, and a cut takes effect between two packets. The thread
knows neither bandwidth nor reordering: packets come late or never, in their order.
"""

import ctypes
import fcntl
import heapq
import os
import random
import re
import select
import signal
import struct
import subprocess
import threading
import time
from pathlib import Path

NAMES = ("yirage-a", "yirage-b")
ADDRESSES = ("10.77.0.1", "10.77.0.2")
SUBNET = "10.77.0.0/24"
# What the environment of every process of a schedule has, by which those that are left are found.
MARK = "RANKS_SCHEDULE"

# Starts mpirun's other half "on a host": in the namespace that has its address, under a name of its own.
AGENT = f"""#!/bin/sh
case $1 in {ADDRESSES[0]}) name={NAMES[0]};; {ADDRESSES[1]}) name={NAMES[1]};; *) exit 1;; esac
shift
exec ip netns exec $name unshare --uts sh -c "hostname $name; $*"
"""

CLONE_NEWNS, CLONE_NEWNET = 0x00020000, 0x40000000
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
LARGEST_PACKET = 65536

libc = ctypes.CDLL(None, use_errno=True)


def checked(result: int, what: str) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


def command(*words: str) -> None:
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def leave_the_mounts_of_others() -> None:
    """Gives this process and all that it starts a /dev/shm and a list of namespaces of their own.

    What others on this machine do in /dev/shm is then no concern of the check, and the kernel itself removes both once
    the last process is gone, however this one ends. Before any thread: it changes only the thread that calls it.
    """
    checked(libc.unshare(CLONE_NEWNS), "unshare")
    command("mount", "--make-rprivate", "/")
    Path("/run/netns").mkdir(parents=True, exist_ok=True)
    for folder in ("/dev/shm", "/run/netns"):
        command("mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", folder)


def tun_in(namespace: str, device: str) -> int:
    """A TUN device inside a namespace, as a file descriptor that works from outside too."""
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    there = os.open(f"/run/netns/{namespace}", os.O_RDONLY)
    try:
        checked(libc.setns(there, CLONE_NEWNET), "setns")
        tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", device.encode(), IFF_TUN | IFF_NO_PI))
        return tun
    finally:
        checked(libc.setns(home, CLONE_NEWNET), "setns")
        os.close(home)
        os.close(there)


def marked(mark: str) -> list[int]:
    """The processes that run with this mark, or one that begins with it, in their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            # A process that has ended has an environment no more.
            if f"{MARK}={mark}".encode() in (folder / "environ").read_bytes() and int(folder.name) != os.getpid():
                found.append(int(folder.name))
        except OSError:
            continue
    return sorted(found)


def ranks_of(program: str, mark: str) -> dict[int, int]:
    """The processes with this mark that run the program itself, by their ranks; rank 0 started first."""
    found = {}
    for process in marked(mark):
        try:
            if os.readlink(f"/proc/{process}/exe") != program:
                continue
            environ = Path(f"/proc/{process}/environ").read_bytes()
        except OSError:
            continue
        number = re.search(rb"\0OMPI_COMM_WORLD_RANK=(\d+)", b"\0" + environ)
        found[int(number[1]) if number else len(found)] = process
    return found


def state(process: int) -> str:
    """The letter for what a process does; an empty text when it is no more."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0].strip("ZX")
    except (OSError, IndexError):
        return ""


def about(process: int) -> str:
    try:
        words = Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        words = ""
    return f"{process} ({state(process) or 'gone'}) {words[:100]}"


def end_all(mark: str) -> None:
    for _ in range(100):
        left = marked(mark)
        if not left:
            return
        for process in left:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.02)


class Link:
    """The namespaces and what carries packets between them; use it in a `with`."""

    def __init__(self, seed: int) -> None:
        self.delay = 0.0
        self.loss = 0.0
        self.cut = False
        self.carried = 0
        self.lost = 0
        self._chance = random.Random(seed)
        self._ended = False
        self._tuns: list[int] = []
        self._thread = threading.Thread(target=self._carry, daemon=True)

    def __enter__(self) -> "Link":
        try:
            for name, address in zip(NAMES, ADDRESSES):
                command("ip", "netns", "add", name)
                self._tuns.append(tun_in(name, "yirage"))
                command("ip", "-n", name, "address", "add", f"{address}/24", "dev", "yirage")
                for device in ("lo", "yirage"):
                    command("ip", "-n", name, "link", "set", device, "up")
        except BaseException:
            self._remove()
            raise
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended = True
        self._thread.join()
        self._remove()

    def _remove(self) -> None:
        for tun in self._tuns:
            os.close(tun)
        for name in NAMES:
            subprocess.run(["ip", "netns", "delete", name], stderr=subprocess.DEVNULL, check=False)

    def be(self, delay: float, loss: float) -> None:
        """The link as a schedule wants it, whole again and with nothing of an earlier one under way for long."""
        self.delay, self.loss, self.cut, self.carried, self.lost = delay, loss, False, 0, 0

    def _carry(self) -> None:
        # Packets under way: when they come, a number that keeps their order, to which device, and what they are.
        way: list[tuple[float, int, int, bytes]] = []
        number = 0
        while not self._ended:
            pause = min(0.1, max(0.0, way[0][0] - time.monotonic())) if way else 0.1
            for tun in select.select(self._tuns, [], [], pause)[0]:
                number += 1
                self._take(tun, number, way)
            while way and way[0][0] <= time.monotonic():
                _, _, to, packet = heapq.heappop(way)
                self._give(to, packet)

    def _take(self, tun: int, number: int, way: list[tuple[float, int, int, bytes]]) -> None:
        packet = os.read(tun, LARGEST_PACKET)
        if self.cut or self._chance.random() < self.loss:
            self.lost += 1
            return
        to = self._tuns[1 - self._tuns.index(tun)]
        heapq.heappush(way, (time.monotonic() + self.delay, number, to, packet))

    def _give(self, to: int, packet: bytes) -> None:
        if self.cut:
            self.lost += 1
            return
        try:
            os.write(to, packet)
            self.carried += 1
        except OSError:
            # A full queue or a packet that the kernel does not like is one more that is lost.
            self.lost += 1
