"""The models that clients are served: the small one of the tests with a chat template, the same with weights at random and
with tokens to fill in between, and an encoder of each kind. Written from the descriptions of GGUF and safetensors alone."""

import json
import math
import random
import struct
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
FIXTURES = REPOSITORY / "crates/yirage-testkit/fixtures"

# Like those of models that think and call tools (Hermes' form of calls).
TEMPLATE = (
    "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
    "{% if tools %}tools <tool_call> {{ tools | tojson }}{% endif %}"
    "{% if enable_thinking %}<think>{% endif %}"
    "{% if add_generation_prompt %}assistant:{% endif %}{# </think> #}"
)

STRING, ARRAY = 8, 9
SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
Q8_0, ALIGNMENT = 8, 32


class Cursor:
    """Reads numbers of a GGUF."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def number(self, form):
        value = struct.unpack_from(form, self.data, self.at)[0]
        self.at += struct.calcsize(form)
        return value

    def text(self):
        length = self.number("<Q")
        self.at += length
        return self.data[self.at - length:self.at].decode()

    def skip(self, kind):
        if kind == STRING:
            self.text()
        elif kind == ARRAY:
            inner, count = self.number("<I"), self.number("<Q")
            for _ in range(count):
                self.skip(inner)
        else:
            self.at += SIZES[kind]


# Names of tokens between which a model fills a text in, as Qwen's have them.
FILL_IN = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>")


def text(value):
    return struct.pack("<Q", len(value.encode())) + value.encode()


def aligned(size):
    return -(-size // ALIGNMENT) * ALIGNMENT


def generator(data, weights=None, fill_in=False):
    """The GGUF with the template; with `weights`, a source of random numbers, its 8-bit weights are drawn from it; with
    `fill_in` it has the tokens between which a text is filled in."""
    cursor = Cursor(data)
    assert data[:4] == b"GGUF" and struct.unpack_from("<I", data, 4)[0] == 3
    cursor.at = 8
    tensors, keys = cursor.number("<Q"), cursor.number("<Q")
    first = cursor.at
    for _ in range(keys):
        name = cursor.text()
        assert name != "tokenizer.chat_template", "the model has a template by now"
        cursor.skip(cursor.number("<I"))
    behind_keys = cursor.at
    listed = []
    for _ in range(tensors):
        cursor.text()
        dims = [cursor.number("<Q") for _ in range(cursor.number("<I"))]
        listed.append((math.prod(dims), cursor.number("<I"), cursor.number("<Q")))
    infos = data[behind_keys:cursor.at]
    values = bytearray(data[aligned(cursor.at):])
    for count, kind, offset in listed:
        if weights is not None and kind == Q8_0:
            # A block is its scale and 32 codes.
            for block in range(offset, offset + count // 32 * 34, 34):
                values[block + 2:block + 34] = weights.randbytes(32)
    kept = data[first:behind_keys]
    if fill_in:
        kept = with_fill_in(kept, keys)
    head = data[:8] + struct.pack("<QQ", tensors, keys + 1) + kept
    head += text("tokenizer.chat_template") + struct.pack("<I", STRING) + text(TEMPLATE) + infos
    return head + bytes(aligned(len(head)) - len(head)) + bytes(values)


def with_fill_in(keys, count):
    """The same keys, with the last tokens of all named as those between which a text is filled in."""
    cursor = Cursor(keys)
    for _ in range(count):
        name, kind = cursor.text(), cursor.number("<I")
        if name != "tokenizer.ggml.tokens":
            cursor.skip(kind)
            continue
        assert kind == ARRAY and cursor.number("<I") == STRING
        for _ in range(cursor.number("<Q") - len(FILL_IN)):
            cursor.text()
        begin = cursor.at
        for _ in FILL_IN:
            cursor.text()
        return keys[:begin] + b"".join(map(text, FILL_IN)) + keys[cursor.at:]
    raise ValueError("the model has no tokens")


def encoder(folder, name):
    """An encoder of the shapes of a fixture, with weights at random around those of a fresh model."""
    of = json.loads((FIXTURES / "encoders" / f"{name}.json").read_text())
    folder.mkdir(parents=True, exist_ok=True)
    for file, value in of["files"].items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(json.dumps(value))
    (folder / "config.json").write_text(json.dumps(of["config"]))
    random_, header, values = random.Random(name), {"__metadata__": {"format": "pt"}}, bytearray()
    for tensor, shape, base, _ in of["tensors"]:
        count, begin = math.prod(shape), len(values)
        values += struct.pack(f"<{count}f", *(base + random_.uniform(-0.25, 0.25) for _ in range(count)))
        header[tensor] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, len(values)]}
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(head)) + head + bytes(values))


def write(folder):
    """Writes all of them; their names and places."""
    folder.mkdir(parents=True, exist_ok=True)
    data = (FIXTURES / "bedtime/bedtime-q8_0.gguf").read_bytes()
    (folder / "story.gguf").write_bytes(generator(data))
    (folder / "random.gguf").write_bytes(generator(data, random.Random(1)))
    (folder / "fill.gguf").write_bytes(generator(data, fill_in=True))
    for name in ("embed", "score"):
        encoder(folder / name, name)
    return {
        "story": folder / "story.gguf",
        "random": folder / "random.gguf",
        "fill": folder / "fill.gguf",
        "embed": folder / "embed",
        "score": folder / "score",
    }
