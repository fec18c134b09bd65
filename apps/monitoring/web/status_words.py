"""What the status page says of each part and loop, and what helps, in the reader's language."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from apps.monitoring.selectors.components import Component, Condition, Kind
from apps.monitoring.selectors.loops import Loop
from apps.monitoring.selectors.product import RecentError
from controlplane.domain.common.resources import format_bytes
from controlplane.domain.loops import LoopHealth
from controlplane.web.message_translation import translate_message
from controlplane.web.templatetags.ninefold import duration

Word = str | Promise

LOOPS: Mapping[str, Word] = {
    "config.tasks.relay_outbox": gettext_lazy("Hand on news"),
    "config.tasks.tidy_up": gettext_lazy("Tidy up"),
    "apps.quotas.tasks.run_cycle": gettext_lazy("Give cards to what waits"),
    "apps.quotas.tasks.record_midnights": gettext_lazy("Record what is held at midnight"),
    "apps.quotas.tasks.roll_usage": gettext_lazy("Sum up use by day"),
    "apps.quotas.tasks.compare_ledger": gettext_lazy("Compare the ledger with the cards"),
    "apps.quotas.tasks.refresh_forecasts": gettext_lazy("Foretell when what waits will start"),
    "apps.quotas.tasks.carry_out_rearrangements": gettext_lazy("Carry out approved moves"),
    "apps.quotas.tasks.answer_what_ifs": gettext_lazy("Answer “what if”"),
    "apps.quotas.tasks.keep_copies": gettext_lazy("Tell clusters our queues"),
    "apps.jobs.tasks.reconcile_attempts": gettext_lazy("Start and watch jobs"),
    "apps.jobs.tasks.sweep_launches": gettext_lazy("Stop what no job owns"),
    "apps.serving.tasks.reconcile_deployments": gettext_lazy("Start and watch deployments"),
    "apps.serving.tasks.sweep_launches": gettext_lazy("Stop what no deployment owns"),
    "apps.workflows.tasks.reconcile_pipelines": gettext_lazy("Take pipelines further"),
    "apps.serving.tasks.publish_snapshot": gettext_lazy("Tell gateways"),
    "apps.fleet.tasks.reconcile_isolation": gettext_lazy("Isolation of teams"),
    "apps.fleet.tasks.sync_inventories": gettext_lazy("Take stock of clusters"),
    "apps.models.tasks.import_models": gettext_lazy("Import models"),
    "apps.models.tasks.measure_storage": gettext_lazy("Measure storage"),
    "apps.models.tasks.apply_retention": gettext_lazy("Apply retention rules"),
    "apps.models.tasks.collect_garbage": gettext_lazy("Collect garbage"),
    "apps.monitoring.tasks.call_webhooks": gettext_lazy("Call webhooks"),
    "apps.monitoring.tasks.send_mails": gettext_lazy("Send e-mail"),
    "apps.monitoring.tasks.read_sources": gettext_lazy("Read figures of cards"),
    "apps.monitoring.tasks.read_signs": gettext_lazy("Ask clusters what is wrong"),
    "apps.monitoring.tasks.decide_health": gettext_lazy("Decide about faults"),
    "apps.monitoring.tasks.advance_isolations": gettext_lazy("Mark and test what is out of use"),
    "apps.monitoring.tasks.judge_figures": gettext_lazy("Judge figures of cards by rules"),
    "apps.monitoring.tasks.notice_silence": gettext_lazy("Notice silent cards"),
    "apps.monitoring.tasks.tidy_history": gettext_lazy("Sum up and drop old figures"),
    "apps.monitoring.tasks.advance_rollouts": gettext_lazy("Advance rollouts over nodes"),
    "apps.monitoring.tasks.judge_alerts": gettext_lazy("Judge the rules of alerts"),
    "apps.monitoring.tasks.send_alerts": gettext_lazy("Send alerts"),
    "apps.monitoring.tasks.prune_news": gettext_lazy("Forget old news"),
}

LOOP_ADVICE: Mapping[LoopHealth, Word] = {
    LoopHealth.LATE: gettext_lazy("If others are late too, look at worker and beat above."),
    LoopHealth.FAILING: gettext_lazy("The error below says why; it is tried again by itself."),
    LoopHealth.STUCK: gettext_lazy(
        "Its turn does not end. Start the worker again: the turn is taken anew."
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A part in words."""

    title: str
    #: What was found.
    found: str
    #: What helps; empty where nothing need be done.
    advice: str


def told(component: Component) -> Told:
    """The part in the words of the reader's language."""
    part = _PARTS[component.kind]
    title = str(part.label)
    if component.name:
        name = _FOLDERS.get(component.name, component.name)
        title = _("%(kind)s: %(name)s") % {"kind": title, "name": name}
    return Told(
        title=title,
        found=part.found(component),
        advice=str(part.advice.get(component.condition, "")),
    )


def loop_title(name: str) -> str:
    """What the loop of that task does; one that we do not know is shown by its task's name."""
    return str(LOOPS.get(name, name.rpartition(".")[2].replace("_", " ")))


def error_title(error: RecentError) -> str:
    if error.kind == "loop":
        return loop_title(error.name)
    return _("%(kind)s: %(name)s") % {"kind": _PARTS[Kind.CLUSTER].label, "name": error.name}


def loop_advice(loop: Loop) -> str:
    return str(LOOP_ADVICE.get(loop.health, ""))


_FOLDERS: Mapping[str, Word] = {
    "home": gettext_lazy("home folder"),
    "artifacts": gettext_lazy("artifact store"),
}


def _web(it: Component) -> str:
    return _("answers; version %(version)s") % it.facts


def _worker(it: Component) -> str:
    if it.condition is Condition.DOWN:
        amount = it.facts["waiting_calls"]
        return ngettext(
            "takes no work: %(amount)d call of the beat waits",
            "takes no work: %(amount)d calls of the beat wait",
            amount,
        ) % {"amount": amount}
    return _last_turn(it)


def _beat(it: Component) -> str:
    if it.condition is Condition.DOWN:
        return _("sends no calls: no loop has turned lately and no call waits")
    return _last_turn(it)


def _last_turn(it: Component) -> str:
    if it.condition is Condition.UNKNOWN:
        return _("nothing has turned lately")
    seconds = it.facts["quiet_seconds"]
    if seconds is None:
        return _("no turn has ended well yet")
    return _("last good turn of a loop %(amount)s ago") % {"amount": duration(seconds)}


def _database(it: Component) -> str:
    return _("PostgreSQL %(version)s; %(size)s; %(used)d of %(most)d connections") % {
        "version": it.facts["version"],
        "size": format_bytes(it.facts["bytes"]),
        "used": it.facts["connections"],
        "most": it.facts["most_connections"],
    }


def _broker(it: Component) -> str:
    if it.condition is Condition.DOWN:
        return _("does not answer: %(refusal)s") % it.facts
    amount = it.facts["messages"]
    return ngettext(
        "%(amount)d message waits for a worker", "%(amount)d messages wait for a worker", amount
    ) % {"amount": amount}


def _outbox(it: Component) -> str:
    amount, unheard = it.facts["messages"], it.facts["unheard"]
    if unheard:
        return _(
            "%(aside)d of %(amount)d messages that wait are set aside: this version has no listener"
            " for %(topics)s"
        ) % {"aside": sum(unheard.values()), "amount": amount, "topics": ", ".join(unheard)}
    if not amount:
        return _("everything has been handed on")
    return ngettext(
        "%(amount)d piece of news waits, since %(age)s",
        "%(amount)d pieces of news wait, the oldest since %(age)s",
        amount,
    ) % {"amount": amount, "age": duration(it.facts["age_seconds"])}


def _gateway(it: Component) -> str:
    if it.condition is Condition.DOWN:
        return _("has not asked for the snapshot lately; it has version %(snapshot)s") % it.facts
    if it.condition is Condition.TROUBLED:
        return _("has snapshot %(snapshot)s, the newest is %(newest_snapshot)s") % it.facts
    return _("has the newest snapshot, version %(snapshot)s") % it.facts


def _watcher(it: Component) -> str:
    if it.condition is Condition.DOWN:
        return _("no process follows the clusters")
    if it.condition is Condition.TROUBLED:
        return _("nothing is heard of %(names)s") % {"names": ", ".join(it.facts["silent"])}
    amount = it.facts["clusters"]
    return ngettext("follows %(amount)d cluster", "follows %(amount)d clusters", amount) % {
        "amount": amount
    }


def _cluster(it: Component) -> str:
    if it.condition is Condition.DOWN:
        return translate_message(str(it.facts["trouble"]))
    return _("answers") if it.condition is Condition.WELL else _("not looked at lately")


def _agents(it: Component) -> str:
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


def _disk(it: Component) -> str:
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
    advice: Mapping[Condition, Word] = field(default_factory=dict)


_PARTS: Mapping[Kind, _Part] = {
    Kind.WEB: _Part(label=gettext_lazy("Pages and REST"), found=_web),
    Kind.WORKER: _Part(
        label=gettext_lazy("Worker"),
        found=_worker,
        advice={
            Condition.TROUBLED: gettext_lazy(
                "The processes work, single loops do not: see their rows below."
            ),
            Condition.DOWN: gettext_lazy(
                "Look at var/logs/worker.log and at “make status”. Running jobs go on, and nothing is"
                " lost: once a worker runs it goes on where the last one stopped."
            ),
            Condition.UNKNOWN: gettext_lazy(
                "Nobody can tell before the beat calls and the broker answers."
            ),
        },
    ),
    Kind.BEAT: _Part(
        label=gettext_lazy("Beat"),
        found=_beat,
        advice={
            Condition.DOWN: gettext_lazy(
                "Look at var/logs/beat.log and at “make status”; exactly one beat has to run."
            ),
            Condition.UNKNOWN: gettext_lazy(
                "No loop has turned yet. If that stays so for a minute, look at “make status”."
            ),
        },
    ),
    Kind.DATABASE: _Part(
        label=gettext_lazy("Database"),
        found=_database,
        advice={
            Condition.TROUBLED: gettext_lazy(
                "Few connections are left: raise max_connections, or end what else uses this server."
            ),
        },
    ),
    Kind.BROKER: _Part(
        label=gettext_lazy("Broker"),
        found=_broker,
        advice={
            Condition.DOWN: gettext_lazy(
                "Check NINEFOLD_BROKER_URL and that the broker runs. Losing what it held costs time,"
                " not work."
            ),
        },
    ),
    Kind.OUTBOX: _Part(
        label=gettext_lazy("Outbox"),
        found=_outbox,
        advice={
            Condition.TROUBLED: gettext_lazy(
                "News waits to be handed on: look at the worker and at the broker first. What is set"
                " aside leaves by itself once web and worker run a version that hears it."
            ),
        },
    ),
    Kind.GATEWAY: _Part(
        label=gettext_lazy("Gateway"),
        found=_gateway,
        advice={
            Condition.DOWN: gettext_lazy(
                "Look at its log. It serves with its last snapshot for up to a day; its share of the"
                " limits has gone to the others."
            ),
            Condition.TROUBLED: gettext_lazy(
                "It asks, and does not take the newest snapshot: its log says why."
            ),
        },
    ),
    Kind.WATCHER: _Part(
        label=gettext_lazy("Watcher"),
        found=_watcher,
        advice={
            Condition.TROUBLED: gettext_lazy(
                "What runs there goes on unseen: see the cluster's own row, and var/logs/watcher.log."
            ),
            Condition.DOWN: gettext_lazy(
                "Look at var/logs/watcher.log and at “make status”. Until one runs, what happens on the"
                " clusters is noticed some seconds later."
            ),
        },
    ),
    Kind.CLUSTER: _Part(
        label=gettext_lazy("Cluster"),
        found=_cluster,
        advice={
            Condition.DOWN: gettext_lazy(
                "What runs there goes on unseen, and nothing new starts there until it answers."
            ),
            Condition.UNKNOWN: gettext_lazy(
                "Nobody has looked at it lately: see the loop that takes stock of clusters."
            ),
        },
    ),
    Kind.AGENTS: _Part(
        label=gettext_lazy("Agents of nodes"),
        found=_agents,
        advice={
            Condition.TROUBLED: gettext_lazy(
                "An agent has fallen silent: the page of agents names it. Look at its log on the node; if"
                " the node is gone for good, revoke its token."
            ),
        },
    ),
    Kind.DISK: _Part(
        label=gettext_lazy("Disk"),
        found=_disk,
        advice={
            Condition.TROUBLED: gettext_lazy(
                "Make room before uploads and checkpoints fail: the storage page says what uses it."
            ),
            Condition.DOWN: gettext_lazy(
                "Make room now: uploads, checkpoints and the database itself are about to fail."
            ),
        },
    ),
}
