"""Architectures: what a ``config.json``, or a line of the catalog, says of how a model is built."""

from controlplane.domain.architectures.comparing import Contradiction, contradictions
from controlplane.domain.architectures.facts import from_facts
from controlplane.domain.architectures.reading import ConfigRefused, read
from controlplane.domain.architectures.usual import usual
from controlplane.domain.architectures.values import (
    Architecture,
    Attention,
    Experts,
    Latent,
    Recurrent,
)

__all__ = [
    "Architecture",
    "Attention",
    "ConfigRefused",
    "Contradiction",
    "Experts",
    "Latent",
    "Recurrent",
    "contradictions",
    "from_facts",
    "read",
    "usual",
]
