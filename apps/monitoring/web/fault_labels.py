"""Labels, meanings and remedies of faults, in the reader's language."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from apps.fleet.web.chips import LEVELS
from apps.monitoring.models import Decision, Fault, Isolation
from controlplane.domain.health.decisions import Action
from controlplane.domain.health.faults import REMEDIES, FaultLevel, Origin
from controlplane.domain.health.isolations import IsolationState
from controlplane.ports import registry
from controlplane.web.message_translation import translate_message

ORIGINS: Mapping[Origin, Promise] = {
    Origin.EXPORTER: gettext_lazy("the card's exporter"),
    Origin.AGENT: gettext_lazy("the node's agent"),
    Origin.CONDITION: gettext_lazy("a condition of the node"),
    Origin.EVENT: gettext_lazy("an event of the cluster"),
    Origin.MINDCLUSTER: gettext_lazy("MindCluster"),
    Origin.NVSENTINEL: gettext_lazy("NVSentinel"),
    Origin.JOB: gettext_lazy("a job that failed"),
    Origin.RULE: gettext_lazy("a rule over its figures"),
    Origin.SILENCE: gettext_lazy("silence"),
    Origin.USER: gettext_lazy("a person"),
}
ACTIONS: Mapping[Action, Promise] = {
    Action.NOTE: gettext_lazy("noted"),
    Action.RESTART_REQUEST: gettext_lazy("retry the request"),
    Action.RESTART_JOB: gettext_lazy("restart the job"),
    Action.RESET_WHEN_IDLE: gettext_lazy("cordon the card, reset when idle"),
    Action.RESET_NOW: gettext_lazy("reset now"),
    Action.ISOLATE_CARD: gettext_lazy("isolate the card"),
    Action.ISOLATE_NODE: gettext_lazy("isolate the node"),
    Action.RELEASE: gettext_lazy("give it back"),
}
OUTCOMES: Mapping[str, Promise] = {
    Decision.Outcome.DONE: pgettext_lazy("decision", "done"),
    Decision.Outcome.HELD_BACK: pgettext_lazy("decision", "held back"),
    Decision.Outcome.FOLLOWED: pgettext_lazy("decision", "left to others"),
    Decision.Outcome.OVERTAKEN: pgettext_lazy("decision", "no longer needed"),
}
ISOLATIONS: Mapping[str, Promise] = {
    IsolationState.DRAINING: gettext_lazy("what runs there saves and stops"),
    IsolationState.EMPTY: gettext_lazy("empty; waits for a test or a person"),
    IsolationState.TESTING: gettext_lazy("a burn-in runs there"),
    IsolationState.RETURNED: gettext_lazy("back in use"),
}
_CAUSES: Mapping[Origin, Promise] = {
    Origin.SILENCE: gettext_lazy("Nothing has been heard of the node."),
    Origin.CONDITION: gettext_lazy("The cluster says that the node is not well."),
    Origin.JOB: gettext_lazy("A job failed there in a way that points to the hardware."),
    Origin.RULE: gettext_lazy("Its figures are beyond what a rule allows."),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultLine:
    """A fault as pages show it."""

    fault: Fault
    #: ``L5`` and what that asks for.
    level: str
    recommendation: Promise
    #: Why it comes about and what to do, in sentences.
    cause: str
    remedy: str
    #: In its origin's words; empty where the reader may not see them or they say nothing more.
    message: str
    origin: Promise
    #: Address of the card's page, or the node's.
    href: str
    #: What is out of use there.
    isolation: Isolation | None = None
    isolation_word: Promise | str = ""

    @property
    def state(self) -> str:
        """As the table of looks has it."""
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


def fault_line(fault: Fault, *, operates: bool, isolation: Isolation | None = None) -> FaultLine:
    """``operates``: the reader operates the fleet, and may read what machines and logs say."""
    level, origin = FaultLevel(fault.level), Origin(fault.origin)
    cause, remedy = _cause_and_remedy(fault)
    message = translate_message(fault.message) if operates or origin is not Origin.JOB else ""
    if not cause:
        cause = (
            str(_CAUSES.get(origin, "")) or message or _("Its maker says nothing about this code.")
        )
    return FaultLine(
        fault=fault,
        level=f"L{level.value}",
        recommendation=LEVELS[level],
        cause=cause,
        remedy=remedy or translate_message(REMEDIES[level]),
        message=message if message != cause else "",
        origin=ORIGINS[origin],
        href=location_url(fault),
        isolation=isolation,
        isolation_word=ISOLATIONS[isolation.state] if isolation else "",
    )


def location_url(row: Fault | Isolation) -> str:
    """The page of its card, or of its node."""
    if row.card is not None:
        return reverse("card", args=[row.card.uid])
    return reverse("node", args=[row.node.cluster.uid, row.node.name])


def _cause_and_remedy(fault: Fault) -> tuple[str, str]:
    """Cause and remedy as the chip's plug-in words them; empty where it does not."""
    plugin = registry.chip_plugins().get(fault.vendor)
    if plugin is None:
        return "", ""
    meaning = plugin.profile().faults.meaning(fault.code)
    return translate_message(meaning.cause), translate_message(meaning.remedy)
