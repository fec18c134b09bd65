"""Label, icon and colour of each state: one table for every page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy


@dataclass(frozen=True, slots=True)
class StateBadge:
    """Label, icon and colour of a state; never colour alone."""

    label: str | Promise
    icon: str
    #: A colour of the base style sheet: green, blue, yellow, orange, red, secondary.
    colour: str


STATE_BADGES: Mapping[str, StateBadge] = {
    "waiting": StateBadge(_("waiting"), "clock", "yellow"),
    "pending": StateBadge(_("waiting"), "clock", "yellow"),
    "admitted": StateBadge(_("preparing"), "settings", "blue"),
    "launched": StateBadge(_("starting"), "settings", "blue"),
    "starting": StateBadge(_("starting"), "settings", "blue"),
    "updating": StateBadge(_("updating"), "refresh", "blue"),
    "importing": StateBadge(_("importing"), "download", "blue"),
    "running": StateBadge(_("running"), "player-play", "blue"),
    "completing": StateBadge(_("completing"), "refresh", "blue"),
    "stopping": StateBadge(_("stopping"), "player-pause", "orange"),
    "revoking": StateBadge(_("releasing"), "player-pause", "orange"),
    "succeeded": StateBadge(_("succeeded"), "circle-check", "green"),
    "ready": StateBadge(_("ready"), "circle-check", "green"),
    "usable": StateBadge(_("usable"), "circle-check", "green"),
    "degraded": StateBadge(_("degraded"), "alert-triangle", "orange"),
    "backoff": StateBadge("CrashLoopBackOff", "refresh", "orange"),
    "failed": StateBadge(_("failed"), "circle-x", "red"),
    "isolated": StateBadge(_("isolated"), "shield", "red"),
    "held": StateBadge(
        pgettext_lazy("pipeline", "waiting for approval at a gate"), "hourglass", "orange"
    ),
    "skipped": StateBadge(pgettext_lazy("step", "skipped"), "chevron-right", "secondary"),
    "cancelled": StateBadge(_("cancelled"), "player-stop", "secondary"),
    "stopped": StateBadge(_("stopped"), "player-stop", "secondary"),
    "released": StateBadge(_("released"), "player-stop", "secondary"),
    "no_new_work": StateBadge(_("cordoned"), "lock", "secondary"),
    "unknown": StateBadge(_("unknown"), "alert-triangle", "secondary"),
    "open": StateBadge(pgettext_lazy("queue", "open"), "circle-check", "green"),
    "closed": StateBadge(pgettext_lazy("queue", "closed"), "lock", "secondary"),
    "draining": StateBadge(pgettext_lazy("queue", "draining"), "clock", "yellow"),
    "valid": StateBadge(_("valid"), "circle-check", "green"),
    "well": StateBadge(pgettext_lazy("part of the product", "works"), "circle-check", "green"),
    "down": StateBadge(pgettext_lazy("part of the product", "down"), "circle-x", "red"),
    "passed": StateBadge(pgettext_lazy("check", "passed"), "circle-check", "green"),
    "lacking": StateBadge(
        pgettext_lazy("check", "passed with restrictions"), "alert-triangle", "orange"
    ),
    "cordoned": StateBadge(_("cordoned"), "lock", "secondary"),
    "not_ready": StateBadge(_("not ready"), "circle-x", "red"),
    "on_time": StateBadge(_("healthy"), "circle-check", "green"),
    "late": StateBadge(_("lagging"), "clock", "orange"),
    "failing": StateBadge(_("failing"), "circle-x", "red"),
    "stuck": StateBadge(_("not finishing"), "alert-triangle", "red"),
    "unseen": StateBadge(_("not run yet"), "clock", "secondary"),
    "expired": StateBadge(_("expired"), "clock", "secondary"),
    "deleted": StateBadge(_("deleted"), "trash", "secondary"),
    "removed": StateBadge(_("files removed"), "trash", "secondary"),
    "roomy": StateBadge(pgettext_lazy("storage", "within quota"), "circle-check", "green"),
    "near": StateBadge(
        pgettext_lazy("storage", "quota almost used up"), "alert-triangle", "orange"
    ),
    "full": StateBadge(pgettext_lazy("storage", "over quota"), "circle-x", "red"),
    "unlimited": StateBadge(pgettext_lazy("storage", "unlimited"), "info-circle", "secondary"),
    "revoked": StateBadge(_("revoked"), "circle-x", "secondary"),
    "untried": StateBadge(_("no deliveries"), "circle-dashed", "secondary"),
    "working": StateBadge(_("working"), "circle-check", "green"),
    "complete": StateBadge(pgettext_lazy("rollout", "complete"), "circle-check", "green"),
    "progressing": StateBadge(pgettext_lazy("rollout", "in progress"), "refresh", "blue"),
    "paused": StateBadge(_("paused"), "player-pause", "secondary"),
    "switched_off": StateBadge(_("disabled"), "ban", "red"),
    "arrived": StateBadge(_("delivered"), "circle-check", "green"),
    "supported": StateBadge(pgettext_lazy("engine", "supported"), "circle-check", "green"),
    "experimental": StateBadge(pgettext_lazy("engine", "experimental"), "alert-circle", "yellow"),
    "legacy": StateBadge(
        pgettext_lazy("engine", "supported by an older release only"), "history", "orange"
    ),
    "unsupported": StateBadge(pgettext_lazy("engine", "unsupported"), "ban", "red"),
    "unsaid": StateBadge(_("unknown"), "help-circle", "secondary"),
    "elsewhere": StateBadge(
        pgettext_lazy("engine", "not supported by Ninefold"), "circle-dashed", "secondary"
    ),
    "accepted": StateBadge(pgettext_lazy("quantized model", "accepted"), "circle-check", "green"),
    "rejected": StateBadge(pgettext_lazy("quantized model", "not accepted"), "circle-x", "red"),
    "overridden": StateBadge(
        pgettext_lazy("quantized model", "quality accepted by a user"), "alert-circle", "yellow"
    ),
    "given_up": StateBadge(_("failed permanently"), "circle-x", "red"),
    "proposed": StateBadge(pgettext_lazy("defragmentation plan", "proposed"), "clock", "yellow"),
    "approved": StateBadge(
        pgettext_lazy("defragmentation plan", "approved"), "circle-check", "blue"
    ),
    "under_way": StateBadge(
        pgettext_lazy("defragmentation plan", "in progress"), "player-play", "blue"
    ),
    "done": StateBadge(pgettext_lazy("defragmentation plan", "done"), "circle-check", "green"),
    "dismissed": StateBadge(pgettext_lazy("defragmentation plan", "dismissed"), "ban", "secondary"),
    "planned": StateBadge(pgettext_lazy("move", "not started"), "clock", "secondary"),
    "landing": StateBadge(pgettext_lazy("move", "pending"), "hourglass", "yellow"),
    "landed": StateBadge(pgettext_lazy("move", "resumed"), "circle-check", "green"),
    "ended": StateBadge(
        pgettext_lazy("move", "workload had already ended"), "circle-check", "green"
    ),
    "missed": StateBadge(pgettext_lazy("move", "timed out"), "circle-x", "red"),
    "dropped": StateBadge(pgettext_lazy("move", "not executed"), "ban", "secondary"),
    "fault_standing": StateBadge(pgettext_lazy("fault", "open"), "alert-triangle", "red"),
    "fault_acknowledged": StateBadge(pgettext_lazy("fault", "acknowledged"), "check", "yellow"),
    "fault_over": StateBadge(pgettext_lazy("fault", "resolved"), "circle-check", "green"),
    "level_1": StateBadge("L1", "info-circle", "secondary"),
    "level_2": StateBadge("L2", "alert-circle", "yellow"),
    "level_3": StateBadge("L3", "alert-circle", "yellow"),
    "level_4": StateBadge("L4", "alert-triangle", "orange"),
    "level_5": StateBadge("L5", "alert-triangle", "red"),
    "level_6": StateBadge("L6", "circle-x", "red"),
    "isolation_draining": StateBadge(
        pgettext_lazy("isolation", "draining workloads"), "hourglass", "orange"
    ),
    "isolation_empty": StateBadge(pgettext_lazy("isolation", "isolated"), "shield", "red"),
    "isolation_testing": StateBadge(
        pgettext_lazy("isolation", "burn-in running"), "activity", "blue"
    ),
    "isolation_returned": StateBadge(
        pgettext_lazy("isolation", "returned to service"), "circle-check", "green"
    ),
    "critical": StateBadge(pgettext_lazy("alert", "critical"), "circle-x", "red"),
    "warning": StateBadge(pgettext_lazy("alert", "warning"), "alert-triangle", "orange"),
    "info": StateBadge(pgettext_lazy("alert", "info"), "info-circle", "blue"),
    "firing": StateBadge(pgettext_lazy("alert", "firing"), "bell", "red"),
    "over": StateBadge(pgettext_lazy("alert", "resolved"), "circle-check", "green"),
    "resolved": StateBadge(pgettext_lazy("alert", "resolved"), "circle-check", "green"),
    "more": StateBadge(pgettext_lazy("alert", "additional alerts"), "bell", "orange"),
    "repeat": StateBadge(pgettext_lazy("alert", "repeat notification"), "bell", "orange"),
    "at_work": StateBadge(pgettext_lazy("node", "command running"), "player-play", "blue"),
    "testing": StateBadge(pgettext_lazy("node", "burn-in running"), "heart-rate-monitor", "blue"),
    "agent_well": StateBadge(pgettext_lazy("agent", "connected"), "circle-check", "green"),
    "agent_silent": StateBadge(pgettext_lazy("agent", "stale"), "clock", "orange"),
    "agent_unseen": StateBadge(
        pgettext_lazy("agent", "never connected"), "circle-dashed", "secondary"
    ),
    "agent_gone": StateBadge(pgettext_lazy("agent", "node removed"), "ban", "secondary"),
    "silencing": StateBadge(pgettext_lazy("silence", "active"), "player-pause", "blue"),
}


def state_badge(state: str) -> StateBadge:
    """Return the badge of a state; unknown states are shown by name."""
    return STATE_BADGES.get(state) or StateBadge(
        label=state.replace("_", " "), icon="info-circle", colour="secondary"
    )
