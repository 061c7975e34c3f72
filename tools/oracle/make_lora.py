"""Low-rank adapters for the tiny models: their settings, the recipe of their matrices, and outputs of PEFT.

usage: make_lora.py OUT_DIR [SEED]      (needs torch, transformers, peft, safetensors, numpy)

OUT_DIR gets NAME.json each; the repository's are in crates/yirage-testkit/fixtures/lora. The models are those of
make_tiny_archs.py, and the matrices come from the same generator, so that both sides have the same bytes. Where PEFT begins
with zeros there are numbers here too, or an adapter would do nothing.
"""
import hashlib
import json
import os
import sys
import tempfile

import peft
import torch
import transformers as tf
from safetensors.torch import load_file, save_file

from counter_rng import weights
from make_tiny_archs import MODELS, build, cases

ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj"]
# name: model, and settings of the adapter.
ADAPTERS = {
    "llama-patterns": ("llama", dict(r=4, lora_alpha=8, target_modules=ATTENTION + ["gate_proj", "up_proj", "down_proj"],
                       rank_pattern={"q_proj": 6, r"layers\.1\.mlp\.down_proj": 2},
                       alpha_pattern={"k_proj": 3, r"layers\.[02]\.mlp\.up_proj": 10})),
    "llama-rslora-head": ("llama", dict(r=3, lora_alpha=2, use_rslora=True, target_modules=["q_proj", "v_proj", "lm_head"])),
    "qwen2": ("qwen2", dict(r=8, lora_alpha=16, target_modules=ATTENTION)),
    "gemma2": ("gemma2", dict(r=2, lora_alpha=4, target_modules="all-linear")),
    "phi3-fused": ("phi3", dict(r=5, lora_alpha=5, target_modules=["qkv_proj", "o_proj", "gate_up_proj", "down_proj"])),
    "gpt2-transposed": ("gpt2", dict(r=4, lora_alpha=6, target_modules=["c_attn", "c_proj", "c_fc"], fan_in_fan_out=True)),
}
# name: model, and adapters with their scales.
TOGETHER = {"llama-two": ("llama", {"llama-patterns": 0.5, "llama-rslora-head": -1.25})}


def make_adapter(name, model, settings, seed, folder):
    """An adapter in `folder` with the generator's matrices, the recipe of each, and a hash of all their bytes."""
    config = peft.LoraConfig(task_type="CAUSAL_LM", lora_dropout=0.0, **settings)
    peft.get_peft_model(model, config).save_pretrained(folder, save_embedding_layers=False)
    file, tensors = os.path.join(folder, "adapter_model.safetensors"), []
    made, digest = {}, hashlib.sha256()
    for tensor, initial in sorted(load_file(file).items()):
        values = weights(seed, f"{name}:{tensor}", list(initial.shape), 0.0, 10)
        digest.update(values.tobytes())
        made[tensor] = torch.from_numpy(values)
        tensors.append([tensor, list(initial.shape)])
    save_file(made, file, metadata=dict(format="pt"))
    return tensors, digest.hexdigest()


def load_with(folder, adapters):
    """The model of `folder` with adapters of `(name, folder, scale)`."""
    model = tf.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    first, *more = adapters
    model = peft.PeftModel.from_pretrained(model, first[1], adapter_name=first[0])
    for name, of, _ in more:
        model.load_adapter(of, adapter_name=name)
    model.base_model.set_adapter([name for name, _, _ in adapters])
    for module in model.modules():
        if hasattr(module, "set_scale"):
            for name, _, scale in adapters:
                if name in module.scaling:
                    module.set_scale(name, scale)
    return model.eval()


def write(out, name, doc):
    rows = ",\n".join(f"{json.dumps(key)}: {json.dumps(value, separators=(',', ':'))}" for key, value in doc.items())
    with open(os.path.join(out, f"{name}.json"), "w") as file:
        file.write("{\n" + rows + "\n}\n")


def main(out, seed):
    os.makedirs(out, exist_ok=True)
    versions = dict(transformers=tf.__version__, peft=peft.__version__, torch=torch.__version__)
    with tempfile.TemporaryDirectory() as root:
        folders = {}
        for of in sorted({of for of, _ in ADAPTERS.values()}):
            folders[of] = os.path.join(root, of)
            cls, keywords = MODELS[of]
            build(cls, keywords, 1, folders[of])
        for name, (of, settings) in ADAPTERS.items():
            folders[name] = os.path.join(root, name)
            base = tf.AutoModelForCausalLM.from_pretrained(folders[of], dtype=torch.float32)
            tensors, digest = make_adapter(name, base, settings, seed, folders[name])
            config = json.load(open(os.path.join(folders[name], "adapter_config.json")))
            config.pop("base_model_name_or_path", None)
            found = list(cases(load_with(folders[of], [(name, folders[name], 1.0)]), seed))
            write(out, name, dict(format="tiny-adapters-v1", model=of, **versions, seed=seed, config=config,
                                  tensors=tensors, sha256=digest, cases=found))
            print(name, len(tensors))
        for name, (of, adapters) in TOGETHER.items():
            found = list(cases(load_with(folders[of], [(a, folders[a], s) for a, s in adapters.items()]), seed))
            write(out, name, dict(format="tiny-adapters-v1", model=of, **versions, adapters=adapters, cases=found))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1)
