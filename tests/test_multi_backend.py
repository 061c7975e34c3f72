#!/usr/bin/env python3
"""Backends as their documents promise them: a short test that needs the package alone. `run_tests()` gives whether all hold."""

import sys
import unittest

try:
    import yirage as yr
except ModuleNotFoundError as missing:
    if missing.name != "yirage":
        raise
    sys.exit("test_multi_backend.py: the package yirage is not installed: run `pip install .` in the folder of its repository")


class TestBackends(unittest.TestCase):
    def setUp(self):
        yr.reset_backend()
        self.addCleanup(yr.reset_backend)

    def test_the_processor_is_there(self):
        self.assertIn("cpu", [backend.value for backend in yr.get_available_backends()])
        self.assertTrue(yr.is_backend_available("cpu"))
        self.assertFalse(yr.is_backend_available("invalid"))

    def test_each_available_backend_can_be_chosen(self):
        for backend in yr.get_available_backends():
            yr.set_backend(backend.value)
            self.assertEqual(yr.get_backend().value, backend.value)
        with self.assertRaises(ValueError):
            yr.set_backend("invalid")

    def test_auto_is_one_of_them(self):
        yr.set_backend("auto")
        self.assertIn(yr.get_backend().value, [backend.value for backend in yr.get_available_backends()])

    def test_a_graph_computes_on_each(self):
        numbers = memoryview(bytearray(16)).cast("f")
        for at, value in enumerate([-1.0, 0.0, 2.0, 3.0]):
            numbers[at] = value
        for backend in yr.list_available_backends():
            graph = yr.new_kernel_graph(backend=backend)
            graph.mark_output(graph.relu(graph.new_input([4], dtype=yr.float32)))
            (result,) = graph(inputs=[numbers])
            self.assertEqual(result.tolist(), [0.0, 0.0, 2.0, 3.0])

    def test_settings_follow_from_the_machine(self):
        config = yr.auto_configure_backend()
        self.assertIn(config["backend"], yr.list_available_backends())
        self.assertGreaterEqual(config["num_workers"], 1)


def run_tests():
    """Runs them, and gives whether all hold."""
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(TestBackends)
    return unittest.TextTestRunner(stream=sys.stdout, verbosity=1).run(suite).wasSuccessful()


if __name__ == "__main__":
    sys.exit(0 if run_tests() else 1)
