"""How much one cycle does, from how long the last ones took."""

from __future__ import annotations

from dataclasses import dataclass, replace

from controlplane.domain.scheduling.policies import Policy

#: No cycle places more than so many times what its policy says.
MOST_TIMES = 10.0


@dataclass(slots=True)
class Pace:
    """What this process has seen of its cycles; nothing that is decided depends on it, only how much at once."""

    #: Of what a policy says, so many times.
    times: float = 1.0

    def widened(self, policy: Policy) -> Policy:
        """The policy with the bounds of the next cycle."""
        if policy.cycle is None or self.times <= 1.0:
            return policy
        return replace(
            policy,
            placements_per_cycle=round(policy.placements_per_cycle * self.times),
            attempts_per_cycle=round(policy.attempts_per_cycle * self.times),
        )

    def took(self, seconds: float, *, policy: Policy, unfinished: bool) -> None:
        """A cycle took so long; where it left claims unseen, the next one does what fits into its time."""
        if policy.cycle is None:
            return
        if unfinished or seconds > policy.cycle.total_seconds():
            # Not more than twice as much at once: what a cycle costs beside its placements is not known.
            fits = min(2.0, policy.cycle.total_seconds() / max(seconds, 1e-3))
            self.times = min(MOST_TIMES, max(1.0, self.times * fits))
