"""What a block may assume, and the word that names an absent device.

A block of a document stands in a text: its reader has made `step` and `tokens` before, has a model below `~/models`, and
has the repository as the current folder. Everything that the tests add or change is in this file.
"""

import re

# Names that blocks use and do not make, with what makes them.
NAMES = {
    "yr": "import yirage as yr",
    "torch": "import torch",
    "batch_size": "batch_size = 8",
    "results": "results = {}",
    "profiler_tensor": "profiler_tensor = None",
    "step": "import torch; step = torch.tensor([0], dtype=torch.int32)",
    "tokens": "import torch; tokens = torch.zeros((1, 1024), dtype=torch.long)",
    "get_backend": "from sageLLM.backends import get_backend",
    "BackendType": "from sageLLM.backends import BackendType",
    "BackendRegistry": "from sageLLM.backends import BackendRegistry",
    "engine": "import infinicore; from infinilm import FusedInferEngine; "
    "engine = FusedInferEngine('~/models/TinyLlama', device=infinicore.device('cpu', 0))",
    "input_ids": "input_ids = [[1, 2, 3, 4]]",
    "pos": "pos = [[0, 1, 2, 3]]",
}

# Of what would take long, less. The first group stays.
SHORTER = [
    (r"(--duration )\d+", r"\g<1>0.2"),
    (r"(duration_seconds=)\d+", r"\g<1>0.2"),
    (r"(--iterations )\d+", r"\g<1>2"),
    (r"(range\()100(\))", r"\g<1>3\g<2>"),
    (r"(--seq-lengths )[\d ]+", r"\g<1>8 16 "),
    (r"(--hidden-sizes )[\d ]+", r"\g<1>64 96 "),
    (r"(torch\.randn\()1024, 1024", r"\g<1>64, 64"),
    (r"(multi_backend_benchmark\.py )", r"\g<1>--vocab-sizes 256 --hidden-sizes 64 --seq-lengths 8 "),
    (r"(yirage_backend_manager\.py test \w+)", r"\g<1> --quick"),
]

# What stands for arguments that a reader has.
LITERAL = [(r"(\w\()\.\.\.(\))", r"\1\2")]

# Where other projects are installed from: the folder that has their names here.
FOLDERS = [(r"/path/to/Infini/Infini(Core|LM)", "python/compat")]

# The words that name a device which may be absent, and the same with the processor.
DEVICES = [
    (r"(['\"])(cuda|mps)\1", r"\1cpu\1"),
    (r"BackendType\.CUDA", "BackendType.CPU"),
    (r"\b(set|test) (cuda|mps)\b", r"\1 cpu"),
    (r"--backend cuda", "--backend cpu"),
    (r"--(nvidia|metax|moore|iluvatar|cambricon)\b", "--cpu"),
    (r"YIRAGE_BACKEND=(cuda|mps)", "YIRAGE_BACKEND=cpu"),
]

# What says that a device is absent: the class of the exception, and the words of programs.
PYTHON_REFUSALS = ("BackendUnavailableError",)
COMMAND_REFUSALS = ("unavailable", "is not available", "has no device here")


def changed(source, rules):
    for wanted, instead in rules:
        source = re.sub(wanted, instead, source)
    return source


def shorter(source):
    """The same in little time, with the folders that are here and without what is left to the reader."""
    return changed(changed(changed(source, SHORTER), FOLDERS), LITERAL)


def on_the_processor(source):
    """The same with the processor for each absent device."""
    return changed(source, DEVICES)


def before(source):
    """The lines that make the names which a block of Python uses before it makes them."""
    import ast
    import builtins

    known, wanted = set(vars(builtins)), []
    for statement in ast.parse(source).body:
        names = [node for node in ast.walk(statement) if isinstance(node, ast.Name)]
        local = {node.id for node in names if isinstance(node.ctx, ast.Store)}
        local |= {node.arg for node in ast.walk(statement) if isinstance(node, ast.arg)}
        inside = isinstance(statement, (ast.FunctionDef, ast.For, ast.With))
        loaded = [node.id for node in names if isinstance(node.ctx, ast.Load)]
        targets = {name for name in local if inside}
        wanted += [name for name in loaded if name not in known | targets and name not in wanted]
        known |= local
        for node in ast.walk(statement):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                known |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                known.add(node.name)
    return [NAMES[name] for name in wanted if name in NAMES]
