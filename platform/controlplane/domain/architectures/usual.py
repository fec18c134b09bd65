"""A build for models of which only the size is known.

It is for a first answer where people would otherwise have none, and whoever uses it says so.
"""

from __future__ import annotations

from controlplane.domain.architectures.values import Architecture, Attention

_VOCABULARY = 32_000
_HEAD = 64


def usual(parameters: int) -> Architecture:
    """A plain decoder of about so many parameters: 12 · layers · hidden² of them, with hidden = 64 · layers."""
    layers = max(1, round((parameters / (12 * 64**2)) ** (1 / 3)))
    hidden = 64 * layers
    return Architecture(
        family="",
        name="",
        layers=layers,
        hidden=hidden,
        heads=layers,
        kv_heads=layers,
        head_dim=_HEAD,
        intermediate=8 * hidden // 3,
        matrices=3,
        vocabulary=_VOCABULARY,
        context=0,
        dtype="",
        attention=Attention.MHA,
        tied=False,
        parameters=parameters,
        active_parameters=parameters,
    )
