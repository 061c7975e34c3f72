"""Backends: selection, facts, advice, the registry, and the environment."""

import logging
import math
import struct

import pytest


def test_the_processor_is_there_and_members_are_texts(yr):
    backends = yr.get_available_backends()
    assert yr.BackendType.CPU in backends
    assert "cpu" in [b.value for b in backends]
    assert yr.BackendType.CPU == "cpu" and str(yr.BackendType.CPU) == "cpu"
    for backend in backends:
        assert yr.is_backend_available(backend) and yr.is_backend_available(backend.value)
    assert "cpu" in yr.list_available_backends()


@pytest.mark.parametrize(
    ("alias", "name"),
    [("nvidia", "CUDA"), ("maca", "METAX"), ("musa", "MOORE"), ("npu", "ASCEND"), ("mlu", "CAMBRICON"),
     ("dcu", "HYGON"), ("corex", "ILUVATAR"), ("metal", "MPS")],
)  # fmt: skip
def test_aliases_are_members(yr, alias, name):
    assert yr.BackendType(alias) is yr.BackendType[name]


def test_what_is_set_holds_and_a_failure_changes_nothing(yr):
    yr.set_backend("cpu")
    assert yr.get_backend().value == "cpu"
    for wrong, error in [("cuda", yr.BackendUnavailableError), ("nonsense", yr.UnknownBackendError)]:
        if yr.is_backend_available(wrong):
            pytest.skip(f"{wrong} is available here")
        with pytest.raises(error) as raised:
            yr.set_backend(wrong)
        assert "cpu" in str(raised.value), "the message lists what there is"
        assert yr.get_backend().value == "cpu"
    with pytest.raises(ValueError):
        yr.set_backend("nonsense")
    yr.set_backend("auto")
    assert yr.get_backend().value in [b.value for b in yr.get_available_backends()]
    yr.reset_backend()
    assert yr.get_default_backend() == yr.get_backend().value


def test_nonsense_is_not_available(yr):
    for nonsense in ["nonsense", "", 3, None, object()]:
        assert yr.is_backend_available(nonsense) is False


def test_unknown_options_are_errors(yr):
    with pytest.raises(TypeError):
        yr.set_backend("cpu", colour="red")
    with pytest.raises(yr.OptionError):
        yr.set_backend("cpu", threads=0)


def test_memory_is_what_the_system_says(yr):
    memory = yr.get_memory_info("cpu")["cpu"]
    assert 0 < memory["available_gb"] <= memory["total_gb"]
    assert memory["used_gb"] == pytest.approx(memory["total_gb"] - memory["available_gb"])
    with open("/proc/meminfo") as lines:
        total = next(int(line.split()[1]) for line in lines if line.startswith("MemTotal")) * 1024 / 2**30
    assert memory["total_gb"] <= total * 1.05
    with pytest.raises(yr.UnknownBackendError):
        yr.get_memory_info("nonsense")


def test_facts_of_the_processor(yr):
    info = yr.get_backend_info()
    assert info["backend"] == "cpu" and info["device_count"] == 1
    backend = yr.get_backend("cpu")
    assert isinstance(backend, yr.HardwareBackend)
    device = backend.get_device_info()
    fields = {
        "backend", "device_id", "name", "compute_capability", "total_memory_gb", "free_memory_gb", "num_cores",
        "driver_version", "sdk_version", "properties",
    }  # fmt: skip
    assert fields == set(vars(device)) and device.backend is yr.BackendType.CPU
    capabilities = vars(backend.get_capabilities())
    assert len(capabilities) == 12 and all(isinstance(flag, bool) for flag in capabilities.values())
    assert capabilities["supports_fp32"]
    assert backend.backend_type() is yr.BackendType.CPU and backend.get_device() == "cpu"
    assert backend.get_device_count() == 1 and backend.is_available()
    stats = backend.memory_stats()
    assert set(stats) == {"total_gb", "used_gb", "free_gb"} and stats["free_gb"] <= stats["total_gb"]
    backend.synchronize()
    backend.empty_cache()
    assert backend.current_device() == 0
    with pytest.raises(yr.DeviceError):
        backend.set_device(7)


def test_tensors_of_a_backend_come_back_bit_by_bit(yr):
    backend = yr.get_backend("cpu")
    zeros = backend.allocate_tensor([2, 3])
    assert zeros.tolist() == [[0.0] * 3] * 2 and zeros.dtype == "float32"
    data = memoryview(bytearray(range(24))).cast("f", [2, 3])
    there = backend.copy_to_device(data)
    back = backend.copy_to_host(there)
    assert bytes(memoryview(back).cast("B")) == bytes(range(24))
    assert there.data_ptr() != back.data_ptr()


def test_advice_names_its_backend_and_is_saved_and_loaded(yr, tmp_path):
    config = yr.auto_configure_backend()
    assert config["backend"] in yr.list_available_backends()
    assert config["num_workers"] >= 1 and config["num_local_schedulers"] >= 1
    optimizer = yr.BackendOptimizer()
    optimizer.print_system_info()
    file = tmp_path / "config.json"
    optimizer.save_config(file, backend="cpu")
    assert optimizer.load_config(file) == yr.auto_configure_backend("cpu")
    file.write_text('{"backend": "cpu", "of_others": [1]}')
    assert optimizer.load_config(str(file))["of_others"] == [1]
    for wrong in ["[]", "{", '{"backend": "nonsense"}', "{}"]:
        file.write_text(wrong)
        with pytest.raises(yr.OptionError, match="config.json"):
            optimizer.load_config(file)


def test_benchmarks_have_a_time_for_each_backend_and_go_on(yr):
    results = yr.benchmark_backends(duration_seconds=0.2)
    assert set(results) == set(yr.list_available_backends())
    assert all(math.isfinite(time) and time > 0 for time in results.values())
    assert {row["op"] for row in results.details["cpu"]} >= {"linear", "contract", "attention"}
    mixed = yr.benchmark_backends(duration_seconds=0.1, backends=["nonsense", "cpu"])
    assert "nonsense" in mixed.errors and mixed["cpu"] > 0
    with pytest.raises(yr.OptionError):
        yr.benchmark_backends(duration_seconds=-1)


def fake(yr, kind, available=True):
    class Fake(yr.HardwareBackend):
        def backend_type(self):
            return kind

        def is_available(self):
            return available

        def get_device_count(self):
            return 1

        def get_device_info(self, device_id=0):
            return yr.DeviceInfo(kind, device_id, "Fake")

        def get_capabilities(self, device_id=0):
            return yr.KernelCapabilities()

        def get_device(self, device_id=0):
            return "fake"

        def synchronize(self, device_id=None):
            pass

        def memory_stats(self, device_id=0):
            return {"total_gb": 1.0, "used_gb": 0.0, "free_gb": 1.0}

        def empty_cache(self, device_id=None):
            pass

    return Fake


def test_the_registry_takes_classes_of_python(yr):
    registry = yr.BackendRegistry
    kind = yr.BackendType.ASCEND
    before = registry.list_available()
    assert registry.get(kind) is None or kind in before
    Fake = registry.register(kind)(fake(yr, kind))
    assert kind in registry.list_available() and isinstance(registry.get(kind), Fake)
    assert isinstance(registry.get_default(), Fake) or registry.get_default().value == "cuda"
    assert "Fake" in [device.name for device in registry.discover()]
    registry.set_default(kind)
    assert yr.get_backend().value == "ascend"
    graph = yr.new_kernel_graph()
    x = graph.new_input([1], dtype="float32")
    graph.mark_output(graph.exp(x))
    with pytest.raises(yr.Unsupported, match="class of Python"):
        graph(inputs=[memoryview(bytearray(4)).cast("f")])
    registry.reset()
    assert registry.list_available() == before


def test_a_class_that_is_absent_or_raises_is_not_there(yr):
    registry = yr.BackendRegistry
    registry.register("quantum")(fake(yr, "quantum", available=False))
    assert registry.get("quantum") is None and "quantum" not in yr.list_available_backends()
    with pytest.raises(yr.BackendUnavailableError, match="quantum"):
        yr.set_backend("quantum")
    with pytest.raises(TypeError):
        registry.register("cpu")(object)


def test_a_program_switches_between_backends(yr):
    """The accelerator in software opens by its name alone. Its memory is at addresses that mean nothing to the host."""
    numbers = memoryview(bytearray(struct.pack("6f", *(0.25 * i - 1 for i in range(6))))).cast("B").cast("f", [2, 3])

    def computed(graph):
        return bytes(memoryview(graph(inputs=[numbers])[0]).cast("B"))

    def made(backend=None):
        graph = yr.new_kernel_graph(backend)
        x = graph.new_input([2, 3], dtype="float32")
        graph.mark_output(graph.reduction(graph.add(graph.mul(x, x), x), 1))
        return graph

    stays = made("cpu")
    results = []
    try:
        for name in ["cpu", "sim", "cpu", "sim"]:
            yr.set_backend(name)
            graph = made()
            assert yr.get_backend().value == name and graph.backend == name
            results += [computed(graph), computed(stays)]
    finally:
        yr.reset_backend()
    assert stays.backend == "cpu" and len(set(results)) == 1
    assert struct.unpack("2f", results[0]) == (-0.4375, 0.125)


ASKED = "import yirage as yr; print(yr.get_backend().value)"


def test_the_environment_names_a_backend(yr, python):
    ran = python(ASKED, YIRAGE_BACKEND="cpu")
    assert ran.stdout == "cpu\n" and ran.stderr == ""
    wrong = python(ASKED, YIRAGE_BACKEND="nonsense")
    assert wrong.returncode == 0 and "nonsense" in wrong.stderr and "auto" in wrong.stderr
    if not yr.is_backend_available("ascend"):
        absent = python(ASKED, YIRAGE_BACKEND="ascend")
        assert absent.returncode != 0 and "BackendUnavailableError" in absent.stderr
        assert python("import yirage", YIRAGE_BACKEND="ascend").returncode == 0, "the import raises nothing"


def test_the_environment_sets_the_level_of_logs_also_after_the_import(python):
    opened = """
import os, yirage as yr
os.environ.update(LEVEL)
g = yr.new_kernel_graph(); x = g.new_input([1], dtype="float32"); g.mark_output(g.exp(x))
g(inputs=[memoryview(bytearray(4)).cast("f")])
"""
    assert "opened cpu" in python(opened.replace("LEVEL", "{}"), YIRAGE_LOG_LEVEL="DEBUG").stderr
    assert "opened cpu" in python(opened.replace("LEVEL", "{'YIRAGE_LOG_LEVEL': 'DEBUG'}")).stderr
    assert python(opened.replace("LEVEL", "{}")).stderr == ""
    assert "no level" in python(opened.replace("LEVEL", "{}"), YIRAGE_LOG_LEVEL="loud").stderr


def test_omp_num_threads_is_the_number_of_threads(python):
    asked = "import yirage as yr; print(yr.get_backend('cpu').get_device_info().properties['threads'])"
    assert python(asked, OMP_NUM_THREADS="1").stdout == "1\n"


def test_pythons_that_cannot_be_are_refused(python):
    free = python("import sys; sys.version = '3.14.0 free-threading build'; import yirage")
    assert "ImportError: yirage does not support free-threaded Python" in free.stderr
    other = python("""
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
import yirage
made = interpreters.create()
print(interpreters.run_string(made, "import sys, yirage"))
""")
    assert "imported in another interpreter of this process" in other.stdout + other.stderr, other


def test_the_import_is_quick_and_brings_no_library(python):
    code = "import sys, yirage; print('numpy' in sys.modules, 'torch' in sys.modules, 'asyncio' in sys.modules)"
    assert python(code).stdout.startswith("False False")


def test_the_settings_of_mirage_do_what_they_can_mean(yr, caplog):
    yr.set_gpu_device_id(0)
    yr.global_config.gpu_device_id = 0
    assert yr.global_config.gpu_device_id == 0
    with pytest.raises(yr.DeviceError, match="device_id 7"):
        yr.set_gpu_device_id(7)
    for backend in [yr.set_gpu_device_id, yr.get_backend().get_device_info, yr.get_backend().synchronize]:
        with pytest.raises(yr.DeviceError, match="-1 is given"):
            backend(-1)
    logger = logging.getLogger("yirage")
    level = logger.level
    try:
        for verbose in [True, False]:
            yr.global_config.verbose = verbose
            assert yr.global_config.verbose == verbose == logger.isEnabledFor(logging.INFO)
        yr.global_config.verbose = True
        yr.global_config.bypass_compile_errors = True
    finally:
        logger.setLevel(level)
    assert not yr.global_config.bypass_compile_errors
    assert "bypass_compile_errors=True changes nothing" in caplog.text
    with pytest.raises(AttributeError):
        yr.global_config.colour = 1
