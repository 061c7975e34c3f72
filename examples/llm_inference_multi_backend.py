#!/usr/bin/env python3
"""A model by the settings of a template, on one backend or on each that is here.

Without --model it is the small story model of this repository's tests.
"""

import argparse
import pathlib
import sys
import time

try:
    import yirage as yr
except ModuleNotFoundError as missing:
    if missing.name != "yirage":
        raise
    sys.exit("llm_inference_multi_backend.py: the package yirage is not installed: run `pip install .` in the folder of its repository")

STORIES = pathlib.Path(__file__).resolve().parents[1] / "crates/yirage-testkit/fixtures/bedtime/bedtime-q8_0.gguf"


def answered(asked, backend):
    """Loads the model, and gives its answer."""
    settings = yr.get_template(asked.template, backend=backend)
    options = {
        "max_model_len": settings["max_seq_length"],
        "max_num_seqs": settings["max_num_batched_requests"],
        "max_num_batched_tokens": settings["max_num_batched_tokens"],
    }
    with yr.LLM(asked.model, backend=settings["backend"], **options) as model:
        began = time.perf_counter()
        params = yr.SamplingParams(temperature=asked.temperature, max_tokens=asked.max_new_tokens, seed=asked.seed)
        (request,) = model.generate([asked.prompt], params, use_tqdm=False)
        took = time.perf_counter() - began
    answer = request.outputs[0]
    print(f"== {settings['backend']} by {asked.template}: {len(answer.token_ids) / took:.1f} tokens/s")
    print(f"{asked.prompt}{answer.text}")
    return answer.token_ids


def main(given=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--template", default="inference", choices=list(yr.list_templates()))
    parser.add_argument("--compare-all", action="store_true", help="each backend that is here, one after the other")
    parser.add_argument("--backend", help="a backend, instead of the current one")
    parser.add_argument("--model", default=str(STORIES), help="a file, a folder or a name of the catalogue")
    parser.add_argument("--prompt", default="Once upon a time")
    parser.add_argument("--max-new-tokens", type=int, default=32)
    parser.add_argument("--temperature", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(given)
    failed = 0
    for backend in yr.list_available_backends() if asked.compare_all else [asked.backend]:
        try:
            answered(asked, backend)
        except yr.YirageError as error:
            failed += 1
            print(f"{backend or asked.template}: {error}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
