"""The whole company, and the public names of what there is to look at."""

from __future__ import annotations

from apps.jobs.models import Attempt
from apps.quotas.models import Queue
from tests import factories
from tests.e2e.demo.clock import NOW
from tests.e2e.demo.fleet import fleet
from tests.e2e.demo.health import health
from tests.e2e.demo.jobs import jobs
from tests.e2e.demo.monitoring import monitoring
from tests.e2e.demo.outlook import claim_of, stored_forecast
from tests.e2e.demo.pipelines import pipelines
from tests.e2e.demo.registry import registry
from tests.e2e.demo.serving import serving
from tests.e2e.demo.sharing import shared
from tests.e2e.demo.storage import stored
from tests.e2e.demo.usage import used
from tests.e2e.demo.users import signing_in, users


def company() -> dict[str, str]:
    """Make it; give back uids by the names that ``tests/e2e/pages.py`` uses."""
    who = users()
    where = fleet(who)
    used(who, where)
    known = registry(who)
    job_rows = jobs(who, where, known)
    served = serving(who, where, known, job_rows)
    lines = pipelines(who, where, known, job_rows, served)
    change = shared(who, where)
    asked = stored_forecast(job_rows.waiting)
    moves = factories.defragmentation(claim=claim_of(job_rows.running), actor=who.ada)
    cards = health(who, where)
    alarms = factories.firing_alerts(actor=who.admin, at=NOW, cluster=where.gpus.name, hot=14)
    rollout = factories.rollout_over(where.gpus, actor=who.admin, at=NOW)
    monitored = monitoring(who)
    stored(who)
    Attempt.objects.filter(job=job_rows.script).update(cluster=where.gpus)
    uids = {
        "team": who.maps.uid,
        "team.slug": who.maps.slug,
        "person": who.ada.uid,
        "device_code": signing_in(),
        "dataset": known.addresses.dataset.uid,
        "dataset.version": known.addresses.uid,
        "dataset.chats": known.chats.uid,
        "model.base": known.base.uid,
        "model.catalogued": known.catalogued.uid,
        "model.importing": known.importing.uid,
        "model.arriving": known.arriving.uid,
        "model.refused": known.refused.uid,
        "model.tuned": job_rows.tuned.uid,
        "model.line": job_rows.tuned.line.uid,
        "model.quantized": job_rows.quantized.uid,
        "model.unfit": job_rows.unfit.uid,
        "key": served.key.uid,
        "queue": where.maps.uid,
        "queue.default": where.default.uid,
        "queue.above": Queue.objects.get(name="research").uid,
        "claim.waiting": claim_of(job_rows.waiting).uid,
        "claim.running": claim_of(job_rows.running).uid,
        "what_if": asked.uid,
        "defragmentation_plan": moves.uid,
        "queue.key": str(where.maps.pk),
        "queue.change": change.uid,
        "notification": monitored.notification.uid,
        "card": cards.well.uid,
        "card.broken": cards.broken.uid,
        "source": cards.measured.uid,
        "source.degraded": cards.failing.uid,
        "source.agents": cards.agents.uid,
        **alarms.names(),
        "rollout": rollout.uid,
        "cluster": where.gpus.uid,
        "cluster.lost": where.lost.uid,
        "webhook.working": monitored.working.uid,
        "webhook.failing": monitored.failing.uid,
    }
    for state in ("waiting", "preparing", "running", "stopping", "failed", "cancelled"):
        uids[f"job.{state}"] = getattr(job_rows, state).uid
    for state in ("running", "held", "succeeded", "failed"):
        uids[f"pipeline.{state}"] = getattr(lines, state).uid
    for kind in ("succeeded", "evaluation", "script"):
        uids[f"job.{kind}"] = getattr(job_rows, kind).uid
    for number, job in enumerate(job_rows.siblings):
        uids[f"job.sibling.{number}"] = job.uid
    for state in ("ready", "degraded", "starting", "paused", "stopped"):
        uids[f"deployment.{state}"] = getattr(served, state).uid
    return uids
