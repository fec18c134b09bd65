"""How much of a chip's arithmetic a run uses, and how well more cards pay.

::

    operations of a token  =  6 · active parameters  +  12 · heads · head size · Σ layers min(length, window)
    MFU                    =  tokens a second · operations of a token  /  (cards · peak rate)
    scaling                =  (speed on n cards / speed on m)  /  (n / m)

The first two are those of Chowdhery et al. 2022 (PaLM, arXiv 2204.02311, appendix B): what the model itself needs,
so what is computed again to save memory counts for nothing. A frozen weight needs no gradient of its own: 4
instead of 6.
"""

from __future__ import annotations

from dataclasses import dataclass

from controlplane.domain.accelerators import Chip, Dtype
from controlplane.domain.architectures import Architecture, Attention

#: What a run on good hardware should reach.
TARGET = 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class Utilization:
    """Model FLOPs utilization of a run."""

    #: Share of the peak rate, 0 to 1.
    mfu: float
    #: Operations for one token.
    token_operations: float
    #: Operations a second that all cards could do.
    peak: float

    @property
    def percent(self) -> float:
        return round(100 * self.mfu, 1)

    @property
    def meets_target(self) -> bool:
        return self.mfu >= TARGET


def training_operations(
    architecture: Architecture, *, length: int, trained: int | None = None
) -> float:
    """Operations to learn from one token of rows of ``length`` tokens.

    ``trained`` are the parameters that change, where those of the model itself do not: an adapter's.
    """
    active = architecture.active_parameters
    weights = 6 * active if trained is None else 4 * active + 6 * trained
    return weights + _attention(architecture, length=length)


def _attention(architecture: Architecture, *, length: int) -> float:
    """Scores and their sums, forward and backward. Recurrent layers have none."""
    encoder = architecture.attention is Attention.NONE
    full = architecture.layers if encoder else architecture.full_layers
    seen = min(length, architecture.window) if architecture.window else length
    tokens = full * length + architecture.windowed_layers * seen
    part = architecture.latent
    # Queries meet keys of one size, and the result sums values of another.
    size = (
        (architecture.head_dim + part.value_head_dim) / 2 if part else float(architecture.head_dim)
    )
    return 12 * architecture.heads * size * tokens


def utilization(
    *,
    tokens_per_second: float,
    token_operations: float,
    chip: Chip,
    dtype: Dtype,
    cards: int,
) -> Utilization | None:
    """None where the chip's peak rate for that number format is not published."""
    rate = chip.peak_rates.get(dtype)
    if not rate or cards < 1 or tokens_per_second < 0:
        return None
    peak = rate * cards
    return Utilization(
        mfu=tokens_per_second * token_operations / peak,
        token_operations=token_operations,
        peak=peak,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """What so many cards reached together."""

    cards: int
    tokens_per_second: float


def scaling_efficiency(base: Speed, more: Speed) -> float:
    """1 where twice the cards are twice as fast.

    :raises ValueError: if the base did nothing, or has no cards.
    """
    if base.cards < 1 or more.cards < 1 or base.tokens_per_second <= 0:
        raise ValueError(
            f"scaling needs a base that ran, got {base.tokens_per_second} tokens/s on {base.cards} cards"
        )
    return (more.tokens_per_second / base.tokens_per_second) / (more.cards / base.cards)
