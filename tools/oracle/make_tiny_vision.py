"""Tiny models that read pictures: their files, the recipe of their weights, and what transformers makes of prompts.

usage: make_tiny_vision.py OUT_DIR [NAME ...]      (needs torch, torchvision, transformers, tokenizers, pillow, numpy)

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
GREEDY, MARGIN = 12, 5e-3
# Of each model the first seed whose greedy tokens have the margin.
SEEDS = {"smolvlm": 5, "smolvlm-whole": 1}
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
# Pictures that are cut into tiles: each tile is as large as the tower reads, with a pixel at the edge that is in no patch.
TILED = {
    "idefics3": (tf.Idefics3Config, tf.Idefics3ForConditionalGeneration, tf.Idefics3ImageProcessor, 50, True, ["<global-img>"]),
    "smolvlm": (tf.SmolVLMConfig, tf.SmolVLMForConditionalGeneration, tf.SmolVLMImageProcessor, 75, True,
                ["<global-img>"] + [f"<row_{r}_col_{c}>" for r in (1, 2, 3) for c in (1, 2, 3)]),
    "smolvlm-whole": (tf.SmolVLMConfig, tf.SmolVLMForConditionalGeneration, tf.SmolVLMImageProcessor, 40, False,
                      ["<global-img>"]),
}
TILE = 25
WIDE = dict(first=PICTURES["first"], second=file(Image.fromarray(drawn(17, 60, 4, 5), "RGBA"), "PNG"))
CHATS = [[["first"], "What is this?"], [["first", "second"], "Which one is darker, and why?"], [["second"], "Tell me what you see."],
         [[], "No picture at all."]]


def tokenizer(special):
    letters = pre_tokenizers.ByteLevel.alphabet()
    vocab = {t: i for i, t in enumerate(special + sorted(letters))}
    made = Tokenizer(models.BPE(vocab=vocab, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in special])
    return made


def recipe(name, initial):
    if initial.ndim >= 2:
        return 0.0, 10
    return (1.0 if bool((initial == 1).all()) else 0.0), 11


def build(kind, config, folder, seed):
    how = dict(dtype=torch.float32, attn_implementation="eager")
    kind(config).save_pretrained(folder)
    path, tensors, made, digest = os.path.join(folder, "model.safetensors"), [], {}, hashlib.sha256()
    for name, initial in sorted(load_file(path).items()):
        base, exponent = recipe(name, initial)
        values = weights(seed, name, list(initial.shape), base, exponent)
        digest.update(values.tobytes())
        made[name] = torch.from_numpy(values)
        tensors.append([name, list(initial.shape), base, exponent])
    save_file(made, path, metadata=dict(format="pt"))
    return kind.from_pretrained(folder, **how).eval(), tensors, digest.hexdigest()


def floats(row):
    return [float(str(x)) for x in row]


def case(model, processor, files, pictures, text):
    content = [dict(type="image") for _ in pictures] + [dict(type="text", text=text)]
    prompt = processor.apply_chat_template([dict(role="user", content=content)], add_generation_prompt=True)
    images = [Image.open(io.BytesIO(files[p])) for p in pictures]
    inputs = processor(text=prompt, images=images or None, return_tensors="pt")
    ids = inputs["input_ids"]
    more = {key: inputs[key] for key in ("pixel_values", "pixel_attention_mask") if key in inputs}
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


def stored(out, name, kind, config, special, image, processor_of, pictures):
    """Writes NAME.json: `processor_of` makes the processor of a tokenizer."""
    with tempfile.TemporaryDirectory() as folder:
        model, tensors, digest = build(kind, config, folder, SEEDS.get(name, 1))
        stated = json.load(open(os.path.join(folder, "config.json")))
    made = tokenizer(special)
    processor = processor_of(tf.PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<pad>", bos_token="<s>", eos_token="</s>"))
    seen = {}
    for picture, data in pictures.items():
        pixels = image(images=Image.open(io.BytesIO(data)), return_tensors="pt")["pixel_values"]
        with torch.no_grad():
            rows = model.get_image_features(pixels).pooler_output[0].numpy()
        seen[picture] = dict(pixels=hashlib.sha256(pixels.numpy().tobytes()).hexdigest(), count=rows.shape[0],
                             std=round(float(rows.std()), 6), rows=[[i, floats(rows[i])] for i in (0, 5, rows.shape[0] - 1) if i < rows.shape[0]])
    files = {"tokenizer.json": json.loads(made.to_str()),
             "preprocessor_config.json": dict(json.loads(image.to_json_string()), image_processor_type=type(image).__name__),
             "tokenizer_config.json": dict(bos_token="<s>", eos_token="</s>", pad_token="<pad>", chat_template=TEMPLATE)}
    cases = [case(model, processor, pictures, *chat) for chat in CHATS]
    doc = dict(format="tiny-vision-v1", transformers=tf.__version__, torch=torch.__version__, seed=SEEDS.get(name, 1), config=stated,
               files=files, tensors=tensors, sha256=digest,
               pictures={n: base64.b64encode(d).decode() for n, d in pictures.items()}, seen=seen, cases=cases)
    path = os.path.join(out, f"{name}.json")
    with open(path, "w") as target:
        lines = [f"{json.dumps(k)}: {json.dumps(v, separators=(',', ':'))}" for k, v in doc.items()]
        target.write("{\n" + ",\n".join(lines) + "\n}\n")
    print(name, os.path.getsize(path), "bytes", [c["std"] for c in cases], flush=True)


def llava(out, name):
    tower, of_tower, more = MODELS[name]
    config = tf.LlavaConfig(vision_config=tower(**dict(TOWER, **of_tower)), text_config=tf.LlamaConfig(**TEXT),
                            image_token_index=3, image_seq_length=16, **more)
    image = tf.CLIPImageProcessor(size=dict(shortest_edge=44), crop_size=dict(height=44, width=44))
    processor = lambda fast: tf.LlavaProcessor(
        image_processor=image, tokenizer=fast, patch_size=10, chat_template=TEMPLATE,
        vision_feature_select_strategy=config.vision_feature_select_strategy,
        num_additional_image_tokens=int(tower is tf.CLIPVisionConfig))
    stored(out, name, tf.LlavaForConditionalGeneration, config, SPECIAL, image, processor, PICTURES)


def tiled(out, name):
    of, kind, processor_of, longest, split, marks = TILED[name]
    special = SPECIAL + ["<fake_token_around_image>", "<end_of_utterance>"] + marks
    text = dict(TEXT, vocab_size=len(special) + 256, model_type="llama", max_position_embeddings=1024)
    tower = dict(TOWER, image_size=TILE, patch_size=6)
    config = of(vision_config=tower, text_config=text, image_token_id=3, scale_factor=2)
    image = processor_of(size=dict(longest_edge=longest), max_image_size=dict(longest_edge=TILE), do_image_splitting=split)
    # Both families expand a prompt in the same way; that of SmolVLM wants packages for videos as well.
    processor = lambda fast: tf.Idefics3Processor(image_processor=image, tokenizer=fast, image_seq_len=4, chat_template=TEMPLATE)
    stored(out, name, kind, config, special, image, processor, WIDE)


def main(out, names):
    os.makedirs(out, exist_ok=True)
    for name in names or [*MODELS, *TILED]:
        (llava if name in MODELS else tiled)(out, name)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
