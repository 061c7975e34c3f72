"""The hardware interface by sageLLM's names; `python/compat` has to be installed or on PYTHONPATH."""

import unittest

from sageLLM.backends import (
    BackendRegistry,
    BackendType,
    DeviceInfo,
    HardwareBackend,
    KernelCapabilities,
    get_backend,
    list_available_backends,
)


class TestRegistry(unittest.TestCase):
    def test_what_is_listed_is_there(self):
        listed = BackendRegistry.list_available()
        self.assertIn(BackendType.CPU, listed)
        for kind in listed:
            self.assertIsInstance(BackendRegistry.get(kind), HardwareBackend)
        self.assertIn("cpu", list_available_backends())

    def test_what_is_absent_is_none_and_no_error(self):
        for kind in [BackendType.ASCEND, BackendType.CAMBRICON, BackendType.HYGON]:
            if kind not in BackendRegistry.list_available():
                self.assertIsNone(BackendRegistry.get(kind))
                with self.assertRaises(RuntimeError):
                    get_backend(kind)

    def test_devices_are_discovered(self):
        devices = BackendRegistry.discover()
        self.assertIn(BackendType.CPU, [device.backend for device in devices])
        self.assertTrue(all(isinstance(device, DeviceInfo) for device in devices))


class TestDevice(unittest.TestCase):
    def setUp(self):
        self.backend = get_backend()

    def test_facts(self):
        info = self.backend.get_device_info()
        self.assertTrue(info.name)
        self.assertIsInstance(self.backend.get_capabilities(), KernelCapabilities)
        self.assertTrue(self.backend.get_capabilities().supports_fp32)
        self.assertGreaterEqual(self.backend.get_device_count(), 1)

    def test_the_older_call_by_a_name(self):
        self.assertEqual(get_backend("cpu").value, "cpu")
        with self.assertRaises(ValueError):
            get_backend("invalid")

    def test_tensors_go_in_and_come_out(self):
        tensor = self.backend.allocate_tensor((2, 3), "float32")
        there = self.backend.copy_to_device(tensor)
        self.assertEqual(self.backend.copy_to_host(there).tolist(), [[0.0] * 3] * 2)
        self.backend.synchronize()


if __name__ == "__main__":
    unittest.main()
