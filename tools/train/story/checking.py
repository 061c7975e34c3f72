"""The exported files in yirage beside the same weights in torch: tokens and logits of one passage.

The float32 folder must agree to rounding. The GGUF is compared with torch on the weights as Q8_0 keeps them, so that
what is judged is the program and not the quantisation.
"""
import json
import subprocess

import gguf
import numpy as np
import torch
from tokenizers import Tokenizer

from . import shards
from .llama import Llama, Shape

TEXT = "The fox said, \"I am not afraid of 12 wolves!\"\nBut the wolves, who were old and grey, did not hear him."
EXACT, MARGIN = 2e-3, 0.05


def logits(shape, tensors, ids):
    model = Llama(Shape(**shape)).eval()
    state = {name.removeprefix("model."): torch.from_numpy(np.array(value)) for name, value in tensors.items()}
    model.load_state_dict(state)
    with torch.no_grad():
        return model(torch.tensor([ids]))[0].double().numpy()


def as_kept(tensors):
    """Weights after Q8_0 and back."""
    kind = gguf.GGMLQuantizationType.Q8_0
    there = {n: gguf.quants.quantize(v, kind) if v.ndim == 2 else v for n, v in tensors.items()}
    return {n: gguf.quants.dequantize(v, kind) if v.dtype == np.uint8 else v for n, v in there.items()}


def ask(program, *arguments):
    done = subprocess.run([program, *arguments, "--json"], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{program} {' '.join(arguments)} ended with {done.returncode}:\n{done.stderr}")
    return json.loads(done.stdout)


def compare(program, model, ids, wanted):
    """Worst difference of a logit; the most likely token must agree wherever it leads by MARGIN."""
    found = ask(program, "logits", "--model", str(model), "--ids", ",".join(map(str, ids)), "--all", "--positions", "all",
                "--precision", "exact", "--kv-type", "f32")
    worst = 0.0
    for row, position in zip(wanted, found["positions"]):
        ours = dict(position["top"])
        worst = max(worst, max(abs(ours[i] - value) for i, value in enumerate(row)))
        second, first = np.sort(row)[-2:]
        if first - second > MARGIN and position["argmax"] != int(row.argmax()):
            raise SystemExit(f"{model}: position {position['pos']}: {position['argmax']} instead of {int(row.argmax())}")
    return worst


def check(options):
    """The `check` step."""
    trained = json.loads((options.trained / "trained.json").read_text())
    tensors, folder = shards.read(options.trained), options.out / "hf"
    files = list(options.out.glob("*-q8_0.gguf"))
    if len(files) != 1:
        raise SystemExit(f"{options.out} holds {len(files)} files *-q8_0.gguf instead of one: export anew")
    ids = Tokenizer.from_file(str(folder / "tokenizer.json")).encode(TEXT).ids
    for model, weights in ((folder, tensors), (files[0], as_kept(tensors))):
        ours = ask(options.yirage, "tokenize", "--model", str(model), "--text", TEXT)["ids"]
        if ours != ids:
            raise SystemExit(f"{model}: ids {ours} instead of {ids}")
        worst = compare(options.yirage, model, ids, logits(trained["shape"], weights, ids))
        print(f"{model}: {len(ids)} ids equal, worst difference of a logit {worst:.2e}")
        if worst > EXACT:
            raise SystemExit(f"{model}: more than {EXACT}")
