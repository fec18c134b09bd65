"""Label, icon and colour of each state: one table for every page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy


@dataclass(frozen=True, slots=True, kw_only=True)
class StateBadge:
    """Label, icon and colour of a state; never colour alone."""

    label: str | Promise
    icon: str
    #: A colour of the base style sheet: green, blue, yellow, orange, red, secondary.
    colour: str


def _badge(label: str | Promise, icon: str, colour: str) -> StateBadge:
    return StateBadge(label=label, icon=icon, colour=colour)


STATE_BADGES: Mapping[str, StateBadge] = {
    "waiting": _badge(_("waiting"), "clock", "yellow"),
    "pending": _badge(_("waiting"), "clock", "yellow"),
    "admitted": _badge(_("preparing"), "settings", "blue"),
    "launched": _badge(_("starting"), "settings", "blue"),
    "starting": _badge(_("starting"), "settings", "blue"),
    "importing": _badge(_("importing"), "download", "blue"),
    "running": _badge(_("running"), "player-play", "blue"),
    "completing": _badge(_("finishing"), "refresh", "blue"),
    "stopping": _badge(_("stopping"), "player-pause", "orange"),
    "revoking": _badge(_("giving back"), "player-pause", "orange"),
    "succeeded": _badge(_("succeeded"), "circle-check", "green"),
    "ready": _badge(_("ready"), "circle-check", "green"),
    "usable": _badge(_("usable"), "circle-check", "green"),
    "degraded": _badge(_("degraded"), "alert-triangle", "orange"),
    "backoff": _badge(_("restarting"), "refresh", "orange"),
    "failed": _badge(_("failed"), "circle-x", "red"),
    "isolated": _badge(_("isolated"), "shield", "red"),
    "held": _badge(pgettext_lazy("pipeline", "held at a gate"), "hourglass", "orange"),
    "skipped": _badge(pgettext_lazy("step", "skipped"), "chevron-right", "secondary"),
    "cancelled": _badge(_("cancelled"), "player-stop", "secondary"),
    "stopped": _badge(_("stopped"), "player-stop", "secondary"),
    "released": _badge(_("released"), "player-stop", "secondary"),
    "no_new_work": _badge(_("no new work"), "lock", "secondary"),
    "unknown": _badge(_("unknown"), "alert-triangle", "secondary"),
    "open": _badge(pgettext_lazy("queue", "open"), "circle-check", "green"),
    "closed": _badge(pgettext_lazy("queue", "closed"), "lock", "secondary"),
    "draining": _badge(pgettext_lazy("queue", "draining"), "clock", "yellow"),
    "valid": _badge(_("valid"), "circle-check", "green"),
    "well": _badge(pgettext_lazy("part of the product", "works"), "circle-check", "green"),
    "troubled": _badge(_("in trouble"), "alert-triangle", "orange"),
    "down": _badge(pgettext_lazy("part of the product", "down"), "circle-x", "red"),
    "passed": _badge(pgettext_lazy("check", "passed"), "circle-check", "green"),
    "lacking": _badge(pgettext_lazy("check", "lacking"), "alert-triangle", "orange"),
    "cordoned": _badge(_("no new work"), "lock", "secondary"),
    "not_ready": _badge(_("not ready"), "circle-x", "red"),
    "on_time": _badge(_("on time"), "circle-check", "green"),
    "late": _badge(_("late"), "clock", "orange"),
    "failing": _badge(_("failing"), "circle-x", "red"),
    "stuck": _badge(_("stuck"), "alert-triangle", "red"),
    "unseen": _badge(_("not yet"), "clock", "secondary"),
    "expired": _badge(_("expired"), "clock", "secondary"),
    "deleted": _badge(_("deleted"), "trash", "secondary"),
    "removed": _badge(_("bytes removed"), "trash", "secondary"),
    "roomy": _badge(pgettext_lazy("storage", "enough room"), "circle-check", "green"),
    "near": _badge(pgettext_lazy("storage", "nearly full"), "alert-triangle", "orange"),
    "full": _badge(pgettext_lazy("storage", "over quota"), "circle-x", "red"),
    "unlimited": _badge(pgettext_lazy("storage", "no quota"), "info-circle", "secondary"),
    "revoked": _badge(_("revoked"), "circle-x", "secondary"),
    "untried": _badge(_("not called yet"), "circle-dashed", "secondary"),
    "working": _badge(_("working"), "circle-check", "green"),
    "paused": _badge(_("paused"), "player-pause", "secondary"),
    "switched_off": _badge(_("switched off"), "ban", "red"),
    "arrived": _badge(_("arrived"), "circle-check", "green"),
    "supported": _badge(pgettext_lazy("engine", "supported"), "circle-check", "green"),
    "experimental": _badge(pgettext_lazy("engine", "experimental"), "alert-circle", "yellow"),
    "legacy": _badge(pgettext_lazy("engine", "older release"), "history", "orange"),
    "unsupported": _badge(pgettext_lazy("engine", "unsupported"), "ban", "red"),
    "unsaid": _badge(_("unknown"), "help-circle", "secondary"),
    "elsewhere": _badge(pgettext_lazy("engine", "not rendered here"), "circle-dashed", "secondary"),
    "accepted": _badge(pgettext_lazy("quantized model", "accepted"), "circle-check", "green"),
    "rejected": _badge(pgettext_lazy("quantized model", "not accepted"), "circle-x", "red"),
    "overridden": _badge(
        pgettext_lazy("quantized model", "accepted by a person"), "alert-circle", "yellow"
    ),
    "given_up": _badge(_("given up"), "circle-x", "red"),
    "proposed": _badge(pgettext_lazy("rearrangement", "proposed"), "clock", "yellow"),
    "approved": _badge(pgettext_lazy("rearrangement", "approved"), "circle-check", "blue"),
    "under_way": _badge(pgettext_lazy("rearrangement", "under way"), "player-play", "blue"),
    "done": _badge(pgettext_lazy("rearrangement", "done"), "circle-check", "green"),
    "dismissed": _badge(pgettext_lazy("rearrangement", "dismissed"), "ban", "secondary"),
    "planned": _badge(pgettext_lazy("move", "not begun"), "clock", "secondary"),
    "landing": _badge(pgettext_lazy("move", "waits for its cards"), "hourglass", "yellow"),
    "landed": _badge(pgettext_lazy("move", "goes on"), "circle-check", "green"),
    "ended": _badge(pgettext_lazy("move", "was over already"), "circle-check", "green"),
    "missed": _badge(pgettext_lazy("move", "too late"), "circle-x", "red"),
    "dropped": _badge(pgettext_lazy("move", "not made"), "ban", "secondary"),
    "fault_standing": _badge(pgettext_lazy("fault", "standing"), "alert-triangle", "red"),
    "fault_acknowledged": _badge(pgettext_lazy("fault", "acknowledged"), "check", "yellow"),
    "fault_over": _badge(pgettext_lazy("fault", "over"), "circle-check", "green"),
    "level_1": _badge("L1", "info-circle", "secondary"),
    "level_2": _badge("L2", "alert-circle", "yellow"),
    "level_3": _badge("L3", "alert-circle", "yellow"),
    "level_4": _badge("L4", "alert-triangle", "orange"),
    "level_5": _badge("L5", "alert-triangle", "red"),
    "level_6": _badge("L6", "circle-x", "red"),
    "isolation_draining": _badge(
        pgettext_lazy("isolation", "being emptied"), "hourglass", "orange"
    ),
    "isolation_empty": _badge(pgettext_lazy("isolation", "out of use"), "shield", "red"),
    "isolation_testing": _badge(pgettext_lazy("isolation", "being tested"), "activity", "blue"),
    "isolation_returned": _badge(
        pgettext_lazy("isolation", "back in use"), "circle-check", "green"
    ),
    "critical": _badge(pgettext_lazy("alert", "critical"), "circle-x", "red"),
    "warning": _badge(pgettext_lazy("alert", "warning"), "alert-triangle", "orange"),
    "info": _badge(pgettext_lazy("alert", "info"), "info-circle", "blue"),
    "firing": _badge(pgettext_lazy("alert", "firing"), "bell", "red"),
    "over": _badge(pgettext_lazy("alert", "over"), "circle-check", "green"),
    "resolved": _badge(pgettext_lazy("alert", "over"), "circle-check", "green"),
    "more": _badge(pgettext_lazy("alert", "more of it"), "bell", "orange"),
    "repeat": _badge(pgettext_lazy("alert", "told again"), "bell", "orange"),
    "at_work": _badge(pgettext_lazy("node", "command runs"), "player-play", "blue"),
    "testing": _badge(pgettext_lazy("node", "being tested"), "heart-rate-monitor", "blue"),
    "agent_well": _badge(pgettext_lazy("agent", "heard"), "circle-check", "green"),
    "agent_silent": _badge(pgettext_lazy("agent", "silent"), "clock", "orange"),
    "agent_unseen": _badge(pgettext_lazy("agent", "never heard"), "circle-dashed", "secondary"),
    "agent_gone": _badge(pgettext_lazy("agent", "its node is gone"), "ban", "secondary"),
    "silencing": _badge(pgettext_lazy("silence", "stands"), "player-pause", "blue"),
}


def state_badge(state: str) -> StateBadge:
    """Return the badge of a state; unknown states are shown by name."""
    return STATE_BADGES.get(state) or StateBadge(
        label=state.replace("_", " "), icon="info-circle", colour="secondary"
    )
