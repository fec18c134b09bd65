"""Bad days, one by one: each begins with a fleet in which everything works, and says what went wrong."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

from django.db.models import Count

from apps.fleet.models import Card
from apps.monitoring.models import Decision, Fault, Isolation
from apps.monitoring.reconcilers.metric_sources import stale_cards_reconcile
from apps.monitoring.services.health_notifications import decisions_notify
from apps.notifications.models import Event
from controlplane.domain.alerts.notifications import NotificationKind
from controlplane.domain.common.accelerators import CardState
from controlplane.outbox.models import OutboxMessage
from tests.benchmarks.queues.processors import spent
from tests.drill import databases
from tests.drill.company import Company
from tests.drill.faults import FLAPPING, HARMLESS, WORST, Node
from tests.drill.scoring import Checks, Measurement, Outcome

_BURST = 200
_BEAT = 5
#: Rounds of silence that are played, one beat each.
_ITERATIONS = 8


def burst(company: Company) -> Outcome:
    """Cards of as many nodes break at once, where an operator allows for that; the gangs on them move."""
    checks = Checks()
    count = min(_BURST, len(company.nodes) // 6)
    hit = company.draws.sample(company.nodes, count)
    # As many nodes at once are beyond what the policy allows by itself.
    company.allow(nodes_per_window=count)
    for node in hit:
        company.voices.say(node.name, company.draws.randrange(node.cards), WORST[node.vendor])
    began = time.perf_counter()
    company.voices.report_all(at=company.at)
    company.turn()
    isolated = time.perf_counter() - began
    out = len(company.out())
    stopped = company.hit_gangs()
    company.follow()
    company.admit()
    placed = time.perf_counter() - began
    company.follow()
    running = time.perf_counter() - began
    checks.that(out == count, f"{out} of {count} cards are out of use")
    checks.that(company.waiting() == 0, f"{company.waiting()} of {stopped} gangs were not placed")
    return Outcome(
        name="burst",
        wrong=tuple(checks.wrong),
        metrics=(
            Measurement(name=f"burst of {count}: isolated", value=isolated, unit="s", most=5),
            Measurement(
                name=f"burst of {count}: {stopped} gangs placed again",
                value=placed,
                unit="s",
                most=10,
            ),
            Measurement(name=f"burst of {count}: they run again", value=running, unit="s"),
            _misplaced(company),
        ),
    )


def flapping(company: Company) -> Outcome:
    """What costs a restart each time it comes is isolated when it came too often, and not before."""
    checks = Checks()
    for vendor in company.voices.vendors:
        node, (code, often) = _some(company, vendor), FLAPPING[vendor]
        for nth in range(1, often + 1):
            company.voices.say(node.name, 0, code)
            company.voices.report(node.name, at=company.later(timedelta(minutes=20)))
            company.turn()
            company.recover()
            out = company.is_out(node.name, 0)
            checks.that(out == (nth == often), f"{vendor}: out of use is {out} after {nth} times")
            company.voices.hush(node.name)
            company.voices.report(node.name, at=company.later(timedelta(minutes=20)))
            company.turn()
        checks.that(len(company.out()) == 1, f"{vendor}: {len(company.out())} cards are out of use")
        company.mend()
    return Outcome(name="flapping card", wrong=tuple(checks.wrong))


def unreachable_node(company: Company) -> Outcome:
    """Nothing is heard of one node, by its cluster or of its cards; all others go on."""
    checks, (lost, *_) = Checks(), company.draws.sample(company.nodes, 1)
    company.voices.report_all(at=company.at)
    unreachable_at, isolated = company.at, float("inf")
    company.voices.condition(lost.name, "Ready")
    for _ in range(_ITERATIONS):
        company.later(timedelta(seconds=_BEAT))
        company.voices.report_all(at=company.at, but=[lost.name])
        company.voices.report_conditions(at=company.at)
        stale_cards_reconcile(at=company.at)
        company.turn()
        if Isolation.objects.filter(ended_at=None, node__name=lost.name, card=None).exists():
            isolated = (company.at - unreachable_at).total_seconds()
            break
    company.recover()
    others = {node for node, _ in company.out()} - {lost.name}
    checks.that(not others, f"nodes that are heard went out of use too: {sorted(others)[:3]}")
    checks.that(company.waiting() == 0, f"{company.waiting()} gangs were not placed again")
    metric = Measurement(name="silent node isolated (virtual)", value=isolated, unit="s", most=15)
    return Outcome(name="silent node", wrong=tuple(checks.wrong), metrics=(metric,))


def outage(company: Company) -> Outcome:
    """Monitoring dies: no exporter answers, and the cluster says of every node that it is not heard."""
    checks = Checks()
    company.voices.report_all(at=company.at)
    before = Decision.objects.filter(outcome=Decision.Outcome.DONE).count()
    for node in company.nodes:
        company.voices.condition(node.name, "Ready")
    for _ in range(_ITERATIONS):
        company.later(timedelta(seconds=_BEAT))
        company.voices.report_conditions(at=company.at)
        stale_cards_reconcile(at=company.at)
        company.turn()
    done = Decision.objects.filter(outcome=Decision.Outcome.DONE).count() - before
    unusable = Card.objects.exclude(state=CardState.USABLE).count()
    checks.that(not company.out(), f"{len(company.out())} cards were taken out of use")
    checks.that(done == 0, f"{done} decisions were acted upon")
    checks.that(unusable == 0, f"{unusable} cards take no work any more")
    return Outcome(name="monitoring outage", wrong=tuple(checks.wrong))


def database_restart(company: Company) -> Outcome:
    """The connection of a turn is killed in the middle; a later turn does the rest, and nothing is half done."""
    checks = Checks()
    hit = company.draws.sample(company.nodes, min(10, len(company.nodes) // 4))
    for node in hit:
        company.voices.say(node.name, 0, WORST[node.vendor])
        company.voices.report(node.name, at=company.at)
    cut = databases.turn_cut_off(company.turn)
    checks.that(cut.broke, "the turn ended before its connection was killed")
    torn = _torn(company)
    checks.that(not torn, f"half done after the cut: {torn[:3]}")
    recovered = databases.until(lambda: company.turn() >= 0 and len(company.out()) >= len(hit))
    checks.that(len(company.out()) == len(hit), f"{len(company.out())} of {len(hit)} cards are out")
    checks.that(not _torn(company), f"half done in the end: {_torn(company)[:3]}")
    twice = (
        Isolation.objects.filter(ended_at=None)
        .values("node", "card")
        .annotate(times=Count("pk"))
        .filter(times__gt=1)
        .count()
    )
    checks.that(twice == 0, f"{twice} places were isolated twice")
    company.recover()
    return Outcome(
        name="database restart",
        wrong=tuple(checks.wrong),
        metrics=(Measurement(name="cut off until isolated", value=recovered, unit="s", most=40),),
        summary=f"cut off after {cut.statements} statements",
    )


def garbage(company: Company) -> Outcome:
    """Half of the exporters print what no card can be, or no text at all; what is really wrong is still seen."""
    checks = Checks()
    mad, sound = company.nodes[::2], company.nodes[1::2]
    broken = company.draws.choice(sound)
    company.voices.say(broken.name, 0, WORST[broken.vendor])
    texts: dict[str, list[tuple[Node, str]]] = {vendor: [] for vendor in company.voices.vendors}
    for number, node in enumerate(mad):
        text = company.voices.text(node)
        texts[node.vendor].append((node, _GARBAGE[number % len(_GARBAGE)](text)))
    for node in sound:
        texts[node.vendor].append((node, company.voices.text(node)))
    recorded = company.voices.read(texts, at=company.later(timedelta(seconds=_BEAT)))
    company.turn()
    company.recover()
    good = sum(node.cards for node in sound)
    out = company.out()
    refused, stored = sum(one.refused for one in recorded), sum(one.cards for one in recorded)
    checks.that(out == {(broken.name, 0)}, f"out of use are {sorted(out)[:5]}")
    checks.that(refused > 0, "nothing was refused")
    checks.that(stored >= good, f"figures of {stored} cards were kept, {good} are good")
    return Outcome(
        name="half the fleet prints garbage",
        wrong=tuple(checks.wrong),
        summary=f"{refused} values refused",
    )


def storm(company: Company) -> Outcome:
    """More breaks at once than the policy lets rules take out: the rest is held back, and a person is told."""
    checks = Checks()
    hit = company.draws.sample(company.nodes, max(2, len(company.nodes) * 2 // 5))
    for node in hit:
        for index in range(node.cards):
            company.voices.say(node.name, index, WORST[node.vendor])
    company.voices.report_all(at=company.at)
    last = OutboxMessage.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    company.turn()
    company.recover()
    first = company.out()
    for _ in range(3):
        company.turn()
        company.later(timedelta(seconds=_BEAT))
    out = company.out()
    allowed = _allowed(company)
    held = Decision.objects.filter(at__gte=company.at - timedelta(minutes=1)).filter(
        outcome=Decision.Outcome.HELD_BACK
    )
    checks.that(len(out) <= allowed, f"{len(out)} cards are out of use; {allowed} are allowed")
    checks.that(bool(out), "nothing was taken out of use")
    checks.that(first == out, "more was taken out of use by the turns that followed")
    checks.that(held.exists(), "nothing was held back")
    asked = OutboxMessage.objects.filter(pk__gt=last, topic="decisions.held_back")
    for message in asked:
        decisions_notify(uids=message.payload["decision_uids"])
    notified = Event.objects.filter(
        kind=NotificationKind.HEALTH_HELD_BACK, subject_uid=company.cluster.uid
    )
    checks.that(notified.exists(), "no person was told")
    share = f"{len(out)} of {sum(node.cards for node in hit)} cards out of use"
    summary = f"{share}, {held.count()} decisions held back"
    return Outcome(
        name="storm beyond the guard",
        wrong=tuple(checks.wrong),
        metrics=(_misplaced(company),),
        summary=summary,
    )


def throughput(company: Company) -> Outcome:
    """Every card says something harmless at once: texts in, faults and decisions written."""
    for node in company.nodes:
        for index in range(node.cards):
            company.voices.say(node.name, index, HARMLESS[node.vendor][-1])
    before, began = spent(), time.perf_counter()
    known = Fault.objects.count()
    conditions = company.voices.report_all(at=company.at)
    recorded = spent().since(before)
    company.turn()
    wall, used = time.perf_counter() - began, spent().since(before)
    wrong = [] if Fault.objects.count() - known == conditions else ["not every sign became a fault"]
    return Outcome(
        name="events",
        wrong=tuple(wrong),
        metrics=(
            Measurement(
                name=f"{conditions} events, from text to decision",
                value=conditions / max(1e-9, used.ours + used.database),
                unit="/s a core",
                least=1000,
            ),
            Measurement(
                name="… from text to fault",
                value=conditions / max(1e-9, recorded.ours + recorded.database),
                unit="/s a core",
            ),
            Measurement(name="… of the wall", value=conditions / wall, unit="/s"),
        ),
    )


SCENARIOS: Mapping[str, Callable[[Company], Outcome]] = {
    "burst": burst,
    "flapping": flapping,
    "silent": unreachable_node,
    "outage": outage,
    "database": database_restart,
    "garbage": garbage,
    "storm": storm,
    "events": throughput,
}
_GARBAGE: Sequence[Callable[[str], str]] = (
    lambda text: _with(text, "NaN"),
    lambda text: _with(text, "-1"),
    lambda text: _with(text, "+Inf"),
    lambda text: _with(text, "1e300"),
    lambda text: text[: len(text) // 2],
    lambda text: "<html><body>502 Bad Gateway</body></html>\n",
    lambda text: "",
    lambda text: text.replace('="', '="elsewhere-'),
)


def _with(text: str, value: str) -> str:
    """Every value is that one."""
    return "".join(f"{line.rsplit(' ', 1)[0]} {value}\n" for line in text.splitlines())


def _some(company: Company, vendor: str) -> Node:
    return company.draws.choice([node for node in company.nodes if node.vendor == vendor])


def _misplaced(company: Company) -> Measurement:
    return Measurement(
        name="placed on a card out of use", value=company.placed_on_isolated(), most=0
    )


def _allowed(company: Company) -> int:
    """A tenth of each vendor's cards, on ten nodes; or of a small pool the first node."""
    pools = [
        sum(node.cards for node in company.nodes if node.vendor == vendor)
        for vendor in company.voices.vendors
    ]
    a_node = max(node.cards for node in company.nodes)
    return min(10 * a_node, sum(max(a_node, pool // 10) for pool in pools))


def _torn(company: Company) -> list[str]:
    """Places where a card's state and the row of its isolation say different things."""
    whole, single = set(), set()
    for stay in Isolation.objects.filter(ended_at=None).select_related("node", "card"):
        if stay.card is None:
            whole.add(stay.node.name)
        else:
            single.add((stay.node.name, stay.card.index))
    out = company.out()
    alone = {place for place in out - single if place[0] not in whole}
    return [f"{node}/{index}" for node, index in sorted(alone | (single - out))]
