"""The model: Llama's layers with grouped keys and values, and one matrix for both ends of the vocabulary.

Parameter names are those of Hugging Face checkpoints, so that writing one renames nothing. Rotary positions turn the
halves of a head, as that format has it.
"""
import dataclasses
import math

import torch
from torch import nn
from torch.nn import functional as F


@dataclasses.dataclass(frozen=True)
class Shape:
    """Everything that fixes the tensors. Widths are multiples of 32, the block of Q8_0."""
    vocabulary: int
    width: int
    layers: int
    heads: int
    kv_heads: int
    hidden: int
    context: int
    theta: float = 10000.0
    eps: float = 1e-5

    def __post_init__(self):
        if self.width % self.heads or self.head % 2:
            raise SystemExit(f"a width of {self.width} is not {self.heads} heads of an even width: change --width or --heads")
        if self.heads % self.kv_heads:
            raise SystemExit(f"{self.heads} heads are no multiple of {self.kv_heads} key heads: change --kv-heads")
        for name in ("width", "hidden"):
            if getattr(self, name) % 32:
                raise SystemExit(f"--{name} {getattr(self, name)} is no multiple of 32, the block of Q8_0")

    @property
    def head(self):
        return self.width // self.heads


class Norm(nn.Module):
    def __init__(self, width, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(width)), eps

    def forward(self, x):
        return F.rms_norm(x.float(), self.weight.shape, self.weight, self.eps).to(x.dtype)


class Attention(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.shape = s
        self.q_proj = nn.Linear(s.width, s.heads * s.head, bias=False)
        self.k_proj = nn.Linear(s.width, s.kv_heads * s.head, bias=False)
        self.v_proj = nn.Linear(s.width, s.kv_heads * s.head, bias=False)
        self.o_proj = nn.Linear(s.heads * s.head, s.width, bias=False)

    def forward(self, x, cos, sin):
        s, (b, t, _) = self.shape, x.shape
        q = turn(self.q_proj(x).view(b, t, s.heads, s.head).transpose(1, 2), cos, sin)
        k = turn(self.k_proj(x).view(b, t, s.kv_heads, s.head).transpose(1, 2), cos, sin)
        v = self.v_proj(x).view(b, t, s.kv_heads, s.head).transpose(1, 2)
        k, v = (y.repeat_interleave(s.heads // s.kv_heads, dim=1) for y in (k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(y.transpose(1, 2).reshape(b, t, -1))


def turn(x, cos, sin):
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1).to(x.dtype)


class FeedForward(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.gate_proj = nn.Linear(s.width, s.hidden, bias=False)
        self.up_proj = nn.Linear(s.width, s.hidden, bias=False)
        self.down_proj = nn.Linear(s.hidden, s.width, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, s, dropout):
        super().__init__()
        self.input_layernorm = Norm(s.width, s.eps)
        self.self_attn = Attention(s)
        self.post_attention_layernorm = Norm(s.width, s.eps)
        self.mlp = FeedForward(s)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, cos, sin):
        x = x + self.dropout(self.self_attn(self.input_layernorm(x), cos, sin))
        return x + self.dropout(self.mlp(self.post_attention_layernorm(x)))


class Llama(nn.Module):
    """Token ids [batch, tokens] to logits [batch, tokens, vocabulary]."""

    def __init__(self, s, dropout=0.0):
        super().__init__()
        self.shape = s
        self.embed_tokens = nn.Embedding(s.vocabulary, s.width)
        self.layers = nn.ModuleList(Layer(s, dropout) for _ in range(s.layers))
        self.norm = Norm(s.width, s.eps)
        self.dropout = nn.Dropout(dropout)
        inverse = s.theta ** -(torch.arange(0, s.head, 2, dtype=torch.float64) / s.head)
        angles = torch.arange(s.context, dtype=torch.float64)[:, None] * inverse
        self.register_buffer("cos", angles.cos().float(), persistent=False)
        self.register_buffer("sin", angles.sin().float(), persistent=False)
        for name, p in self.named_parameters():
            if p.dim() == 2:
                # What adds to the residual stream starts smaller, so that its sum over the layers does not grow.
                last = name.endswith(("o_proj.weight", "down_proj.weight"))
                nn.init.normal_(p, 0.0, 0.02 / math.sqrt(2 * s.layers) if last else 0.02)

    def forward(self, ids):
        cos, sin = self.cos[:ids.shape[1]], self.sin[:ids.shape[1]]
        x = self.dropout(self.embed_tokens(ids))
        for layer in self.layers:
            x = layer(x, cos, sin)
        return F.linear(self.norm(x), self.embed_tokens.weight)

    def loss(self, ids, targets):
        """Mean negative log-likelihood of `targets`, in nats, as a scalar."""
        logits = self(ids).float()
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.reshape(-1))

    def checkpoint(self):
        """Tensors by their names in a Hugging Face checkpoint, float32 on the CPU."""
        return {f"model.{name}": p.detach().float().cpu().numpy() for name, p in self.named_parameters()}
