"""How an engine uses memory by its own design: data that its plug-in gives."""

from __future__ import annotations

from dataclasses import dataclass

from controlplane.domain.sizing.activations import Mixed
from controlplane.domain.sizing.serving import PAGED, ServingTraits


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineMemory:
    """The defaults hold for engines that say nothing."""

    serving: ServingTraits = PAGED
    #: How it trains every weight in 16 bits.
    half: Mixed = Mixed.MASTER_COPY
    #: Gradients of a step are dropped before the next begins.
    drops_gradients: bool = False


USUAL = EngineMemory()
