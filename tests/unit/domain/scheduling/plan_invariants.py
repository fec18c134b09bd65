"""What every plan must keep to, checked with books of its own: nothing of the scheduler's is asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from controlplane.domain.common.accelerators import CardState
from controlplane.domain.common.topology import Geometry, choose_cards
from controlplane.domain.quotas.claims import WHOLE_CARD
from controlplane.domain.quotas.queues import ChipQuota, QueueSnapshot
from controlplane.domain.scheduling.plans import (
    ClaimEviction,
    ClaimPlacement,
    PendingReasonCode,
    SchedulingPlan,
)
from controlplane.domain.scheduling.snapshots import (
    CardSelection,
    ClaimSnapshot,
    NodeSnapshot,
    ReplicaPlacement,
    RunningClaim,
    SchedulingSnapshot,
)

TOTAL = ""


def check(seen: SchedulingSnapshot, decided: SchedulingPlan) -> None:
    """:raises AssertionError: if the plan breaks a promise."""
    everybody_gets_one_answer(seen, decided)
    for placement in decided.placements:
        claim = next(each for each in seen.claims if each.uid == placement.claim)
        gang_is_whole(claim, placement)
        gang_stands_where_it_may(seen, claim, placement)
    no_card_is_given_twice(seen, decided)
    caps_hold(seen, decided)
    per_user_limits_hold(seen, decided)
    reserves_are_left_alone(seen, decided)
    only_borrowers_and_the_less_urgent_stop(seen, decided)


def everybody_gets_one_answer(seen: SchedulingSnapshot, decided: SchedulingPlan) -> None:
    answers = [(each.claim, each.reason) for each in decided.placements]
    answers += [(each.claim, each.reason) for each in decided.pending]
    assert sorted(uid for uid, _ in answers) == sorted(claim.uid for claim in seen.claims)
    assert all(reason for _, reason in answers)


def gang_is_whole(claim: ClaimSnapshot, placement: ClaimPlacement) -> None:
    """Of each role all replicas, or where it is elastic at least the fewest; each with all of its cards."""
    assert placement.chip in claim.chips
    roles = {role.name: role for role in claim.shape.roles}
    counted = Counter(replica.role for replica in placement.replicas)
    assert set(counted) == set(roles)
    for name, role in roles.items():
        assert role.fewest <= counted[name] <= role.replicas
        indices = [each.index for each in placement.replicas if each.role == name]
        assert sorted(indices) == list(range(counted[name]))
    for replica in placement.replicas:
        assert replica.count == roles[replica.role].cards
        assert len(replica.cards) in (0, replica.count)


def gang_stands_where_it_may(
    seen: SchedulingSnapshot, claim: ClaimSnapshot, placement: ClaimPlacement
) -> None:
    nodes = {node.uid: node for node in seen.nodes}
    hosts = [nodes[replica.node] for replica in placement.replicas]
    assert len({host.cluster for host in hosts}) == 1
    if claim.within and len({host.uid for host in hosts}) > 1:
        assert len({host.domains[claim.within] for host in hosts}) == 1
    for host, replica in zip(hosts, placement.replicas, strict=True):
        assert host.accepts_workloads
        assert all(host.labels.get(name) == value for name, value in claim.selector.items())
        if host.binding is CardSelection.CARD:
            _hangs_together(host, replica, placement.chip)


def _hangs_together(host: NodeSnapshot, replica: ReplicaPlacement, chip: str) -> None:
    """The cards are on that node, of that chip, and no group crosses a ring where the hardware forbids it."""
    cards = {card.uid: card for card in host.cards}
    assert len(replica.cards) == replica.count
    indices = [cards[uid].index for uid in replica.cards]
    assert all(cards[uid].chip == chip for uid in replica.cards)
    rules = host.geometries.get(chip, Geometry())
    assert not indices or choose_cards(indices, len(indices), rules) is not None
    if len(indices) <= max(map(len, rules.rings), default=0):
        assert sum(any(index in ring for index in indices) for ring in rules.rings) <= 1


def no_card_is_given_twice(seen: SchedulingSnapshot, decided: SchedulingPlan) -> None:
    """Nor one that is held, faulty, or kept for another; nor more memory or shares than there are."""
    roles = {(claim.uid, role.name): role for claim in seen.claims for role in claim.shape.roles}
    free = {
        card.uid: WHOLE_CARD - card.shared
        for node in seen.nodes
        for card in node.cards
        if card.held_by is None and card.state is CardState.USABLE
    }
    counts = Counter(
        (node.uid, card.chip)
        for node in seen.nodes
        for card in node.cards
        if card.uid in free and not card.nominated_for
    )
    nominated = {card.uid: card.nominated_for for node in seen.nodes for card in node.cards}
    placed = {each.claim for each in decided.placements}
    released = placed | decided.state.deferred
    memory = {node.uid: node.capacity.memory - node.allocated.memory for node in seen.nodes}
    for placement in decided.placements:
        for replica in placement.replicas:
            role = roles[placement.claim, replica.role]
            memory[replica.node] -= role.limits.memory
            for uid in replica.cards:
                assert nominated[uid] in ("", placement.claim) or nominated[uid] in released
                free[uid] -= role.share
                assert free[uid] >= 0
            whole = role.share == WHOLE_CARD and not any(nominated.values())
            if not replica.cards and whole:
                counts[replica.node, placement.chip] -= replica.count
    assert all(left >= 0 for left in counts.values())
    changed_rows = {replica.node for each in decided.placements for replica in each.replicas}
    asked = any(role.limits.memory for role in roles.values())
    assert not asked or all(memory[node] >= 0 for node in changed_rows)


# -- Queues --


def path_to_root(uid: str, queues: Mapping[str, QueueSnapshot]) -> Iterator[str]:
    above: str | None = uid
    while above is not None:
        yield above
        above = queues[above].parent


def held(seen: SchedulingSnapshot) -> Counter[tuple[str, str]]:
    """Thousandths of cards by queue and chip, and in all; those of queues below are counted in."""
    counted: Counter[tuple[str, str]] = Counter()
    for uid, queue in seen.queues.items():
        amounts = Counter({chip: cards * WHOLE_CARD for chip, cards in queue.used.items()})
        amounts.update(queue.shared)
        for chip, amount in amounts.items():
            for above in path_to_root(uid, seen.queues):
                counted[above, chip] += amount
                counted[above, TOTAL] += amount
    return counted


def added(seen: SchedulingSnapshot, decided: SchedulingPlan) -> Counter[tuple[str, str]]:
    counted: Counter[tuple[str, str]] = Counter()
    claims = {claim.uid: claim for claim in seen.claims}
    for placement in decided.placements:
        claim = claims[placement.claim]
        shares = {role.name: role.share for role in claim.shape.roles}
        amount = sum(replica.count * shares[replica.role] for replica in placement.replicas)
        for above in path_to_root(claim.queue, seen.queues):
            counted[above, placement.chip] += amount
            counted[above, TOTAL] += amount
    return counted


def reclaimed(seen: SchedulingSnapshot, decided: SchedulingPlan) -> Counter[tuple[str, str]]:
    """Cards by queue and chip that its claims get from others that stop; they count towards what is reserved."""
    claims = {claim.uid: claim for claim in seen.claims}
    victims = {each.claim: each.beneficiary for each in decided.revocations}
    from_others: Counter[tuple[str, str]] = Counter()
    for running in seen.running:
        beneficiary = running.revoked_for or victims.get(running.uid, "")
        if beneficiary in claims:
            from_others[beneficiary, running.chip] += sum(each.count for each in running.replicas)
    counted: Counter[tuple[str, str]] = Counter()
    for (beneficiary, chip), cards in from_others.items():
        for above in path_to_root(claims[beneficiary].queue, seen.queues):
            counted[above, chip] += min(cards, claims[beneficiary].shape.cards)
    return counted


def stated(queue: QueueSnapshot, chip: str) -> ChipQuota:
    return queue.entitlements.get(chip, ChipQuota()) if chip else queue.total


def caps_hold(seen: SchedulingSnapshot, decided: SchedulingPlan) -> None:
    """Who was above it already, as it was lowered, gets nothing more."""
    before, more = held(seen), added(seen, decided)
    for (queue, chip), amount in more.items():
        assert not amount or seen.queues[queue].open
        cap = stated(seen.queues[queue], chip).cap
        assert not amount or cap is None or before[queue, chip] + amount <= cap * WHOLE_CARD


def per_user_limits_hold(seen: SchedulingSnapshot, decided: SchedulingPlan) -> None:
    """Who ran more already, as the limit was lowered, gets nothing more."""
    counted: Counter[tuple[str, str]] = Counter()
    for running in seen.running:
        for above in path_to_root(running.queue, seen.queues):
            counted[above, running.user] += 1
    claims = {claim.uid: claim for claim in seen.claims}
    for placement in decided.placements:
        claim = claims[placement.claim]
        for above in path_to_root(claim.queue, seen.queues):
            counted[above, claim.user] += 1
            limit = seen.queues[above].max_running_per_user
            assert not claim.user or limit is None or counted[above, claim.user] <= limit


def reserves_are_left_alone(seen: SchedulingSnapshot, decided: SchedulingPlan) -> None:
    """What is reserved for a queue stays free for it, unless the fleet is too small for what is guaranteed."""
    before, more = (_in_cards(amounts) for amounts in (held(seen), added(seen, decided)))
    shared = chips_in_shares(seen, decided)
    coming = reclaimed(seen, decided)
    free: Counter[str] = Counter()
    for node in seen.nodes:
        for card in node.cards:
            free[card.chip] += node.accepts_workloads and card.free
    for chip, idle in free.items():
        roots = [uid for uid, queue in seen.queues.items() if queue.parent is None]
        if chip in shared:
            _whole_cards_are_left(seen, decided, chip, before, more)
            continue
        if sum(guaranteed_shortfall(uid, chip, seen, before) for uid in roots) > idle:
            continue
        without_usage = sum(
            max(
                0,
                stated(seen.queues[uid], chip).reserved
                - before[uid, chip]
                - more[uid, chip]
                - coming[uid, chip],
            )
            for uid in roots
        )
        taken = sum(more[uid, chip] for uid in roots)
        assert taken + without_usage <= idle or not taken


def _in_cards(amounts: Counter[tuple[str, str]]) -> Counter[tuple[str, str]]:
    """Whole cards that so much takes at least."""
    return Counter({key: -(-amount // WHOLE_CARD) for key, amount in amounts.items()})


def _whole_cards_are_left(
    seen: SchedulingSnapshot,
    decided: SchedulingPlan,
    chip: str,
    before: Mapping[tuple[str, str], int],
    more: Mapping[tuple[str, str], int],
) -> None:
    """Where shares are in use, cards are looked at rather than counted, for one queue that reserves some."""
    reserving = [uid for uid, queue in seen.queues.items() if stated(queue, chip).reserved]
    whole = {
        card.uid
        for node in seen.nodes
        for card in node.cards
        if card.chip == chip and node.accepts_workloads and card.free and not card.shared
    }
    taken = {uid for each in decided.placements for one in each.replicas for uid in one.cards}
    without_usage = sum(
        max(
            0,
            stated(seen.queues[uid], chip).reserved - before.get((uid, chip), 0) - more[uid, chip],
        )
        for uid in reserving
    )
    alone = len(reserving) == 1 and not any(
        queue.parent or stated(queue, chip).guaranteed > stated(queue, chip).reserved
        for queue in seen.queues.values()
    )
    started_whole = not any(
        role.share < WHOLE_CARD for claim in seen.claims for role in claim.shape.roles
    )
    if alone and started_whole and whole & taken and len(whole) >= without_usage:
        assert len(whole - taken) >= without_usage


def chips_in_shares(seen: SchedulingSnapshot, decided: SchedulingPlan) -> set[str]:
    """Chips whose cards cannot be counted: shares of several cards may leave none of them whole."""
    sharing = {
        claim.uid
        for claim in seen.claims
        if any(role.share < WHOLE_CARD for role in claim.shape.roles)
    }
    chips = {placement.chip for placement in decided.placements if placement.claim in sharing}
    return chips | {card.chip for node in seen.nodes for card in node.cards if card.shared}


def guaranteed_shortfall(
    uid: str, chip: str, seen: SchedulingSnapshot, before: Mapping[tuple[str, str], int]
) -> int:
    """Cards that the queue, or those below it, have a right to and do not hold."""
    below = sum(
        guaranteed_shortfall(child, chip, seen, before)
        for child, queue in seen.queues.items()
        if queue.parent == uid
    )
    own = stated(seen.queues[uid], chip).guaranteed - before.get((uid, chip), 0)
    return max(0, own, below)


def only_borrowers_and_the_less_urgent_stop(
    seen: SchedulingSnapshot, decided: SchedulingPlan
) -> None:
    running = {each.uid: each for each in seen.running}
    claims = {each.uid: each for each in seen.claims}
    awaiting = {
        each.claim for each in decided.pending if each.code is PendingReasonCode.AWAITING_EVICTIONS
    }
    beneficiaries = {each.revoked_for for each in seen.running if each.revoked_for}
    # Whatever was placed in this cycle may have made a borrower of its queue.
    used = held(seen) + added(seen, decided)
    for each in seen.running:
        if each.revoking:
            _leave(seen, used, each)
    assert len({each.claim for each in decided.revocations}) == len(decided.revocations)
    for revocation in decided.revocations:
        victim, beneficiary = running[revocation.claim], claims[revocation.beneficiary]
        assert victim.preemptible
        assert not victim.revoking
        assert beneficiary.uid in awaiting
        assert beneficiary.uid not in beneficiaries
        assert revocation.reason
        if victim.queue == beneficiary.queue:
            assert victim.priority < beneficiary.priority
    for revocation in decided.revocations:
        _is_a_borrower(seen, used, revocation, running[revocation.claim], claims)
        _leave(seen, used, running[revocation.claim])


def _is_a_borrower(
    seen: SchedulingSnapshot,
    used: Counter[tuple[str, str]],
    revocation: ClaimEviction,
    victim: RunningClaim,
    claims: Mapping[str, ClaimSnapshot],
) -> None:
    """Every queue above the victim that the heir is not below holds more than it is guaranteed."""
    beneficiary = claims[revocation.beneficiary]
    common = set(path_to_root(beneficiary.queue, seen.queues))
    for uid in path_to_root(victim.queue, seen.queues):
        if uid in common:
            break
        for chip in (victim.chip, TOTAL):
            guaranteed = stated(seen.queues[uid], chip).guaranteed
            assert not guaranteed or used[uid, chip] > guaranteed * WHOLE_CARD


def _leave(seen: SchedulingSnapshot, used: Counter[tuple[str, str]], running: RunningClaim) -> None:
    for uid in path_to_root(running.queue, seen.queues):
        used[uid, running.chip] -= running.amount
        used[uid, TOTAL] -= running.amount
