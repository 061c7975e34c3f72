"""Pictures in files, and what transformers' processors make of them.

usage: image_cases.py OUT_FILE      (needs torch, torchvision, transformers, pillow, numpy)

The repository's is crates/yirage-image/tests/golden/cases.json. Each case names one of `pictures`, the settings of a processor, and has the SHA-256 of
the pixels that the processor gives, as little-endian float32 in the order channel, row, column, all tiles of a picture
one after the other with rows and columns of tiles where the processor cuts it. `decoded` has the size
of each picture and the SHA-256 of its bytes in the order row, column, channel.
"""
import base64
import hashlib
import io
import json
import sys

import numpy as np
import torch
import torchvision
import transformers as tf
from PIL import Image, ImageOps
from transformers.image_transforms import convert_to_rgb

torch.set_num_threads(1)


def drawn(height, width, channels, seed):
    """Edges and gradients: small when compressed, and no two neighbours of an edge are alike."""
    y, x, c = np.mgrid[0:height, 0:width, 0:channels]
    waves = 127 + 90 * np.sin((x + seed) / 5 + c) + 60 * ((x // 7 + y // 5 + c) % 2) - y * 40 / height
    return np.clip(waves, 0, 255).astype(np.uint8)


def file(image, kind, **how):
    out = io.BytesIO()
    image.save(out, kind, **how)
    return out.getvalue()


def palette(transparent):
    image = Image.fromarray(drawn(21, 34, 3, 3)).quantize(16)
    return file(image, "PNG", **(dict(transparency=3) if transparent else {}))


def turned(kind, orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    return file(Image.fromarray(drawn(12, 20, 3, orientation)), kind, exif=exif, **(dict(lossless=True) if kind == "WEBP" else {}))


def pictures():
    rgb, rgba = Image.fromarray(drawn(40, 57, 3, 1)), Image.fromarray(drawn(23, 31, 4, 2), "RGBA")
    found = {
        "rgb": file(rgb, "PNG"),
        "rgba": file(rgba, "PNG"),
        "grey": file(Image.fromarray(drawn(30, 18, 1, 4)[..., 0]), "PNG"),
        "grey-alpha": file(Image.fromarray(drawn(19, 26, 2, 5), "LA"), "PNG"),
        "bits": file(Image.fromarray(drawn(17, 25, 1, 6)[..., 0]).convert("1"), "PNG"),
        "palette": palette(False),
        "palette-transparent": palette(True),
        "transparent-colour": file(Image.fromarray(drawn(16, 16, 3, 7) // 64 * 64), "PNG", transparency=(192, 192, 192)),
        "tall": file(Image.fromarray(drawn(90, 14, 3, 8)), "PNG"),
        "one": file(Image.fromarray(drawn(1, 1, 3, 9)), "PNG"),
        "webp": file(rgb, "WEBP", lossless=True),
        "webp-alpha": file(rgba, "WEBP", lossless=True, exact=True),
    }
    found.update({f"turned-{n}": turned("PNG", n) for n in range(1, 9)})
    found["turned-webp"] = turned("WEBP", 6)
    return found


def opened(data):
    return ImageOps.exif_transpose(Image.open(io.BytesIO(data)))


CLIP = dict(size=dict(shortest_edge=32), crop_size=dict(height=32, width=32))
TILES = dict(size=dict(longest_edge=64), max_image_size=dict(longest_edge=32))
CASES = [
    ("CLIPImageProcessor", CLIP),
    ("CLIPImageProcessorPil", CLIP),
    ("CLIPImageProcessor", dict(CLIP, resample=2)),
    ("CLIPImageProcessor", dict(CLIP, resample=1)),
    ("CLIPImageProcessorPil", dict(CLIP, resample=1)),
    ("CLIPImageProcessorPil", dict(CLIP, resample=2, do_normalize=False)),
    ("CLIPImageProcessor", dict(size=dict(shortest_edge=20), crop_size=dict(height=33, width=24))),
    ("CLIPImageProcessor", dict(size=dict(height=18, width=41), do_center_crop=False)),
    ("CLIPImageProcessor", dict(do_resize=False, crop_size=dict(height=16, width=50))),
    ("CLIPImageProcessor", dict(CLIP, do_normalize=False)),
    ("SiglipImageProcessor", dict(size=dict(height=28, width=28))),
    ("LlavaImageProcessor", CLIP),
    ("Idefics3ImageProcessor", TILES),
    ("Idefics3ImageProcessor", dict(TILES, do_image_splitting=False)),
    ("Idefics3ImageProcessor", dict(TILES, resample=3, do_normalize=False)),
    ("SmolVLMImageProcessor", dict(size=dict(longest_edge=70), max_image_size=dict(longest_edge=14), resample=2)),
    ("SmolVLMImageProcessor", dict(do_resize=False, max_image_size=dict(longest_edge=20))),
    ("SmolVLMImageProcessor", dict(size=dict(longest_edge=5000), max_image_size=dict(longest_edge=512))),
]


def sha(array):
    return hashlib.sha256(array.tobytes()).hexdigest()


def main(out):
    found, decoded, cases = pictures(), {}, []
    for name, data in found.items():
        rgb = convert_to_rgb(opened(data), return_numpy=True)
        decoded[name] = [rgb.shape[1], rgb.shape[0], sha(rgb)]
    for at, (kind, settings) in enumerate(CASES):
        processor = getattr(tf, kind)(**settings)
        # A file does not say whose arithmetic its processor uses; the class does.
        stated = dict(json.loads(processor.to_json_string()), image_processor_type=kind)
        tiled = kind.startswith(("Idefics3", "SmolVLM"))
        names = [n for n in found if at < 2 or n == "tall" or at != len(CASES) - 1 and n in ("rgb", "rgba", "one", "turned-6")]
        pixels = {}
        for name in names:
            how = dict(return_row_col_info=True) if tiled else {}
            made = processor(images=convert_to_rgb(opened(found[name])) if tiled else opened(found[name]), return_tensors="np", **how)
            values = np.asarray(made["pixel_values"][0])
            assert values.dtype == np.float32, values.dtype
            grid = [[int(made["rows"][0][0]), int(made["cols"][0][0])]] if tiled else []
            pixels[name] = [values.shape[-1], values.shape[-2], sha(values)] + grid
        cases.append(dict(processor=stated, pixels=pixels))
    doc = dict(format="image-cases-v1", transformers=tf.__version__, torchvision=torchvision.__version__,
               pillow=Image.__version__, pictures={n: base64.b64encode(d).decode() for n, d in found.items()},
               decoded=decoded, cases=cases)
    with open(out, "w") as target:
        lines = [f"{json.dumps(k)}: {json.dumps(v, separators=(',', ':'))}" for k, v in doc.items()]
        target.write("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main(sys.argv[1])
