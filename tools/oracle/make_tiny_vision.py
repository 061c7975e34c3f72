"""Tiny models that read pictures: their files, the recipe of their weights, and what transformers makes of prompts.

usage: make_tiny_vision.py OUT_DIR      (needs torch, torchvision, transformers, tokenizers, pillow, numpy)

OUT_DIR gets NAME.json each; the repository's are in crates/yirage-testkit/fixtures/vision. Weights are not stored: they
come from the counter-based generator as in make_tiny_archs.py. Everything is computed in float32. Pictures are stored as
the files that they are in; `pixels` are what the processor makes of them, by SHA-256 of their bytes.
"""
import base64
import hashlib
import io
import json
import os
import sys
import tempfile

import numpy as np
import torch
import transformers as tf
from PIL import Image
from safetensors.torch import load_file, save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from counter_rng import weights
from image_cases import drawn, file

torch.set_num_threads(1)
SEED, GREEDY, MARGIN = 1, 12, 5e-3
SPECIAL = ["<pad>", "<s>", "</s>", "<image>"]
V = len(SPECIAL) + 256
TEXT = dict(vocab_size=V, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, max_position_embeddings=512, bos_token_id=1, eos_token_id=2, pad_token_id=0)
TOWER = dict(hidden_size=48, intermediate_size=80, num_hidden_layers=3, num_attention_heads=3, image_size=44, patch_size=10)
TEMPLATE = ("{% for m in messages %}{{ m['role'] | upper }}: {% if m['content'] is string %}{{ m['content'] }}{% else %}"
            "{% for p in m['content'] %}{% if p['type'] == 'image' %}<image>{% else %}{{ p['text'] }}{% endif %}{% endfor %}"
            "{% endif %}\n{% endfor %}{% if add_generation_prompt %}ASSISTANT:{% endif %}")
MODELS = {
    "llava": (tf.CLIPVisionConfig, dict(), dict()),
    "llava-siglip": (tf.SiglipVisionConfig, dict(hidden_act="gelu_pytorch_tanh"),
                     dict(vision_feature_layer=[-1, 1], vision_feature_select_strategy="full",
                          projector_hidden_act="gelu_pytorch_tanh", multimodal_projector_bias=False)),
}
PICTURES = dict(first=file(Image.fromarray(drawn(40, 57, 3, 1)), "PNG"),
                second=file(Image.fromarray(drawn(60, 44, 4, 5), "RGBA"), "PNG"))
CHATS = [[["first"], "What is this?"], [["first", "second"], "Which one is darker, and why?"], [["second"], "Tell me what you see."],
         [[], "No picture at all."]]


def tokenizer():
    letters = pre_tokenizers.ByteLevel.alphabet()
    vocab = {t: i for i, t in enumerate(SPECIAL + sorted(letters))}
    made = Tokenizer(models.BPE(vocab=vocab, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in SPECIAL])
    return made


def recipe(name, initial):
    if initial.ndim >= 2:
        return 0.0, 10
    return (1.0 if bool((initial == 1).all()) else 0.0), 11


def build(config, folder):
    how = dict(dtype=torch.float32, attn_implementation="eager")
    tf.LlavaForConditionalGeneration(config).save_pretrained(folder)
    path, tensors, made, digest = os.path.join(folder, "model.safetensors"), [], {}, hashlib.sha256()
    for name, initial in sorted(load_file(path).items()):
        base, exponent = recipe(name, initial)
        values = weights(SEED, name, list(initial.shape), base, exponent)
        digest.update(values.tobytes())
        made[name] = torch.from_numpy(values)
        tensors.append([name, list(initial.shape), base, exponent])
    save_file(made, path, metadata=dict(format="pt"))
    return tf.LlavaForConditionalGeneration.from_pretrained(folder, **how).eval(), tensors, digest.hexdigest()


def floats(row):
    return [float(str(x)) for x in row]


def case(model, processor, pictures, text):
    content = [dict(type="image") for _ in pictures] + [dict(type="text", text=text)]
    prompt = processor.apply_chat_template([dict(role="user", content=content)], add_generation_prompt=True)
    images = [Image.open(io.BytesIO(PICTURES[p])) for p in pictures]
    inputs = processor(text=prompt, images=images or None, return_tensors="pt")
    ids, pixels = inputs["input_ids"], inputs.get("pixel_values")
    more = {} if pixels is None else dict(pixel_values=pixels)
    margins, tokens = [], ids
    with torch.no_grad():
        rows = model(input_ids=ids, **more).logits[0].numpy()
        last = rows
        for _ in range(GREEDY):
            ordered = np.sort(last[-1])
            margins.append((ordered[-1] - ordered[-2]) / ordered.std())
            tokens = torch.cat([tokens, torch.tensor([[int(last[-1].argmax())]])], 1)
            last = model(input_ids=tokens, **more).logits[0].numpy()
    if min(margins) < MARGIN:
        raise SystemExit(f"{text!r} has a margin of {min(margins)}")
    return dict(pictures=pictures, text=text, prompt=prompt, ids=ids[0].tolist(), last_logits=floats(rows[-1]),
                std=round(float(rows[-1].std()), 5), argmax_each_pos=rows.argmax(-1).tolist(),
                greedy=tokens[0, ids.shape[1]:].tolist())


def main(out):
    os.makedirs(out, exist_ok=True)
    for name, (tower, of_tower, more) in MODELS.items():
        config = tf.LlavaConfig(vision_config=tower(**dict(TOWER, **of_tower)), text_config=tf.LlamaConfig(**TEXT),
                                image_token_index=3, image_seq_length=16, **more)
        with tempfile.TemporaryDirectory() as folder:
            model, tensors, digest = build(config, folder)
            stated = json.load(open(os.path.join(folder, "config.json")))
        made = tokenizer()
        fast = tf.PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<pad>", bos_token="<s>", eos_token="</s>")
        image = tf.CLIPImageProcessor(size=dict(shortest_edge=44), crop_size=dict(height=44, width=44))
        processor = tf.LlavaProcessor(image_processor=image, tokenizer=fast, patch_size=10, chat_template=TEMPLATE,
                                      vision_feature_select_strategy=config.vision_feature_select_strategy,
                                      num_additional_image_tokens=int(tower is tf.CLIPVisionConfig))
        seen = {}
        for picture, data in PICTURES.items():
            pixels = image(images=Image.open(io.BytesIO(data)), return_tensors="pt")["pixel_values"]
            with torch.no_grad():
                rows = model.get_image_features(pixels).pooler_output[0].numpy()
            seen[picture] = dict(pixels=hashlib.sha256(pixels.numpy().tobytes()).hexdigest(), count=rows.shape[0],
                                 std=round(float(rows.std()), 6), rows=[[i, floats(rows[i])] for i in (0, 5, rows.shape[0] - 1)])
        files = {"tokenizer.json": json.loads(made.to_str()), "preprocessor_config.json": json.loads(image.to_json_string()),
                 "tokenizer_config.json": dict(bos_token="<s>", eos_token="</s>", pad_token="<pad>", chat_template=TEMPLATE)}
        cases = [case(model, processor, *chat) for chat in CHATS]
        doc = dict(format="tiny-vision-v1", transformers=tf.__version__, torch=torch.__version__, seed=SEED, config=stated,
                   files=files, tensors=tensors, sha256=digest,
                   pictures={n: base64.b64encode(d).decode() for n, d in PICTURES.items()}, seen=seen, cases=cases)
        path = os.path.join(out, f"{name}.json")
        with open(path, "w") as target:
            lines = [f"{json.dumps(k)}: {json.dumps(v, separators=(',', ':'))}" for k, v in doc.items()]
            target.write("{\n" + ",\n".join(lines) + "\n}\n")
        print(name, os.path.getsize(path), "bytes", [c["std"] for c in cases], flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
