#!/usr/bin/env python3
"""How much each input of a tiny model's matrices counts, by transformers: for the tests of `yirage imatrix`.

usage: imatrix_golden.py --models FOLDER --out FILE

FOLDER has a folder with config.json and model.safetensors for each of MODELS, as the tests write them. The model reads IDS; before each matrix of its
layers the squares of the activations are added over the tokens, of experts over the tokens that chose them. Names are
those that the tensors have in GGUF files. Needs torch and transformers.
"""

import argparse
import json
import pathlib

import torch
from transformers import AutoModelForCausalLM

MODELS = ["llama", "phi3", "mixtral"]
IDS = [(7 * i * i + 3 * i + 1) % 60 for i in range(24)]
NAMES = {
    "self_attn.q_proj": ["attn_q"],
    "self_attn.k_proj": ["attn_k"],
    "self_attn.v_proj": ["attn_v"],
    "self_attn.qkv_proj": ["attn_qkv"],
    "self_attn.o_proj": ["attn_output"],
    "mlp.gate_proj": ["ffn_gate"],
    "mlp.up_proj": ["ffn_up"],
    "mlp.gate_up_proj": ["ffn_up"],
    "mlp.down_proj": ["ffn_down"],
    "mlp.gate": ["ffn_gate_inp"],
}


def squares(rows):
    return rows.double().reshape(-1, rows.shape[-1]).pow(2).sum(0)


def read(folder):
    """Of each tensor the sums, `[matrices, columns]`, and how many rows each matrix had."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager", experts_implementation="eager").eval()
    found = {}

    def add(name, sums, counts):
        found[name] = {"sums": [[float(f"{x:.7g}") for x in row] for row in sums.tolist()], "counts": counts}

    def dense(names, layer):
        def hook(_, inputs):
            rows = inputs[0]
            count = rows.numel() // rows.shape[-1]
            for name in names:
                add(f"blk.{layer}.{name}.weight", squares(rows)[None], [count])

        return hook

    def experts(layer):
        def hook(module, inputs):
            hidden, chosen = inputs[0], inputs[1]
            hidden = hidden.reshape(-1, hidden.shape[-1])
            count = module.gate_up_proj.shape[0]
            before = torch.zeros(count, hidden.shape[-1], dtype=torch.float64)
            behind = torch.zeros(count, module.down_proj.shape[-1], dtype=torch.float64)
            rows = [0] * count
            for token, numbers in zip(hidden, chosen.tolist()):
                for expert in numbers:
                    gate, up = (module.gate_up_proj[expert].double() @ token.double()).chunk(2)
                    before[expert] += token.double().pow(2)
                    behind[expert] += (torch.nn.functional.silu(gate) * up).pow(2)
                    rows[expert] += 1
            for name in ("ffn_gate_exps", "ffn_up_exps"):
                add(f"blk.{layer}.{name}.weight", before, rows)
            add(f"blk.{layer}.ffn_down_exps.weight", behind, rows)

        return hook

    for at, layer in enumerate(model.model.layers):
        for name, module in layer.named_modules():
            if name in NAMES:
                module.register_forward_pre_hook(dense(NAMES[name], at))
            if name == "mlp.experts":
                module.register_forward_pre_hook(experts(at))
    with torch.inference_mode():
        model(torch.tensor([IDS]))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    given = parser.parse_args()
    golden = {"ids": IDS, "models": {name: read(given.models / name) for name in MODELS}}
    given.out.write_text(json.dumps(golden, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
