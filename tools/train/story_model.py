"""A small story-telling model, from a text corpus to a GGUF: Llama architecture, own byte-level BPE, at most 14 M weights.

usage: story_model.py prepare CORPUS PREPARED                here          (needs numpy, tokenizers)
       story_model.py train   PREPARED TRAINED               on a GPU      (needs torch, numpy)
       story_model.py export  PREPARED TRAINED OUT           here again    (needs numpy, tokenizers, gguf)
       story_model.py check   TRAINED OUT --yirage PROGRAM   here          (needs torch, numpy, tokenizers)

The steps are apart because the machine with the GPU may have no network and no packages of ours: `prepare` leaves
plain arrays that travel (2 bytes a token, 34 MB for 60 MB of text), `train` reads and writes nothing else, and none of
its files exceeds 15 MB. `train` ends before `--seconds` are over, counted from its start, whatever the machine's speed:
the learning rate falls with the clock. So one seed gives the same model only on machines of the same speed.

Sizes that can be changed are options of `prepare` (vocabulary) and `train` (shape, batch, schedule); the defaults are
the model that ships. `--help` after a step lists them.
"""
import argparse
import pathlib
import sys
import time

STARTED = time.monotonic()


def shape_options(p):
    p.add_argument("--width", type=int, default=384, help="of the residual stream")
    p.add_argument("--layers", type=int, default=8)
    p.add_argument("--heads", type=int, default=6)
    p.add_argument("--kv-heads", type=int, default=2)
    p.add_argument("--hidden", type=int, default=960, help="width of the feed-forward part")
    p.add_argument("--context", type=int, default=1024, help="tokens of one example, and of the model's context")


def training_options(p):
    p.add_argument("--seconds", type=float, default=530.0, help="wall clock from start to last file written")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--batch", type=int, default=64, help="examples of one step")
    p.add_argument("--rate", type=float, default=2e-3, help="highest learning rate")
    p.add_argument("--dropout", type=float, default=0.1, help="the corpus is read many times over: without, it is learnt by heart")
    p.add_argument("--decay", type=float, default=0.1, help="weight decay of matrices")
    p.add_argument("--looks", type=int, default=25, help="how often to look at the validation books")
    p.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    p.add_argument("--no-compile", action="store_true", help="never torch.compile")


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    steps = parser.add_subparsers(dest="step", required=True)
    prepare = steps.add_parser("prepare", help="train the tokenizer, encode the corpus")
    prepare.add_argument("corpus", type=pathlib.Path, help="folder of .txt or .txt.xz files: books parted by empty lines")
    prepare.add_argument("prepared", type=pathlib.Path)
    prepare.add_argument("--vocabulary", type=int, default=4096)
    prepare.add_argument("--held-out", type=float, default=0.02, help="share of the books, half to choose, half to report")
    prepare.add_argument("--seed", type=int, default=1, help="which books are held out")
    train = steps.add_parser("train", help="train within a given time")
    train.add_argument("prepared", type=pathlib.Path)
    train.add_argument("trained", type=pathlib.Path)
    shape_options(train)
    training_options(train)
    export = steps.add_parser("export", help="write a Hugging Face folder, a Q8_0 GGUF and the samples")
    export.add_argument("prepared", type=pathlib.Path)
    export.add_argument("trained", type=pathlib.Path)
    export.add_argument("out", type=pathlib.Path)
    export.add_argument("--name", default="yirage-stories")
    check = steps.add_parser("check", help="compare the exported files in yirage with torch")
    check.add_argument("trained", type=pathlib.Path)
    check.add_argument("out", type=pathlib.Path)
    check.add_argument("--yirage", required=True, help="the built program")
    return parser.parse_args(arguments)


def main(arguments):
    options = parse(arguments)
    # A step imports only what it needs: the machine that trains has no tokenizers, the one that prepares no torch.
    if options.step == "prepare":
        from story.corpus import prepare
        prepare(options)
    elif options.step == "train":
        from story.training import train
        train(options, STARTED)
    elif options.step == "export":
        from story.exporting import export
        export(options)
    else:
        from story.checking import check
        check(options)


if __name__ == "__main__":
    main(sys.argv[1:])
