"""Conversion of Launches to stored simulated launches, and of simulated state to observed nodes and Launches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from controlplane.adapters.clusters.simulated.store import ReportTarget, StoredLaunch
from controlplane.domain.common.accelerators import Chip, Dtype
from controlplane.domain.common.reasons import Reason
from controlplane.domain.common.topology import format_card_groups, network_labels
from controlplane.domain.simulation import reports, run_profiles
from controlplane.domain.simulation.fleets import SimulatedNode
from controlplane.domain.simulation.launch_lifecycle import (
    LaunchSnapshot,
    ReplicaLocation,
    SimulatedLaunchRecord,
    is_replica_affected,
)
from controlplane.domain.simulation.run_profiles import RunProfile
from controlplane.ports.chips import NUMA
from controlplane.ports.clusters import (
    ExitCause,
    ObservedCard,
    ObservedLaunch,
    ObservedNode,
    ObservedReplica,
    ReplicaPhase,
)
from controlplane.ports.launches import Launch

_TERMINATED = 143


def observed_node(node: SimulatedNode) -> ObservedNode:
    """The node with every card healthy."""
    group = node.group
    numa = {NUMA: format_card_groups(group.numa)} if group.numa else {}
    return ObservedNode(
        name=node.name,
        cards=tuple(
            ObservedCard(
                index=index,
                chip=group.chip.name,
                memory=group.chip.memory,
                serial=f"SIM-{node.name}-{index:02}",
            )
            for index in range(group.cards)
        ),
        capacity=group.capacity,
        labels={
            "hostname": node.name,
            **group.chip.node_labels,
            **numa,
            **network_labels(node.domains),
            **group.labels,
        },
        rings=group.rings,
    )


def observed_launch(current: LaunchSnapshot) -> ObservedLaunch:
    record = current.record
    return ObservedLaunch(
        name=record.name,
        replicas=tuple(
            _observed_replica(current, location, record.locations) for location in record.locations
        ),
        labels=record.labels,
    )


def _observed_replica(
    current: LaunchSnapshot, location: ReplicaLocation, locations: Sequence[ReplicaLocation]
) -> ObservedReplica:
    outcome = current.outcome
    seen = ObservedReplica(
        role=location.role,
        index=location.index,
        phase=ReplicaPhase(current.stage.value),
        message=current.message,
        started_at=current.started_at,
    )
    if outcome is None:
        return seen
    seen = replace(
        seen,
        exit_code=outcome.exit_code,
        cause=ExitCause(outcome.cause),
        ended_at=outcome.at,
    )
    if is_replica_affected(location, outcome):
        return seen
    first = next(one for one in locations if is_replica_affected(one, outcome))
    return replace(
        seen,
        phase=ReplicaPhase.EXITED,
        cause=ExitCause.STOPPED,
        exit_code=_TERMINATED,
        message=Reason(
            "launch.peer.failed",
            "stopped, because {role}-{index} failed: {reason}",
            role=first.role,
            index=first.index,
            reason=outcome.message,
        ),
    )


#: The secret of a Launch that its engine demands from callers.
_ENGINE_KEY = "NINEFOLD_ENGINE_KEY"
_TOKEN = "NINEFOLD_ATTEMPT_TOKEN"  # noqa: S105 - a variable's name
_REPORT_URL = "NINEFOLD_REPORT_URL"
#: Floating-point operations for a token of training: six for each of seven billion parameters.
_OPERATIONS_PER_TOKEN = 6 * 7.6e9
#: Of a card whose rates are not published.
_DEFAULT_RATE = 300e12


def sample_run_profile(
    launch: Launch, *, chips: Mapping[str, Chip], seed: int, mix: run_profiles.WorkloadDistribution
) -> RunProfile:
    """What its processes will do; ``chips`` are those of the nodes, by node.

    :raises controlplane.domain.simulation.run_profiles.RunProfileRefused: if a label cannot be read.
    """
    locations = list(_replica_locations(launch))
    requested = run_profiles.LaunchTraits(
        name=launch.name,
        role=launch.roles[0].name,
        cards=sum(len(location.cards) for location in locations),
        peak_tokens=sum(
            len(location.cards) * _chip_rate(chips[location.node]) for location in locations
        )
        / _OPERATIONS_PER_TOKEN,
        reports=bool(_report_url(launch)),
        labels=launch.labels,
    )
    return run_profiles.draw_run_profile(requested, seed=seed, mix=mix)


def build_stored_launch(
    launch: Launch,
    *,
    profile: RunProfile,
    speed: float,
    at: datetime,
    before: LaunchSnapshot | None,
) -> StoredLaunch:
    """Its record; one that goes on from ``before`` does the rest of the same work."""
    url = _report_url(launch)
    return StoredLaunch(
        number=0,
        record=SimulatedLaunchRecord(
            name=launch.name,
            locations=tuple(_replica_locations(launch)),
            profile=_remaining_profile(before.record.profile, profile) if before else profile,
            launched_at=at,
            speed=speed,
            reports=bool(url),
            probed=any(role.probe is not None for role in launch.roles),
            run_within=launch.run_within,
            initial_work=reports.simulated_checkpointed_work(before) if before else 0.0,
            labels=dict(launch.labels),
        ),
        ports={role.name: role.ports for role in launch.roles},
        engine_key=launch.secrets.get(_ENGINE_KEY, ""),
        report=ReportTarget(url=url, token=launch.secrets.get(_TOKEN, "")) if url else None,
        size=0,
    )


def _remaining_profile(before: RunProfile, profile: RunProfile) -> RunProfile:
    """A training that goes on follows the same curve, and what it died of is over."""
    if not before.steps:
        return profile
    return replace(
        profile,
        steps=before.steps,
        whole=before.whole,
        runs=before.whole,
        exit_code=0,
        error="",
        seed=before.seed,
    )


def _report_url(launch: Launch) -> str:
    return launch.roles[0].environment.get(_REPORT_URL, "")


def _replica_locations(launch: Launch) -> Iterator[ReplicaLocation]:
    for role in launch.roles:
        for index, placement in enumerate(role.placements):
            yield ReplicaLocation(
                role=role.name, index=index, node=placement.node, cards=placement.cards
            )


def _chip_rate(chip: Chip) -> float:
    rates = chip.peak_rates
    return rates.get(Dtype.BFLOAT16) or rates.get(Dtype.FLOAT16) or _DEFAULT_RATE
