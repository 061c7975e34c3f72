"""Layer methods alone: a kernel in test mode, and formulas in float64."""

import numpy as np

ROWS = 7
GRIDS = [(1, 1, 1), (2, 1, 1), (4, 2, 1)]


class Bench:
    """A kernel in test mode, and random tensors of it."""

    def __init__(self, yr, **options):
        self.kernel = yr.PersistentKernel(test_mode=True, precision="exact", max_seq_length=64, **options)
        self.rng = np.random.default_rng(17)

    def given(self, name, *sizes):
        values = self.rng.standard_normal(sizes).astype(np.float32)
        return self.kernel.attach_input(values, name), values.astype(np.float64)

    def new(self, name, *sizes, dtype="float32"):
        return self.kernel.new_tensor((ROWS, *sizes), dtype=dtype, name=name)

    def out(self):
        return self.kernel.run_test_mode()["out"].numpy()


def norm(x, w):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * w


def silu(x):
    return x / (1 + np.exp(-x))


def close(got, wanted, what):
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4, err_msg=str(what))
