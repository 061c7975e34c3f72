"""A system whose time of day jumps years ahead and back at every look: nothing that waits or is kept depends on it."""

import os
import subprocess

from server import Server

# Only the time of day jumps; what durations are measured with is another clock.
JUMPS = r"""
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *now) {
    static unsigned looks;
    long failed = syscall(SYS_clock_gettime, clock, now);
    if (!failed && clock == CLOCK_REALTIME) {
        /* Ahead or back as if by chance: a request looks so and so often, and is not to find the same side each time. */
        unsigned mixed = __atomic_add_fetch(&looks, 1, __ATOMIC_RELAXED) * 2654435761u;
        now->tv_sec += (mixed >> 16 & 1 ? 10 : -10) * 31556952L;
    }
    return failed ? -1 : 0;
}
"""


def jumps(program, models, work):
    """What a server says under such a clock is what it says elsewhere."""
    library = work / "clock.so"
    words = [os.environ.get("CC", "cc"), "-shared", "-fPIC", "-O1", "-x", "c", "-", "-o", library]
    subprocess.run(list(map(str, words)), input=JUMPS.encode(), check=True)
    more = ["--request-time", "300", "--idle-unload", "300", "--stuck-after", "300"]
    said = []
    for preload in [None, str(library)]:
        with Server(program, {"story": models["story"]}, work, *more, preload=preload) as server:
            body = {"model": "story", "prompt": "a", "max_tokens": 24, "seed": 3}
            texts = [server.ask("/v1/completions", body)["choices"][0]["text"] for _ in range(3)]
            created = [server.ask("/v1/completions", body)["created"] for _ in range(16)]
            kept = server.ask("/v1/responses", {"model": "story", "input": "a", "max_output_tokens": 8})
            assert server.ask(f"/v1/responses/{kept['id']}")["id"] == kept["id"]
            assert server.ask("/health/progress")["status"] == "ok"
            assert server.ask("/v1/models")["data"][0]["status"]["value"] == "loaded"
            server.settled()
        assert server.code == 0, f"exit code {server.code}"
        said.append((texts, max(created) - min(created)))
    (plain, steady), (jumped, leap) = said
    assert plain == jumped, said
    assert steady < 3600 and leap > 10 * 31556952, f"the clock did not jump: {said}"
    return f"{len(jumped)} answers, {leap // 31556952} years apart"
