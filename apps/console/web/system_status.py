"""The status page: components and controllers, their descriptions, and remedies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from apps.accounts.web.http_requests import AuthenticatedRequest
from apps.console.selectors.system_status import (
    ComponentCondition,
    ComponentKind,
    ProductComponent,
    RecentError,
    product_status,
    require_permission_to_view_product_status,
)
from apps.monitoring.selectors.self_monitoring import ControllerStatus, lagging_controller_count
from controlplane.domain.common.resources import format_bytes
from controlplane.domain.health.controllers import ControllerHealth
from controlplane.persistence.reconcile_runs import RECENT_RUNS
from controlplane.web.pages import render_page
from controlplane.web.reasons import render_reason
from controlplane.web.response_cache import TimedCache
from controlplane.web.templatetags.ninefold import duration

Word = str | Promise

CONTROLLER_TITLES: Mapping[str, Word] = {
    "config.tasks.relay_outbox": gettext_lazy("Outbox message dispatcher"),
    "config.tasks.tidy_up": gettext_lazy("Cleanup"),
    "apps.quotas.tasks.run_cycle": gettext_lazy("Scheduler"),
    "apps.quotas.tasks.record_midnights": gettext_lazy("Midnight usage records"),
    "apps.quotas.tasks.roll_usage": gettext_lazy("Daily usage rollup"),
    "apps.quotas.tasks.compare_ledger": gettext_lazy("Usage ledger check"),
    "apps.quotas.tasks.refresh_forecasts": gettext_lazy("Start time forecast"),
    "apps.quotas.tasks.reconcile_defragmentations": gettext_lazy("Defragmentation controller"),
    "apps.quotas.tasks.answer_what_ifs": gettext_lazy("What-if requests"),
    "apps.quotas.tasks.keep_copies": gettext_lazy("Queue sync to clusters"),
    "apps.jobs.tasks.reconcile_attempts": gettext_lazy("Job controller"),
    "apps.jobs.tasks.clean_up_launches": gettext_lazy("Orphaned job cleanup"),
    "apps.serving.tasks.reconcile_deployments": gettext_lazy("Deployment controller"),
    "apps.serving.tasks.clean_up_launches": gettext_lazy("Orphaned replica cleanup"),
    "apps.workflows.tasks.reconcile_pipelines": gettext_lazy("Pipeline controller"),
    "apps.serving.tasks.publish_snapshot": gettext_lazy("Gateway snapshot publisher"),
    "apps.fleet.tasks.reconcile_isolation": gettext_lazy("Workload isolation of teams"),
    "apps.fleet.tasks.sync_inventories": gettext_lazy("Cluster inventory"),
    "apps.models.tasks.import_models": gettext_lazy("Model imports"),
    "apps.models.tasks.import_from_hubs": gettext_lazy("Model hub imports"),
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
    ControllerHealth.LATE: gettext_lazy(
        "If other controllers are lagging too, check the Celery worker and beat above."
    ),
    ControllerHealth.FAILING: gettext_lazy(
        "See the error below. The controller run is retried automatically."
    ),
    ControllerHealth.STUCK: gettext_lazy(
        "The controller run does not finish. Restart the Celery worker to repeat it."
    ),
}


def _component_row(component: ProductComponent) -> dict[str, Any]:
    """The component with its title, what was found, and what helps, in the reader's language."""
    part = _PARTS[component.kind]
    title = str(part.label)
    if component.name:
        title = _titled(title, str(_FOLDERS.get(component.name, component.name)))
    return {
        "component": component,
        "title": title,
        "found": part.found(component),
        "advice": part.advice.get(component.condition, ""),
    }


def _titled(kind: Word, name: str) -> str:
    return _("%(kind)s: %(name)s") % {"kind": kind, "name": name}


def controller_title(name: str) -> str:
    """The title of the controller of that task; an unknown one is shown by its task's name."""
    return str(CONTROLLER_TITLES.get(name, name.rpartition(".")[2].replace("_", " ")))


def _error_row(error: RecentError) -> dict[str, Any]:
    controller = error.kind == "controller"
    cluster = _PARTS[ComponentKind.CLUSTER].label
    title = controller_title(error.name) if controller else _titled(cluster, error.name)
    return {"error": error, "title": title}


_FOLDERS: Mapping[str, Word] = {
    "home": gettext_lazy("home folder of Ninefold"),
    "artifacts": gettext_lazy("artifact store"),
}


def _web_server_summary(it: ProductComponent) -> str:
    return _("responds; version %(version)s") % it.facts


def _worker_summary(it: ProductComponent) -> str:
    if it.condition is ComponentCondition.DOWN:
        amount = it.facts["waiting_calls"]
        return ngettext(
            "not processing: %(amount)d scheduled task pending",
            "not processing: %(amount)d scheduled tasks pending",
            amount,
        ) % {"amount": amount}
    return _last_run_labels(it)


def _beat_summary(it: ProductComponent) -> str:
    if it.condition is ComponentCondition.DOWN:
        return _("schedules no tasks: no recent controller run and no pending task")
    return _last_run_labels(it)


def _last_run_labels(it: ProductComponent) -> str:
    if it.condition is ComponentCondition.UNKNOWN:
        return _("no recent controller run")
    seconds = it.facts["quiet_seconds"]
    if seconds is None:
        return _("no successful run")
    return _("last successful run of a controller %(amount)s ago") % {"amount": duration(seconds)}


def _database_summary(it: ProductComponent) -> str:
    return _("PostgreSQL %(version)s; %(size)s; %(used)d of %(most)d connections") % {
        "version": it.facts["version"],
        "size": format_bytes(it.facts["bytes"]),
        "used": it.facts["connections"],
        "most": it.facts["most_connections"],
    }


def _broker_summary(it: ProductComponent) -> str:
    if it.condition is ComponentCondition.DOWN:
        return _("no response: %(refusal)s") % it.facts
    amount = it.facts["messages"]
    return ngettext(
        "%(amount)d outbox message pending", "%(amount)d outbox messages pending", amount
    ) % {"amount": amount}


def _outbox_summary(it: ProductComponent) -> str:
    amount, unsubscribed = it.facts["messages"], it.facts["unsubscribed"]
    if unsubscribed:
        return _(
            "%(aside)d of %(amount)d pending messages have no subscriber in this version: "
            "%(topics)s"
        ) % {
            "aside": sum(unsubscribed.values()),
            "amount": amount,
            "topics": ", ".join(unsubscribed),
        }
    if not amount:
        return _("all outbox messages delivered")
    return ngettext(
        "%(amount)d outbox message pending for %(age)s",
        "%(amount)d outbox messages pending, the oldest for %(age)s",
        amount,
    ) % {"amount": amount, "age": duration(it.facts["age_seconds"])}


def _gateway_summary(it: ProductComponent) -> str:
    if it.condition is ComponentCondition.DOWN:
        return (
            _("no recent request for the gateway snapshot; loaded version %(snapshot)s") % it.facts
        )
    if it.condition is ComponentCondition.DEGRADED:
        return (
            _("gateway snapshot version %(snapshot)s loaded; latest version: %(newest_snapshot)s")
            % it.facts
        )
    return _("latest gateway snapshot loaded, version %(snapshot)s") % it.facts


def _cluster_watch_summary(it: ProductComponent) -> str:
    if it.condition is ComponentCondition.DOWN:
        return _("no process watches the clusters")
    if it.condition is ComponentCondition.DEGRADED:
        return _("unreachable: %(names)s") % {"names": ", ".join(it.facts["stale"])}
    amount = it.facts["clusters"]
    return ngettext("watches %(amount)d cluster", "watches %(amount)d clusters", amount) % {
        "amount": amount
    }


def _cluster_summary(it: ProductComponent) -> str:
    if it.condition is ComponentCondition.DOWN:
        return render_reason(str(it.facts["error"]))
    return _("responds") if it.condition is ComponentCondition.WELL else _("not checked recently")


def _agents_summary(it: ProductComponent) -> str:
    seconds, nodes = it.facts["oldest_seconds"], it.facts["nodes"]
    if seconds is None:
        return ngettext(
            "%(nodes)d node with an agent token; never connected",
            "%(nodes)d nodes with agent tokens; none ever connected",
            nodes,
        ) % {"nodes": nodes}
    return ngettext(
        "%(heard)d of %(nodes)d node agent connected, last report %(amount)s ago",
        "%(heard)d of %(nodes)d node agents connected, oldest last report %(amount)s ago",
        nodes,
    ) % {"heard": it.facts["reporting"], "nodes": nodes, "amount": duration(seconds)}


def _disk_summary(it: ProductComponent) -> str:
    return _("%(free)s of %(size)s free") % {
        "free": format_bytes(it.facts["free_bytes"]),
        "size": format_bytes(it.facts["bytes"]),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _ComponentKindTexts:
    """Texts and summary of one kind of component."""

    label: Word
    found: Callable[[ProductComponent], str]
    #: What helps, by the condition that it is in.
    advice: Mapping[ComponentCondition, Word] = field(default_factory=dict)


_PARTS: Mapping[ComponentKind, _ComponentKindTexts] = {
    ComponentKind.WEB: _ComponentKindTexts(
        label=gettext_lazy("Web pages and REST API"), found=_web_server_summary
    ),
    ComponentKind.WORKER: _ComponentKindTexts(
        label=gettext_lazy("Celery worker"),
        found=_worker_summary,
        advice={
            ComponentCondition.DEGRADED: gettext_lazy(
                "All processes run, but some controllers are unhealthy. See their rows below."
            ),
            ComponentCondition.DOWN: gettext_lazy(
                "Check var/logs/worker.log and “make status”. Running jobs continue; the "
                "worker resumes pending tasks when it restarts."
            ),
            ComponentCondition.UNKNOWN: gettext_lazy(
                "Unknown until Celery beat schedules tasks and the message broker responds."
            ),
        },
    ),
    ComponentKind.BEAT: _ComponentKindTexts(
        label=gettext_lazy("Celery beat"),
        found=_beat_summary,
        advice={
            ComponentCondition.DOWN: gettext_lazy(
                "Check var/logs/beat.log and “make status”. Exactly one Celery beat "
                "process must run."
            ),
            ComponentCondition.UNKNOWN: gettext_lazy(
                "No controller has run yet. If none runs within one minute, check “make status”."
            ),
        },
    ),
    ComponentKind.DATABASE: _ComponentKindTexts(
        label=gettext_lazy("Database"),
        found=_database_summary,
        advice={
            ComponentCondition.DEGRADED: gettext_lazy(
                "Few free connections. Raise max_connections, or stop other programs that use "
                "this server."
            ),
        },
    ),
    ComponentKind.BROKER: _ComponentKindTexts(
        label=gettext_lazy("Broker"),
        found=_broker_summary,
        advice={
            ComponentCondition.DOWN: gettext_lazy(
                "Check NINEFOLD_BROKER_URL and that the broker runs. A lost message "
                "delays a task; no task is lost."
            ),
        },
    ),
    ComponentKind.OUTBOX: _ComponentKindTexts(
        label=gettext_lazy("Message outbox"),
        found=_outbox_summary,
        advice={
            ComponentCondition.DEGRADED: gettext_lazy(
                "Messages are pending: check the worker and the broker. Messages without a "
                "subscriber are delivered when web and worker run a version that handles them."
            ),
        },
    ),
    ComponentKind.GATEWAY: _ComponentKindTexts(
        label=gettext_lazy("Gateway"),
        found=_gateway_summary,
        advice={
            ComponentCondition.DOWN: gettext_lazy(
                "Check the log of the gateway. The gateway serves its last snapshot for "
                "up to one day; the other gateways have taken over its share of the rate "
                "limits."
            ),
            ComponentCondition.DEGRADED: gettext_lazy(
                "The gateway requests the snapshot but does not load the latest one. "
                "Check the log of the gateway."
            ),
        },
    ),
    ComponentKind.WATCHER: _ComponentKindTexts(
        label=gettext_lazy("Cluster watcher"),
        found=_cluster_watch_summary,
        advice={
            ComponentCondition.DEGRADED: gettext_lazy(
                "Running workloads continue but are not observed. See the row of the cluster "
                "and var/logs/watcher.log."
            ),
            ComponentCondition.DOWN: gettext_lazy(
                "Check var/logs/watcher.log and “make status”. Until a cluster watcher runs, "
                "cluster changes are noticed several seconds later."
            ),
        },
    ),
    ComponentKind.CLUSTER: _ComponentKindTexts(
        label=gettext_lazy("Cluster"),
        found=_cluster_summary,
        advice={
            ComponentCondition.DOWN: gettext_lazy(
                "Running workloads continue but are not observed; no workloads start there "
                "until the cluster responds."
            ),
            ComponentCondition.UNKNOWN: gettext_lazy(
                "Not checked recently. See the controller “Cluster inventory”."
            ),
        },
    ),
    ComponentKind.AGENTS: _ComponentKindTexts(
        label=gettext_lazy("Node agents"),
        found=_agents_summary,
        advice={
            ComponentCondition.DEGRADED: gettext_lazy(
                "An agent is stale. Find it on the agents page and check its log on the node. "
                "If the node was removed, revoke its token."
            ),
        },
    ),
    ComponentKind.DISK: _ComponentKindTexts(
        label=gettext_lazy("Disk"),
        found=_disk_summary,
        advice={
            ComponentCondition.DEGRADED: gettext_lazy(
                "Free disk space before uploads and checkpoints fail. The storage page shows usage."
            ),
            ComponentCondition.DOWN: gettext_lazy(
                "Free disk space now: uploads, checkpoints and the database are about to fail."
            ),
        },
    ),
}


#: Size of the bars: width of one run, and maximum height.
BAR_WIDTH, BAR_GAP, BAR_HEIGHT = 3, 1, 18
WARNED_SECONDS = 10.0

#: The number of lagging controllers, for the line on top of every page.
lagging_controllers = TimedCache(lagging_controller_count, seconds=WARNED_SECONDS)


@login_required
def system_status_page(request: AuthenticatedRequest) -> HttpResponse:
    """For operators and administrators; refreshes itself."""
    require_permission_to_view_product_status(request.user)
    found = product_status()
    context = {
        "status": found,
        "parts": [_component_row(component) for component in found.components],
        "controllers": [_controller_row(controller) for controller in found.controllers],
        "errors": [_error_row(error) for error in found.errors],
        "bars_width": RECENT_RUNS * (BAR_WIDTH + BAR_GAP),
        "bars_height": BAR_HEIGHT,
    }
    return render_page(
        request, "console/system_status.html", context, fragment="now", changing=True
    )


def _controller_row(controller: ControllerStatus) -> dict[str, Any]:
    return {
        "controller": controller,
        "title": controller_title(controller.name),
        "advice": CONTROLLER_ADVICE.get(controller.health, ""),
        "bars": _duration_bars(controller.recent),
    }


def _duration_bars(seconds: tuple[float, ...]) -> list[dict[str, int]]:
    """One bar for each run, the latest at the right; the longest has the full height."""
    longest = max(seconds, default=0.0) or 1.0
    heights = [max(1, round(one / longest * BAR_HEIGHT)) for one in seconds]
    return [
        {"x": place * (BAR_WIDTH + BAR_GAP), "y": BAR_HEIGHT - height, "height": height}
        for place, height in enumerate(heights, start=RECENT_RUNS - len(seconds))
    ]
