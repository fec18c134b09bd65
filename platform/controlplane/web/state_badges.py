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


def _state_badge(label: str | Promise, icon: str, colour: str) -> StateBadge:
    return StateBadge(label=label, icon=icon, colour=colour)


STATE_BADGES: Mapping[str, StateBadge] = {
    "waiting": _state_badge(_("waiting"), "clock", "yellow"),
    "pending": _state_badge(_("waiting"), "clock", "yellow"),
    "admitted": _state_badge(_("preparing"), "settings", "blue"),
    "launched": _state_badge(_("starting"), "settings", "blue"),
    "starting": _state_badge(_("starting"), "settings", "blue"),
    "importing": _state_badge(_("importing"), "download", "blue"),
    "running": _state_badge(_("running"), "player-play", "blue"),
    "completing": _state_badge(_("finishing"), "refresh", "blue"),
    "stopping": _state_badge(_("stopping"), "player-pause", "orange"),
    "revoking": _state_badge(_("giving back"), "player-pause", "orange"),
    "succeeded": _state_badge(_("succeeded"), "circle-check", "green"),
    "ready": _state_badge(_("ready"), "circle-check", "green"),
    "usable": _state_badge(_("usable"), "circle-check", "green"),
    "degraded": _state_badge(_("degraded"), "alert-triangle", "orange"),
    "backoff": _state_badge(_("restarting"), "refresh", "orange"),
    "failed": _state_badge(_("failed"), "circle-x", "red"),
    "isolated": _state_badge(_("isolated"), "shield", "red"),
    "held": _state_badge(pgettext_lazy("pipeline", "held at a gate"), "hourglass", "orange"),
    "skipped": _state_badge(pgettext_lazy("step", "skipped"), "chevron-right", "secondary"),
    "cancelled": _state_badge(_("cancelled"), "player-stop", "secondary"),
    "stopped": _state_badge(_("stopped"), "player-stop", "secondary"),
    "released": _state_badge(_("released"), "player-stop", "secondary"),
    "no_new_work": _state_badge(_("no new work"), "lock", "secondary"),
    "unknown": _state_badge(_("unknown"), "alert-triangle", "secondary"),
    "open": _state_badge(pgettext_lazy("queue", "open"), "circle-check", "green"),
    "closed": _state_badge(pgettext_lazy("queue", "closed"), "lock", "secondary"),
    "draining": _state_badge(pgettext_lazy("queue", "draining"), "clock", "yellow"),
    "valid": _state_badge(_("valid"), "circle-check", "green"),
    "well": _state_badge(pgettext_lazy("part of the product", "works"), "circle-check", "green"),
    "troubled": _state_badge(_("in trouble"), "alert-triangle", "orange"),
    "down": _state_badge(pgettext_lazy("part of the product", "down"), "circle-x", "red"),
    "passed": _state_badge(pgettext_lazy("check", "passed"), "circle-check", "green"),
    "lacking": _state_badge(pgettext_lazy("check", "lacking"), "alert-triangle", "orange"),
    "cordoned": _state_badge(_("no new work"), "lock", "secondary"),
    "not_ready": _state_badge(_("not ready"), "circle-x", "red"),
    "on_time": _state_badge(_("on time"), "circle-check", "green"),
    "late": _state_badge(_("late"), "clock", "orange"),
    "failing": _state_badge(_("failing"), "circle-x", "red"),
    "stuck": _state_badge(_("stuck"), "alert-triangle", "red"),
    "unseen": _state_badge(_("not yet"), "clock", "secondary"),
    "expired": _state_badge(_("expired"), "clock", "secondary"),
    "deleted": _state_badge(_("deleted"), "trash", "secondary"),
    "removed": _state_badge(_("bytes removed"), "trash", "secondary"),
    "roomy": _state_badge(pgettext_lazy("storage", "enough room"), "circle-check", "green"),
    "near": _state_badge(pgettext_lazy("storage", "nearly full"), "alert-triangle", "orange"),
    "full": _state_badge(pgettext_lazy("storage", "over quota"), "circle-x", "red"),
    "unlimited": _state_badge(pgettext_lazy("storage", "no quota"), "info-circle", "secondary"),
    "revoked": _state_badge(_("revoked"), "circle-x", "secondary"),
    "untried": _state_badge(_("not called yet"), "circle-dashed", "secondary"),
    "working": _state_badge(_("working"), "circle-check", "green"),
    "paused": _state_badge(_("paused"), "player-pause", "secondary"),
    "switched_off": _state_badge(_("switched off"), "ban", "red"),
    "arrived": _state_badge(_("arrived"), "circle-check", "green"),
    "supported": _state_badge(pgettext_lazy("engine", "supported"), "circle-check", "green"),
    "experimental": _state_badge(pgettext_lazy("engine", "experimental"), "alert-circle", "yellow"),
    "legacy": _state_badge(pgettext_lazy("engine", "older release"), "history", "orange"),
    "unsupported": _state_badge(pgettext_lazy("engine", "unsupported"), "ban", "red"),
    "unsaid": _state_badge(_("unknown"), "help-circle", "secondary"),
    "elsewhere": _state_badge(
        pgettext_lazy("engine", "not rendered here"), "circle-dashed", "secondary"
    ),
    "accepted": _state_badge(pgettext_lazy("quantized model", "accepted"), "circle-check", "green"),
    "rejected": _state_badge(pgettext_lazy("quantized model", "not accepted"), "circle-x", "red"),
    "overridden": _state_badge(
        pgettext_lazy("quantized model", "accepted by a person"), "alert-circle", "yellow"
    ),
    "given_up": _state_badge(_("given up"), "circle-x", "red"),
    "proposed": _state_badge(pgettext_lazy("rearrangement", "proposed"), "clock", "yellow"),
    "approved": _state_badge(pgettext_lazy("rearrangement", "approved"), "circle-check", "blue"),
    "under_way": _state_badge(pgettext_lazy("rearrangement", "under way"), "player-play", "blue"),
    "done": _state_badge(pgettext_lazy("rearrangement", "done"), "circle-check", "green"),
    "dismissed": _state_badge(pgettext_lazy("rearrangement", "dismissed"), "ban", "secondary"),
    "planned": _state_badge(pgettext_lazy("move", "not begun"), "clock", "secondary"),
    "landing": _state_badge(pgettext_lazy("move", "waits for its cards"), "hourglass", "yellow"),
    "landed": _state_badge(pgettext_lazy("move", "goes on"), "circle-check", "green"),
    "ended": _state_badge(pgettext_lazy("move", "was over already"), "circle-check", "green"),
    "missed": _state_badge(pgettext_lazy("move", "too late"), "circle-x", "red"),
    "dropped": _state_badge(pgettext_lazy("move", "not made"), "ban", "secondary"),
    "fault_standing": _state_badge(pgettext_lazy("fault", "standing"), "alert-triangle", "red"),
    "fault_acknowledged": _state_badge(pgettext_lazy("fault", "acknowledged"), "check", "yellow"),
    "fault_over": _state_badge(pgettext_lazy("fault", "over"), "circle-check", "green"),
    "level_1": _state_badge("L1", "info-circle", "secondary"),
    "level_2": _state_badge("L2", "alert-circle", "yellow"),
    "level_3": _state_badge("L3", "alert-circle", "yellow"),
    "level_4": _state_badge("L4", "alert-triangle", "orange"),
    "level_5": _state_badge("L5", "alert-triangle", "red"),
    "level_6": _state_badge("L6", "circle-x", "red"),
    "isolation_draining": _state_badge(
        pgettext_lazy("isolation", "being emptied"), "hourglass", "orange"
    ),
    "isolation_empty": _state_badge(pgettext_lazy("isolation", "out of use"), "shield", "red"),
    "isolation_testing": _state_badge(
        pgettext_lazy("isolation", "being tested"), "activity", "blue"
    ),
    "isolation_returned": _state_badge(
        pgettext_lazy("isolation", "back in use"), "circle-check", "green"
    ),
    "critical": _state_badge(pgettext_lazy("alert", "critical"), "circle-x", "red"),
    "warning": _state_badge(pgettext_lazy("alert", "warning"), "alert-triangle", "orange"),
    "info": _state_badge(pgettext_lazy("alert", "info"), "info-circle", "blue"),
    "firing": _state_badge(pgettext_lazy("alert", "firing"), "bell", "red"),
    "over": _state_badge(pgettext_lazy("alert", "over"), "circle-check", "green"),
    "resolved": _state_badge(pgettext_lazy("alert", "over"), "circle-check", "green"),
    "more": _state_badge(pgettext_lazy("alert", "more of it"), "bell", "orange"),
    "repeat": _state_badge(pgettext_lazy("alert", "told again"), "bell", "orange"),
    "at_work": _state_badge(pgettext_lazy("node", "command runs"), "player-play", "blue"),
    "testing": _state_badge(pgettext_lazy("node", "being tested"), "heart-rate-monitor", "blue"),
    "agent_well": _state_badge(pgettext_lazy("agent", "heard"), "circle-check", "green"),
    "agent_silent": _state_badge(pgettext_lazy("agent", "silent"), "clock", "orange"),
    "agent_unseen": _state_badge(
        pgettext_lazy("agent", "never connected"), "circle-dashed", "secondary"
    ),
    "agent_gone": _state_badge(pgettext_lazy("agent", "its node is gone"), "ban", "secondary"),
    "silencing": _state_badge(pgettext_lazy("silence", "stands"), "player-pause", "blue"),
}


def state_badge(state: str) -> StateBadge:
    """Return the badge of a state; unknown states are shown by name."""
    return STATE_BADGES.get(state) or StateBadge(
        label=state.replace("_", " "), icon="info-circle", colour="secondary"
    )
