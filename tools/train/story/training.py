"""Training against the clock. Knows arrays of tokens, no text.

The learning rate rises for a hundredth of the time and falls to nothing at its end, so that a faster machine reads more
text and every machine ends annealed. The weights kept are those with the smallest loss on the validation books; what is
reported is their loss on the test books, which chose nothing.
"""
import contextlib
import copy
import dataclasses
import json
import math
import time

import numpy as np
import torch

from . import shards
from .llama import Llama, Shape

WARM = 0.01
LOOK_TOKENS = 1 << 18
SAMPLE_TOKENS, TEMPERATURE, TOP_P = 200, 0.8, 0.95


class Data:
    """The prepared arrays on the device, and examples drawn from them."""

    def __init__(self, folder, context, device, seed):
        self.about = json.loads((folder / "prepared.json").read_text())
        self.context, self.device = context, device
        self.parts = {name: self.load(folder / f"{name}.u16", "<u2") for name in ("train", "validation", "test")}
        room = len(self.parts["train"]) - context - 1
        if room < 1:
            raise SystemExit(f"the training text has {len(self.parts['train'])} tokens, one example takes {context + 1}")
        starts = self.load(folder / "paragraphs.u32", "<u4")
        self.starts = starts[starts < room]
        self.room, self.draw = room, torch.Generator(device).manual_seed(seed)

    def load(self, path, kind):
        return torch.from_numpy(np.fromfile(path, dtype=kind).astype(np.int64)).to(self.device)

    def batch(self, size):
        """`size` examples, half of them from the beginning of a paragraph, where prompts begin."""
        half = size // 2
        picked = torch.randint(len(self.starts), (half,), generator=self.draw, device=self.device)
        anywhere = torch.randint(self.room, (size - half,), generator=self.draw, device=self.device)
        first = torch.cat([self.starts[picked], anywhere])
        rows = self.parts["train"][first[:, None] + torch.arange(self.context + 1, device=self.device)]
        return rows[:, :-1], rows[:, 1:]

    def windows(self, part, size, limit):
        """A part's text in order, without overlap, in batches; at most `limit` tokens."""
        tokens = self.parts[part]
        count = min(len(tokens) - 1, limit) // self.context
        for at in range(0, count, size):
            rows = [tokens[i * self.context:(i + 1) * self.context + 1] for i in range(at, min(at + size, count))]
            rows = torch.stack(rows)
            yield rows[:, :-1], rows[:, 1:]


def rate_at(progress):
    """Share of the highest learning rate at a share of the time."""
    return min(progress / WARM, 0.5 * (1 + math.cos(math.pi * min(progress, 1.0))))


def held_out(model, data, part, options, limit):
    model.eval()
    total = count = 0.0
    with torch.no_grad(), precision(options):
        for ids, targets in data.windows(part, options.batch, limit):
            total += float(model.loss(ids, targets)) * ids.numel()
            count += ids.numel()
    model.train()
    if not count:
        raise SystemExit(f"the {part} books are shorter than one example of {data.context} tokens: lower --context")
    return total / count


def precision(options):
    return torch.autocast("cuda", torch.bfloat16) if options.device == "cuda" else contextlib.nullcontext()


def optimiser(model, options):
    matrices = [p for p in model.parameters() if p.dim() == 2]
    rest = [p for p in model.parameters() if p.dim() != 2]
    groups = [dict(params=matrices, weight_decay=options.decay), dict(params=rest, weight_decay=0.0)]
    return torch.optim.AdamW(groups, lr=options.rate, betas=(0.9, 0.95), fused=options.device == "cuda")


def compiled(model, data, options):
    """`model.loss` compiled where that works, tried on one batch; else as it is."""
    if options.device == "cpu" or options.no_compile:
        return model.loss
    try:
        loss = torch.compile(model.loss)
        with precision(options):
            loss(*data.batch(options.batch)).backward()
        model.zero_grad(set_to_none=True)
        return loss
    except Exception as reason:  # any failure of the compiler means that we go without it
        print(f"torch.compile failed, going without: {type(reason).__name__}: {str(reason)[:300]}", flush=True)
        model.zero_grad(set_to_none=True)
        return model.loss


def sample(model, ids, end, generator):
    """Tokens after `ids`, drawn at TEMPERATURE from the smallest set with TOP_P of the probability."""
    device, made = model.embed_tokens.weight.device, list(ids)
    while len(made) < len(ids) + SAMPLE_TOKENS and made[-1] != end:
        window = torch.tensor([made[-model.shape.context:]], device=device)
        with torch.no_grad():
            chances = (model(window)[0, -1].float() / TEMPERATURE).softmax(-1).cpu()
        ordered, index = chances.sort(descending=True)
        ordered[ordered.cumsum(0) - ordered > TOP_P] = 0
        made.append(int(index[torch.multinomial(ordered, 1, generator=generator)]))
    return made[len(ids):]


class Run:
    """One training: the model, what is kept of it, and the log."""

    def __init__(self, options, started):
        torch.manual_seed(options.seed)
        torch.set_float32_matmul_precision("high")
        self.options, self.started, self.log = options, started, []
        self.data = Data(options.prepared, options.context, options.device, options.seed)
        self.shape = Shape(self.data.about["vocabulary"], options.width, options.layers, options.heads,
                           options.kv_heads, options.hidden, options.context)
        self.model = Llama(self.shape, options.dropout).to(options.device)
        self.weights = sum(p.numel() for p in self.model.parameters())
        self.best, self.kept, self.steps = math.inf, None, 0
        # A tenth of the time, at most 45 s, for the test books, the samples and the files; more where looks are slow.
        self.reserve = min(45.0, options.seconds / 10)
        self.say(f"{self.weights} weights, {options.device}, torch {torch.__version__}")

    def elapsed(self):
        return time.monotonic() - self.started

    def say(self, text):
        self.log.append(f"{self.elapsed():7.1f} s  {text}")
        print(self.log[-1], flush=True)

    def look(self, loss):
        """Compares with the validation books and keeps the better weights."""
        begun, parts = self.elapsed(), self.data.parts
        found = held_out(self.model, self.data, "validation", self.options, LOOK_TOKENS)
        # What follows the training is one more look and one at the test books.
        looks = 1 + len(parts["test"]) / min(len(parts["validation"]), LOOK_TOKENS)
        self.reserve = min(max(self.reserve, 1.2 * looks * (self.elapsed() - begun)), self.options.seconds / 2)
        if found < self.best:
            self.best, self.kept = found, copy.deepcopy(self.model.state_dict())
        read = self.steps * self.options.batch * self.options.context
        self.say(f"step {self.steps}, {read / 1e6:.1f} M tokens, loss {loss:.4f}, validation {found:.4f}")

    def progress(self, begun):
        """Which share of the time for training is over."""
        return (self.elapsed() - begun) / max(self.options.seconds - self.reserve - begun, 1e-3)

    def fit(self):
        options, model = self.options, self.model
        adam, loss_of = optimiser(model, options), compiled(model, self.data, options)
        begun, next_look = self.elapsed(), 1 / options.looks
        self.say(f"training starts, {options.seconds - self.reserve - begun:.0f} s")
        # Losses stay on the device between looks: reading one would wait for it.
        running, since = torch.zeros((), device=options.device), 0
        while (progress := self.progress(begun)) < 1 or not self.steps:
            for group in adam.param_groups:
                group["lr"] = options.rate * max(rate_at(progress), 1e-3)
            with precision(options):
                loss = loss_of(*self.data.batch(options.batch))
            adam.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            adam.step()
            running, since, self.steps = running + loss.detach(), since + 1, self.steps + 1
            if progress >= next_look:
                self.look(float(running) / since)
                running, since, next_look = torch.zeros_like(running), 0, next_look + 1 / options.looks
            elif options.device == "cuda" and self.steps % 20 == 0:
                torch.cuda.synchronize()  # else the clock runs ahead of the work that is only queued
        if since:
            self.look(float(running) / since)

    def finish(self):
        """The kept weights as files, first of all; then their loss on the test books, samples, and what is told of all."""
        options, model = self.options, self.model
        model.load_state_dict(self.kept)
        options.trained.mkdir(parents=True, exist_ok=True)
        shards.write(options.trained, model.checkpoint())
        self.say("weights written")
        test = held_out(model, self.data, "test", options, 1 << 30)
        self.say(f"kept: validation {self.best:.4f}, test {test:.4f} nats a token")
        model.eval()
        generator, samples = torch.Generator().manual_seed(options.seed), []
        for prompt in self.data.about["prompts"]:
            # A machine that is slow beyond all plans still ends with everything but the last samples.
            made = self.elapsed() < options.seconds and sample(model, prompt["ids"], self.data.about["end"], generator)
            samples.append(dict(prompt, made=made or []))
        made = sum(bool(one["made"]) for one in samples)
        self.say(f"{made} of {len(samples)} samples of {SAMPLE_TOKENS} tokens, temperature {TEMPERATURE}, top-p {TOP_P}")
        about = dict(shape=dataclasses.asdict(self.shape), weights=self.weights, seed=options.seed, steps=self.steps,
                     tokens_read=self.steps * options.batch * options.context, validation=self.best, test=test,
                     options={k: str(v) for k, v in sorted(vars(options).items()) if k not in ("prepared", "trained")},
                     prepared={k: v for k, v in self.data.about.items() if k != "prompts"}, samples=samples)
        (options.trained / "trained.json").write_text(json.dumps(about, indent=1) + "\n")
        self.say("all files written")
        (options.trained / "log.txt").write_text("\n".join(self.log) + "\n")


def train(options, started):
    """The `train` step."""
    if options.device == "cuda" and not torch.cuda.is_available():
        raise SystemExit("torch sees no CUDA device: use one, or --device cpu with a small shape to try the step")
    if options.context < 64:
        raise SystemExit(f"--context {options.context}: at least 64")
    if options.looks < 1:
        raise SystemExit(f"--looks {options.looks}: at least one, or no weights are kept")
    run = Run(options, started)
    run.fit()
    run.finish()
