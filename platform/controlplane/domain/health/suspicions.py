"""Suspicions: nodes and cards where jobs crash that run well elsewhere.

One crash is weak evidence: programs are broken more often than cards. Elimination tells the two apart. A job
that crashed on a node and succeeded without it is evidence against the node; one that fails wherever it runs is
evidence against itself. So each crashed job weighs, for each node that it used when it crashed,

::

            crashes with the node        1                    1     it succeeded elsewhere
    weight = ─────────────────────  ×  ──────────────────  ×  1/2   it did not, and its log indicates hardware
                 its crashes           nodes in question      1/4   it did not, and its log indicates nothing

times the share of its owner's crashing jobs that crashed there: a flaky program fails evenly over the nodes, a
broken node causes crashes of many. Nodes where the same job succeeded are not in question. Jobs that never
succeeded weigh at most one in total for an owner. The sum is multiplied by the share of the jobs there that
crashed, since a node where most jobs succeed is healthy.

A suspicion evicts no workloads: the card or node is cordoned and tested when it is idle.

The log of a crashed job indicates the cause of the crash. It is under the control of its owner, who can print an
error of a card. So it is evidence, which is weighed together with that of other jobs and other nodes, and no
sufficient reason to isolate a card. Its lines are searched for signatures. A fault of the program takes
precedence, since its consequences (a collective that times out on the other ranks) look like a hardware error;
of the others the strongest counts, and of equals the last.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from controlplane.domain.common.reasons import Reason
from controlplane.domain.health.faults import SignalOrigin
from controlplane.domain.health.recommended_actions import (
    RecommendedAction,
    is_action_redundant,
    is_fault_handled,
)
from controlplane.domain.health.snapshots import (
    AttemptRunView,
    CrashOrigin,
    DecisionPolicy,
    HealthAction,
    HealthSnapshot,
    NodeView,
)

_UNPROVEN: Mapping[CrashOrigin, float] = {
    CrashOrigin.HARDWARE: 0.5,
    CrashOrigin.UNCLEAR: 0.25,
    CrashOrigin.PROGRAM: 0.0,
}
#: What the jobs of one owner weigh together where none of them ended well.
_MOST_UNPROVEN = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSuspicion:
    """A node that crashes jobs, or those of its cards that all the crashes have in common."""

    node: str
    #: Empty: they point at no card in particular.
    cards: tuple[str, ...]
    score: float
    reason: str
    #: When the first of the crashes was.
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class _JobCrashEvidence:
    """The evidence of one job about one node."""

    job: str
    owner: str
    weight: float
    proven: bool
    crashes: tuple[AttemptRunView, ...]


def suspicion_actions(
    snapshot: HealthSnapshot, policy: DecisionPolicy, at: datetime
) -> Iterator[RecommendedAction]:
    """A reset when idle for each suspicious target that still accepts workloads."""
    for suspicion in suspicious_nodes(snapshot, policy, at):
        node = snapshot.nodes[suspicion.node]
        for card in suspicion.cards or ("",):
            if not is_action_redundant(node, card, HealthAction.RESET_WHEN_IDLE):
                aimed = "" if node.binds_by_node else card
                yield RecommendedAction(
                    node=node,
                    card=aimed,
                    action=HealthAction.RESET_WHEN_IDLE,
                    reason=suspicion.reason,
                    began_at=suspicion.since,
                    fault=_newest_open_fault(snapshot, node.uid, card),
                )


def suspicious_nodes(
    snapshot: HealthSnapshot, policy: DecisionPolicy, at: datetime
) -> tuple[NodeSuspicion, ...]:
    """The nodes whose score reaches the policy's, by uid."""
    recent = [run for run in snapshot.runs if run.ended_at > at - policy.suspicion_within]
    ran: dict[str, list[AttemptRunView]] = defaultdict(list)
    for run in recent:
        for place in run.places:
            ran[place].append(run)
    counts: dict[str, list[_JobCrashEvidence]] = defaultdict(list)
    for runs in _runs_by_job(recent).values():
        for uid, count in _crash_evidence_by_node(runs):
            counts[uid].append(count)
    spread = _crashed_jobs_per_owner(counts)
    found = []
    for uid, known in sorted(counts.items()):
        node = snapshot.nodes.get(uid)
        if node is None:
            continue
        back = _last_node_release_at(snapshot, node)
        fresh = [each for each in known if back is None or each.crashes[0].ended_at > back]
        here = [run for run in ran[uid] if back is None or run.ended_at > back]
        suspicion = _node_suspicion(node, fresh, here, spread)
        if suspicion is not None and suspicion.score >= policy.suspicion:
            found.append(suspicion)
    return tuple(found)


def _runs_by_job(runs: Sequence[AttemptRunView]) -> dict[str, list[AttemptRunView]]:
    jobs: dict[str, list[AttemptRunView]] = defaultdict(list)
    for run in sorted(runs, key=lambda run: run.ended_at):
        jobs[run.job].append(run)
    return jobs


def _crash_evidence_by_node(
    runs: Sequence[AttemptRunView],
) -> Iterator[tuple[str, _JobCrashEvidence]]:
    """The evidence of one job's attempts about each node in question."""
    crashes = [run for run in runs if run.failed is not None]
    if any(run.failed is CrashOrigin.PROGRAM for run in crashes):
        return
    cleared = {node for run in runs if run.failed is None for node in run.places}
    proven = any(run.failed is None for run in runs)
    for node in sorted({node for run in crashes for node in run.places} - cleared):
        there = tuple(run for run in crashes if node in run.places)
        fewest = min(len(set(run.places) - cleared) for run in there)
        base = 1.0 if proven else max(_UNPROVEN[run.failed] for run in there if run.failed)
        yield (
            node,
            _JobCrashEvidence(
                job=there[0].job,
                owner=there[0].owner,
                weight=len(there) / len(crashes) / fewest * base,
                proven=proven,
                crashes=there,
            ),
        )


def _crashed_jobs_per_owner(counts: Mapping[str, Sequence[_JobCrashEvidence]]) -> Mapping[str, int]:
    """Owner → how many of its jobs crashed, wherever."""
    jobs: dict[str, set[str]] = defaultdict(set)
    for known in counts.values():
        for count in known:
            jobs[count.owner].add(count.job)
    return {owner: len(crashed) for owner, crashed in jobs.items()}


def _node_suspicion(
    node: NodeView,
    counts: Sequence[_JobCrashEvidence],
    here: Sequence[AttemptRunView],
    spread: Mapping[str, int],
) -> NodeSuspicion | None:
    if not counts:
        return None
    owners: dict[str, list[_JobCrashEvidence]] = defaultdict(list)
    for count in counts:
        owners[count.owner].append(count)
    weight = 0.0
    for owner, own in owners.items():
        unproven = sum(count.weight for count in own if not count.proven)
        proven = sum(count.weight for count in own if count.proven)
        weight += (proven + min(unproven, _MOST_UNPROVEN)) * len(own) / spread[owner]
    jobs = {run.job for run in here}
    score = weight * len(counts) / len(jobs)
    elsewhere = sum(count.proven for count in counts)
    return NodeSuspicion(
        node=node.uid,
        cards=_common_cards(node, counts, here),
        score=score,
        reason=Reason(
            "health.suspicion.crash_rate",
            "{crashed} of {jobs} jobs crashed here, of which {succeeded_elsewhere} "
            "succeeded elsewhere; suspicion score {score}",
            crashed=len(counts),
            jobs=len(jobs),
            succeeded_elsewhere=elsewhere,
            score=f"{score:.1f}",
        ),
        since=min(count.crashes[0].ended_at for count in counts),
    )


def _common_cards(
    node: NodeView, counts: Sequence[_JobCrashEvidence], here: Sequence[AttemptRunView]
) -> tuple[str, ...]:
    """Cards that every crashed job used and no successful one; empty if that is inconclusive."""
    common = {card.uid for card in node.cards}
    for count in counts:
        common &= {card for run in count.crashes for card in run.places[node.uid]}
    for run in here:
        if run.failed is None:
            common -= set(run.places[node.uid])
    return () if len(common) == len(node.cards) else tuple(sorted(common))


def _last_node_release_at(snapshot: HealthSnapshot, node: NodeView) -> datetime | None:
    """Last release of the node or of a card of it: earlier crashes are handled."""
    uids = (node.uid, *(card.uid for card in node.cards))
    return max((snapshot.released[uid] for uid in uids if uid in snapshot.released), default=None)


def _newest_open_fault(snapshot: HealthSnapshot, node: str, card: str) -> str:
    """Uid of the newest fault that a crash left there and nothing was done about; empty: none."""
    left = [
        (fault.began_at, fault.uid)
        for fault in snapshot.faults
        if fault.origin == SignalOrigin.JOB
        and fault.node == node
        and (not card or fault.card in {"", card})
        and not is_fault_handled(snapshot, fault.uid, HealthAction.RESET_WHEN_IDLE)
    ]
    return max(left)[1] if left else ""


#: Number of characters at the end of a log that are searched.
_LONGEST_TAIL: Final = 64_000
_LONGEST_LINE: Final = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class CrashSignature:
    """A text that a kind of crash leaves in a log."""

    #: A stable code, followed by the captured text, if any.
    code: str
    blame: CrashOrigin
    pattern: re.Pattern[str]
    #: Vendor whose fault map contains the captured code; empty if none.
    vendor: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedCrash:
    """The signature that was found."""

    code: str
    blame: CrashOrigin
    #: The matching line.
    line: str
    vendor: str = ""
    #: The vendor's own code, where the signature holds one.
    fault: str = ""


#: ``NVRM: Xid (PCI:0000:3b:00): 79, …``, as the driver writes it, or just ``Xid 79``.
_XID: Final = r"\bxid\b[^\d\n]{0,40}?(?:\([^)\n]*\):?\s*)?"
#: Code and pattern by blame; in the order of their weight among those of the same blame, the weakest first.
_PATTERNS: Final[Mapping[CrashOrigin, tuple[tuple[str, str], ...]]] = {
    CrashOrigin.PROGRAM: (
        ("out-of-memory", r"outofmemoryerror|out of memory\b"),
        # An index out of range or a label that there is none of.
        ("device-assert", r"device-side assert triggered"),
        ("no-space", r"no space left on device"),
    ),
    # A collective gives up when one member is late: for a broken link, a slow card, or because its program died.
    CrashOrigin.UNCLEAR: (
        ("nccl-timeout", r"watchdog caught collective operation timeout"),
        ("nccl-error", r"\bnccl (?:error|warn).*|ncclSystemError|ncclRemoteError"),
        ("hccl-timeout", r"\bhccl.*(?:time ?out|notify wait)"),
        # CANN: a letter for the kind of error, another for the module (I: collectives, J: their transport).
        ("cann", r"\b(E[IJ]\d{4})\b"),
        ("cuda-illegal-access", r"an illegal memory access was encountered"),
        ("xid", rf"{_XID}(\d{{1,4}})\b"),
        ("nan", r"\bloss(?:'|\")?\s*[:=]\s*nan\b|nan (?:or inf )?(?:found|detected) in"),
    ),
    # Of the card, its links or its node.
    CrashOrigin.HARDWARE: (
        ("nvlink", r"nvlink (?:error|failure)|uncorrectable nvlink error"),
        ("launch-failure", r"unspecified launch failure|hardware stack error"),
        ("npu-error", r"\b(?:hbm|aicore|ai core).*(?:ecc|multi.?bit|hardware).*(?:error|fault)"),
        ("bus-error", r"\bbus error\b|\bSIGBUS\b"),
        ("ecc", r"uncorrectable ecc error|ecc error encountered"),
        ("device-lost", r"device (?:is )?lost|no longer (?:connected|available) on the bus"),
        ("off-the-bus", r"fallen off the bus"),
        # After these the driver requires a reset or service; the others end a program, often by its own fault.
        (
            "xid",
            rf"{_XID}(46|48|54|62|64|74|79|95|1(?:09|10|19|20|36|4[03-9]|5[0568]|6[02]))\b",
        ),
    ),
}
#: Vendor of the codes that a signature captures.
_VENDORS: Final = {"xid": "nvidia"}
SIGNATURES: Final = tuple(
    CrashSignature(
        code=code,
        blame=blame,
        pattern=re.compile(pattern, re.IGNORECASE),
        vendor=_VENDORS.get(code, ""),
    )
    for blame, patterns in _PATTERNS.items()
    for code, pattern in patterns
)
_STRENGTH: Final = {CrashOrigin.UNCLEAR: 0, CrashOrigin.HARDWARE: 1, CrashOrigin.PROGRAM: 2}


def find_crash_signature(tail: str) -> LoggedCrash | None:
    """The signature at the end of a log; None if there is no known one."""
    found: tuple[tuple[int, int], LoggedCrash] | None = None
    for line in tail[-_LONGEST_TAIL:].splitlines():
        for place, known in enumerate(SIGNATURES):
            match = known.pattern.search(line[:_LONGEST_LINE])
            if match is None:
                continue
            rank = (_STRENGTH[known.blame], place)
            if found is None or rank >= found[0]:
                found = rank, _parse_crash(known, match, line)
    return None if found is None else found[1]


def _parse_crash(known: CrashSignature, match: re.Match[str], line: str) -> LoggedCrash:
    own = (match[1] or "") if known.pattern.groups else ""
    return LoggedCrash(
        code=f"{known.code}-{own}".rstrip("-"),
        blame=known.blame,
        line=line.strip()[:_LONGEST_LINE],
        vendor=known.vendor if own else "",
        fault=own if known.vendor else "",
    )
