"""Labels, meanings and remedies of faults, in the reader's language."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from apps.fleet.web import LEVELS
from apps.monitoring.models import Decision, Fault, Isolation
from controlplane.domain.health.faults import REMEDIES, FaultLevel, SignalOrigin
from controlplane.domain.health.isolations import IsolationState
from controlplane.domain.health.snapshots import HealthAction
from controlplane.ports import adapter_registry
from controlplane.web.reasons import render_reason

ORIGINS: Mapping[SignalOrigin, Promise] = {
    SignalOrigin.EXPORTER: gettext_lazy("card exporter"),
    SignalOrigin.AGENT: gettext_lazy("node agent"),
    SignalOrigin.CONDITION: gettext_lazy("node condition"),
    SignalOrigin.EVENT: gettext_lazy("cluster event"),
    SignalOrigin.MINDCLUSTER: gettext_lazy("MindCluster"),
    SignalOrigin.NVSENTINEL: gettext_lazy("NVSentinel"),
    SignalOrigin.JOB: gettext_lazy("failed job"),
    SignalOrigin.RULE: gettext_lazy("health rule"),
    SignalOrigin.SILENCE: gettext_lazy("heartbeat timeout"),
    SignalOrigin.USER: gettext_lazy("operator"),
}
ACTIONS: Mapping[HealthAction, Promise] = {
    HealthAction.NOTE: gettext_lazy("record only"),
    HealthAction.RESTART_REQUEST: gettext_lazy("retry the request"),
    HealthAction.RESTART_JOB: gettext_lazy("restart the job"),
    HealthAction.RESET_WHEN_IDLE: gettext_lazy("cordon the card and reset it when idle"),
    HealthAction.RESET_NOW: gettext_lazy("reset now"),
    HealthAction.ISOLATE_CARD: gettext_lazy("isolate the card"),
    HealthAction.ISOLATE_NODE: gettext_lazy("isolate the node"),
    HealthAction.RELEASE: gettext_lazy("return to service"),
}
OUTCOMES: Mapping[str, Promise] = {
    Decision.Outcome.DONE: pgettext_lazy("decision", "done"),
    Decision.Outcome.HELD_BACK: pgettext_lazy("decision", "suppressed"),
    Decision.Outcome.FOLLOWED: pgettext_lazy("decision", "delegated"),
    Decision.Outcome.OVERTAKEN: pgettext_lazy("decision", "obsolete"),
}
ISOLATIONS: Mapping[str, Promise] = {
    IsolationState.DRAINING: gettext_lazy("running workloads save a checkpoint and stop"),
    IsolationState.EMPTY: gettext_lazy("no workloads; waiting for a burn-in or for an operator"),
    IsolationState.TESTING: gettext_lazy("burn-in running"),
    IsolationState.RETURNED: gettext_lazy("returned to service"),
}
_CAUSES: Mapping[SignalOrigin, Promise] = {
    SignalOrigin.SILENCE: gettext_lazy("No heartbeat from the node."),
    SignalOrigin.CONDITION: gettext_lazy("The cluster reports the node as unhealthy."),
    SignalOrigin.JOB: gettext_lazy("A job failed with a hardware-related error."),
    SignalOrigin.RULE: gettext_lazy(
        "The metrics of the card exceed the threshold of a health rule."
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DisplayedFaultRow:
    """A fault as pages show it."""

    fault: Fault
    #: ``L5`` and the action of that level.
    level: str
    recommendation: Promise
    #: Why it comes about and what to do, in sentences.
    cause: str
    remedy: str
    #: The text of its origin; empty if the reader may not see it or it adds nothing.
    message: str
    origin: Promise
    #: Address of the card's page, or the node's.
    href: str
    #: The open isolation of its target.
    isolation: Isolation | None = None
    isolation_word: Promise | str = ""

    @property
    def state(self) -> str:
        """As the table of state badges has it."""
        if self.fault.ended_at is not None:
            return "fault_over"
        return "fault_acknowledged" if self.fault.acknowledged_at else "fault_standing"

    @property
    def level_state(self) -> str:
        """Of its level."""
        return f"level_{self.fault.level}"

    @property
    def isolation_state(self) -> str:
        return f"isolation_{self.isolation.state}" if self.isolation else ""


def displayed_fault_row(
    fault: Fault, *, operates: bool, isolation: Isolation | None = None
) -> DisplayedFaultRow:
    """``operates``: the reader operates the fleet, and may read texts of machines and logs."""
    level, origin = FaultLevel(fault.level), SignalOrigin(fault.origin)
    cause, remedy = _cause_and_remedy(fault)
    message = render_reason(fault.message) if operates or origin is not SignalOrigin.JOB else ""
    if not cause:
        cause = (
            str(_CAUSES.get(origin, "")) or message or _("The vendor has not documented this code.")
        )
    return DisplayedFaultRow(
        fault=fault,
        level=f"L{level.value}",
        recommendation=LEVELS[level],
        cause=cause,
        remedy=remedy or _(REMEDIES[level]),
        message=message if message != cause else "",
        origin=ORIGINS[origin],
        href=location_url(fault),
        isolation=isolation,
        isolation_word=ISOLATIONS[isolation.state] if isolation else "",
    )


def fault_mark_text(fault: Fault, *, operates: bool) -> str:
    """Time, card or node, code and cause, in two lines; ``operates`` as for ``displayed_fault_row``."""
    time = timezone.localtime(fault.began_at).strftime("%Y-%m-%d %H:%M:%S %Z")
    cause = displayed_fault_row(fault, operates=operates).cause
    return f"{time} · {fault.card or fault.node}\n{fault.code}: {cause}"


def location_url(row: Fault | Isolation) -> str:
    """The page of its card, or of its node."""
    if row.card is not None:
        return reverse("card", args=[row.card.uid])
    return reverse("node", args=[row.node.cluster.uid, row.node.name])


def _cause_and_remedy(fault: Fault) -> tuple[str, str]:
    """Cause and remedy from the chip's plug-in; empty if it has none."""
    plugin = adapter_registry.chip_plugins().get(fault.vendor)
    if plugin is None:
        return "", ""
    meaning = plugin.profile().faults.meaning(fault.code)
    # gettext returns the header of its catalog for an empty text.
    return _(meaning.cause) if meaning.cause else "", _(meaning.remedy) if meaning.remedy else ""
