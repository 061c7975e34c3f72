"""Ctrl-C ends long calls that no generation is."""

import pytest

BACKENDS = "yr.benchmark_backends(duration_seconds=100_000)"
NAMED = "yr.benchmark_backends(100_000, ['cpu', 'cpu'])"


@pytest.mark.parametrize("call", [BACKENDS, NAMED])
def test_ctrl_c_ends_a_benchmark_of_backends(python, call):
    ran = python(f"""
import yirage as yr, os, signal, threading
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    {call}
except KeyboardInterrupt:
    print("ended", yr.new_kernel_graph().backend)
""")
    assert ran.returncode == 0 and ran.stdout.startswith("ended "), ran.stderr
