"""Which part of the weights one card holds under a plan."""

from __future__ import annotations

from dataclasses import dataclass

from controlplane.domain.architectures import Architecture
from controlplane.domain.jobs.parallelism import ParallelPlan, padded_vocabulary, stage_share


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Parameters on the card that holds most, before ZeRO."""

    #: Matrices that read and write tokens, their padding included.
    embedding: int
    #: Experts of a mixture.
    expert: int
    #: Everything else.
    body: int

    @property
    def parameters(self) -> int:
        return self.embedding + self.expert + self.body


def share(architecture: Architecture, plan: ParallelPlan) -> Share:
    """``body / tensor``, ``experts / (tensor · expert)``, each times the longest stage's share, and the tokens'
    matrices ``/ tensor``. With several stages the first holds one of them and the last the other, so the fullest
    card holds one.
    """
    if plan.cards == 1:
        expert = min(architecture.expert_parameters, architecture.parameters)
        embedding = min(architecture.embedding, architecture.parameters - expert)
        return Share(
            embedding=embedding,
            expert=expert,
            body=architecture.parameters - expert - embedding,
        )
    rows = padded_vocabulary(architecture.vocabulary, tensor=plan.tensor)
    matrices = 1 if architecture.tied or plan.pipeline > 1 else 2
    expert = min(architecture.expert_parameters, architecture.parameters)
    body = max(0, architecture.parameters - architecture.embedding - expert)
    stage = stage_share(architecture.layers, pipeline=plan.pipeline)
    return Share(
        embedding=_up(rows * architecture.hidden * matrices, plan.tensor),
        expert=_up(round(expert * stage), plan.tensor * plan.expert),
        body=_up(round(body * stage), plan.tensor),
    )


def _up(amount: int, parts: int) -> int:
    return -(-amount // parts)
