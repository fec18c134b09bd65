"""The status page: components and controllers, their descriptions, and remedies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from apps.accounts.web.requests import AuthenticatedRequest
from apps.console.selectors.system_status import (
    Component,
    ComponentCondition,
    ComponentKind,
    RecentError,
    product_status,
    require_product_status,
)
from apps.monitoring.selectors.controllers import Controller, lagging_controller_count
from controlplane.domain.common.resources import format_bytes
from controlplane.domain.health.controllers import ControllerHealth
from controlplane.persistence.reconcile_runs import RECENT_RUNS
from controlplane.web.message_translation import translate_message
from controlplane.web.pages import render_page
from controlplane.web.response_cache import TimedCache
from controlplane.web.templatetags.ninefold import duration

Word = str | Promise

CONTROLLER_TITLES: Mapping[str, Word] = {
    "config.tasks.relay_outbox": gettext_lazy("Outbox dispatcher"),
    "config.tasks.tidy_up": gettext_lazy("Cleanup"),
    "apps.quotas.tasks.run_cycle": gettext_lazy("Scheduler"),
    "apps.quotas.tasks.record_midnights": gettext_lazy("Midnight usage records"),
    "apps.quotas.tasks.roll_usage": gettext_lazy("Daily usage rollup"),
    "apps.quotas.tasks.compare_ledger": gettext_lazy("Usage ledger check"),
    "apps.quotas.tasks.refresh_forecasts": gettext_lazy("Forecaster"),
    "apps.quotas.tasks.reconcile_defragmentations": gettext_lazy("Defragmentation controller"),
    "apps.quotas.tasks.answer_what_ifs": gettext_lazy("What-if requests"),
    "apps.quotas.tasks.keep_copies": gettext_lazy("Queue sync"),
    "apps.jobs.tasks.reconcile_attempts": gettext_lazy("Job controller"),
    "apps.jobs.tasks.clean_up_launches": gettext_lazy("Orphaned job cleanup"),
    "apps.serving.tasks.reconcile_deployments": gettext_lazy("Deployment controller"),
    "apps.serving.tasks.clean_up_launches": gettext_lazy("Orphaned replica cleanup"),
    "apps.workflows.tasks.reconcile_pipelines": gettext_lazy("Pipeline controller"),
    "apps.serving.tasks.publish_snapshot": gettext_lazy("Gateway snapshot publisher"),
    "apps.fleet.tasks.reconcile_isolation": gettext_lazy("Team isolation"),
    "apps.fleet.tasks.sync_inventories": gettext_lazy("Cluster inventory"),
    "apps.models.tasks.import_models": gettext_lazy("Model imports"),
    "apps.models.tasks.import_from_hubs": gettext_lazy("Hub imports"),
    "apps.models.tasks.measure_storage": gettext_lazy("Storage usage"),
    "apps.models.tasks.apply_retention": gettext_lazy("Retention"),
    "apps.models.tasks.collect_garbage": gettext_lazy("Garbage collection"),
    "apps.monitoring.tasks.call_webhooks": gettext_lazy("Webhook deliveries"),
    "apps.monitoring.tasks.send_mails": gettext_lazy("E-mail delivery"),
    "apps.monitoring.tasks.read_sources": gettext_lazy("Metric source reader"),
    "apps.monitoring.tasks.diagnose_clusters": gettext_lazy("Cluster diagnosis"),
    "apps.monitoring.tasks.decide_health": gettext_lazy("Health policy"),
    "apps.monitoring.tasks.advance_isolations": gettext_lazy("Isolation controller"),
    "apps.monitoring.tasks.evaluate_health_rules": gettext_lazy("Health rules"),
    "apps.monitoring.tasks.detect_stale_cards": gettext_lazy("Stale card detection"),
    "apps.monitoring.tasks.tidy_history": gettext_lazy("Metric history"),
    "apps.monitoring.tasks.advance_rollouts": gettext_lazy("Maintenance rollouts"),
    "apps.monitoring.tasks.evaluate_alert_rules": gettext_lazy("Alert rules"),
    "apps.monitoring.tasks.send_alerts": gettext_lazy("Alert delivery"),
    "apps.monitoring.tasks.prune_events": gettext_lazy("Event cleanup"),
}

CONTROLLER_ADVICE: Mapping[ControllerHealth, Word] = {
    ControllerHealth.LATE: gettext_lazy("If others are late too, look at worker and beat above."),
    ControllerHealth.FAILING: gettext_lazy(
        "The error below says why; it is tried again by itself."
    ),
    ControllerHealth.STUCK: gettext_lazy(
        "Its run does not end. Restart the worker: the run is repeated."
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentText:
    """A part in words."""

    title: str
    #: What was found.
    found: str
    #: What helps; empty where nothing need be done.
    advice: str


def component_text(component: Component) -> ComponentText:
    """The part in the words of the reader's language."""
    part = _PARTS[component.kind]
    title = str(part.label)
    if component.name:
        name = _FOLDERS.get(component.name, component.name)
        title = _("%(kind)s: %(name)s") % {"kind": title, "name": name}
    return ComponentText(
        title=title,
        found=part.found(component),
        advice=str(part.advice.get(component.condition, "")),
    )


def controller_title(name: str) -> str:
    """The title of the controller of that task; an unknown one is shown by its task's name."""
    return str(CONTROLLER_TITLES.get(name, name.rpartition(".")[2].replace("_", " ")))


def error_title(error: RecentError) -> str:
    if error.kind == "controller":
        return controller_title(error.name)
    return _("%(kind)s: %(name)s") % {
        "kind": _PARTS[ComponentKind.CLUSTER].label,
        "name": error.name,
    }


def controller_advice(controller: Controller) -> str:
    return str(CONTROLLER_ADVICE.get(controller.health, ""))


_FOLDERS: Mapping[str, Word] = {
    "home": gettext_lazy("home folder"),
    "artifacts": gettext_lazy("artifact store"),
}


def _web_summary(it: Component) -> str:
    return _("answers; version %(version)s") % it.facts


def _worker_summary(it: Component) -> str:
    if it.condition is ComponentCondition.DOWN:
        amount = it.facts["waiting_calls"]
        return ngettext(
            "takes no work: %(amount)d call of the beat waits",
            "takes no work: %(amount)d calls of the beat wait",
            amount,
        ) % {"amount": amount}
    return _last_run_labels(it)


def _beat_summary(it: Component) -> str:
    if it.condition is ComponentCondition.DOWN:
        return _("sends no calls: no controller has run recently and no call is pending")
    return _last_run_labels(it)


def _last_run_labels(it: Component) -> str:
    if it.condition is ComponentCondition.UNKNOWN:
        return _("no controller has run recently")
    seconds = it.facts["quiet_seconds"]
    if seconds is None:
        return _("no run has succeeded yet")
    return _("last successful run of a controller %(amount)s ago") % {"amount": duration(seconds)}


def _database_summary(it: Component) -> str:
    return _("PostgreSQL %(version)s; %(size)s; %(used)d of %(most)d connections") % {
        "version": it.facts["version"],
        "size": format_bytes(it.facts["bytes"]),
        "used": it.facts["connections"],
        "most": it.facts["most_connections"],
    }


def _broker_summary(it: Component) -> str:
    if it.condition is ComponentCondition.DOWN:
        return _("does not answer: %(refusal)s") % it.facts
    amount = it.facts["messages"]
    return ngettext(
        "%(amount)d message waits for a worker", "%(amount)d messages wait for a worker", amount
    ) % {"amount": amount}


def _outbox_summary(it: Component) -> str:
    amount, unsubscribed = it.facts["messages"], it.facts["unheard"]
    if unsubscribed:
        return _(
            "%(aside)d of %(amount)d messages that wait are set aside: this version has no listener"
            " for %(topics)s"
        ) % {
            "aside": sum(unsubscribed.values()),
            "amount": amount,
            "topics": ", ".join(unsubscribed),
        }
    if not amount:
        return _("all messages are delivered")
    return ngettext(
        "%(amount)d piece of news waits, since %(age)s",
        "%(amount)d pieces of news wait, the oldest since %(age)s",
        amount,
    ) % {"amount": amount, "age": duration(it.facts["age_seconds"])}


def _gateway_summary(it: Component) -> str:
    if it.condition is ComponentCondition.DOWN:
        return _("has not asked for the snapshot lately; it has version %(snapshot)s") % it.facts
    if it.condition is ComponentCondition.DEGRADED:
        return _("has snapshot %(snapshot)s, the newest is %(newest_snapshot)s") % it.facts
    return _("has the newest snapshot, version %(snapshot)s") % it.facts


def _cluster_watch_summary(it: Component) -> str:
    if it.condition is ComponentCondition.DOWN:
        return _("no process follows the clusters")
    if it.condition is ComponentCondition.DEGRADED:
        return _("nothing is heard of %(names)s") % {"names": ", ".join(it.facts["silent"])}
    amount = it.facts["clusters"]
    return ngettext("follows %(amount)d cluster", "follows %(amount)d clusters", amount) % {
        "amount": amount
    }


def _cluster_summary(it: Component) -> str:
    if it.condition is ComponentCondition.DOWN:
        return translate_message(str(it.facts["error"]))
    return _("answers") if it.condition is ComponentCondition.WELL else _("not looked at lately")


def _agents_summary(it: Component) -> str:
    seconds, nodes = it.facts["oldest_seconds"], it.facts["nodes"]
    if seconds is None:
        return ngettext(
            "the agent of %(nodes)d node has a token; nothing was heard of it yet",
            "the agents of %(nodes)d nodes have tokens; nothing was heard of any yet",
            nodes,
        ) % {"nodes": nodes}
    return ngettext(
        "%(heard)d of %(nodes)d is heard; last %(amount)s ago",
        "%(heard)d of %(nodes)d are heard; the one quiet for the longest %(amount)s ago",
        nodes,
    ) % {"heard": it.facts["heard"], "nodes": nodes, "amount": duration(seconds)}


def _disk_summary(it: Component) -> str:
    return _("%(free)s of %(size)s free") % {
        "free": format_bytes(it.facts["free_bytes"]),
        "size": format_bytes(it.facts["bytes"]),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """What is said of one kind of part."""

    label: Word
    found: Callable[[Component], str]
    #: What helps, by the condition that it is in.
    advice: Mapping[ComponentCondition, Word] = field(default_factory=dict)


_PARTS: Mapping[ComponentKind, _Part] = {
    ComponentKind.WEB: _Part(label=gettext_lazy("Pages and REST"), found=_web_summary),
    ComponentKind.WORKER: _Part(
        label=gettext_lazy("Worker"),
        found=_worker_summary,
        advice={
            ComponentCondition.DEGRADED: gettext_lazy(
                "The processes work, but some controllers are unhealthy: see their rows below."
            ),
            ComponentCondition.DOWN: gettext_lazy(
                "Look at var/logs/worker.log and at “make status”. Running jobs go on, and nothing is"
                " lost: once a worker runs it goes on where the last one stopped."
            ),
            ComponentCondition.UNKNOWN: gettext_lazy(
                "Nobody can tell before the beat calls and the broker answers."
            ),
        },
    ),
    ComponentKind.BEAT: _Part(
        label=gettext_lazy("Beat"),
        found=_beat_summary,
        advice={
            ComponentCondition.DOWN: gettext_lazy(
                "Look at var/logs/beat.log and at “make status”; exactly one beat has to run."
            ),
            ComponentCondition.UNKNOWN: gettext_lazy(
                "No controller has run yet. If none has run after a minute, check “make status”."
            ),
        },
    ),
    ComponentKind.DATABASE: _Part(
        label=gettext_lazy("Database"),
        found=_database_summary,
        advice={
            ComponentCondition.DEGRADED: gettext_lazy(
                "Few connections are left: raise max_connections, or end what else uses this server."
            ),
        },
    ),
    ComponentKind.BROKER: _Part(
        label=gettext_lazy("Broker"),
        found=_broker_summary,
        advice={
            ComponentCondition.DOWN: gettext_lazy(
                "Check NINEFOLD_BROKER_URL and that the broker runs. Losing what it held costs time,"
                " not work."
            ),
        },
    ),
    ComponentKind.OUTBOX: _Part(
        label=gettext_lazy("Outbox"),
        found=_outbox_summary,
        advice={
            ComponentCondition.DEGRADED: gettext_lazy(
                "Outbox messages are pending: check the worker and the broker first. Messages that are"
                " set aside are delivered once web and worker run a version that handles them."
            ),
        },
    ),
    ComponentKind.GATEWAY: _Part(
        label=gettext_lazy("Gateway"),
        found=_gateway_summary,
        advice={
            ComponentCondition.DOWN: gettext_lazy(
                "Look at its log. It serves with its last snapshot for up to a day; its share of the"
                " limits has gone to the others."
            ),
            ComponentCondition.DEGRADED: gettext_lazy(
                "It asks, and does not take the newest snapshot: its log says why."
            ),
        },
    ),
    ComponentKind.WATCHER: _Part(
        label=gettext_lazy("Watcher"),
        found=_cluster_watch_summary,
        advice={
            ComponentCondition.DEGRADED: gettext_lazy(
                "What runs there goes on unseen: see the cluster's own row, and var/logs/watcher.log."
            ),
            ComponentCondition.DOWN: gettext_lazy(
                "Look at var/logs/watcher.log and at “make status”. Until one runs, what happens on the"
                " clusters is noticed some seconds later."
            ),
        },
    ),
    ComponentKind.CLUSTER: _Part(
        label=gettext_lazy("Cluster"),
        found=_cluster_summary,
        advice={
            ComponentCondition.DOWN: gettext_lazy(
                "What runs there goes on unseen, and nothing new starts there until it answers."
            ),
            ComponentCondition.UNKNOWN: gettext_lazy(
                "It was not checked recently: see the controller “Cluster inventory”."
            ),
        },
    ),
    ComponentKind.AGENTS: _Part(
        label=gettext_lazy("Agents of nodes"),
        found=_agents_summary,
        advice={
            ComponentCondition.DEGRADED: gettext_lazy(
                "An agent has fallen silent: the page of agents names it. Look at its log on the node; if"
                " the node is gone for good, revoke its token."
            ),
        },
    ),
    ComponentKind.DISK: _Part(
        label=gettext_lazy("Disk"),
        found=_disk_summary,
        advice={
            ComponentCondition.DEGRADED: gettext_lazy(
                "Make room before uploads and checkpoints fail: the storage page says what uses it."
            ),
            ComponentCondition.DOWN: gettext_lazy(
                "Make room now: uploads, checkpoints and the database itself are about to fail."
            ),
        },
    ),
}


#: The page's bars: how wide one turn is, and how high the longest.
BAR_WIDTH, BAR_GAP, BAR_HEIGHT = 3, 1, 18
WARNED_SECONDS = 10.0

#: The number of lagging controllers, for the line on top of every page.
lagging_controllers = TimedCache(lagging_controller_count, seconds=WARNED_SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class DurationBar:
    x: int
    y: int
    height: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerRow:
    controller: Controller
    title: str
    advice: str
    bars: tuple[DurationBar, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartRow:
    component: Component
    text: ComponentText


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorRow:
    error: RecentError
    title: str


@login_required
def status(request: AuthenticatedRequest) -> HttpResponse:
    """For operators and administrators; never still, so it goes on looking while it is looked at."""
    require_product_status(request.user)
    found = product_status()
    parts = [PartRow(component=one, text=component_text(one)) for one in found.components]
    context = {
        "status": found,
        "parts": parts,
        "controllers": [_controller_row(controller) for controller in found.controllers],
        "errors": [ErrorRow(error=one, title=error_title(one)) for one in found.errors],
        "bars_width": RECENT_RUNS * (BAR_WIDTH + BAR_GAP),
        "bars_height": BAR_HEIGHT,
    }
    return render_page(
        request, "console/system_status.html", context, fragment="now", changing=True
    )


def _controller_row(controller: Controller) -> ControllerRow:
    return ControllerRow(
        controller=controller,
        title=controller_title(controller.name),
        advice=controller_advice(controller),
        bars=_duration_bars(controller.recent),
    )


def _duration_bars(seconds: tuple[float, ...]) -> tuple[DurationBar, ...]:
    """One bar a turn, the newest at the right end; the longest fills the height."""
    longest = max(seconds, default=0.0) or 1.0
    first = RECENT_RUNS - len(seconds)
    bars = []
    for place, one in enumerate(seconds, start=first):
        height = max(1, round(one / longest * BAR_HEIGHT))
        bars.append(
            DurationBar(x=place * (BAR_WIDTH + BAR_GAP), y=BAR_HEIGHT - height, height=height)
        )
    return tuple(bars)
