"""The Celery application and its beat schedule.

Tasks are reconcile runs of controllers: short, idempotent, level-triggered. The beat alone makes every
controller converge; the outbox (``config.tasks``) only makes it faster.
"""

from __future__ import annotations

import logging
import os
import signal
from datetime import timedelta
from typing import Any

from celery import Celery
from celery.signals import import_modules, worker_ready

log = logging.getLogger(__name__)

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.base")


def _beat_entry(seconds: float, task: str) -> dict[str, Any]:
    """Return a beat entry; a run that could not start in time expires instead of queueing up."""
    return {
        "task": task,
        "schedule": timedelta(seconds=seconds),
        "options": {"queue": "beat", "expires": max(2 * seconds, 10.0)},
    }


@worker_ready.connect(weak=False)
def _exit_with_killed_pool_process(sender: Any, **_options: object) -> None:
    """Let the worker exit when one of its pool processes is killed, so that its supervisor starts another one.

    Without a broker that can be polled (the file broker of one machine) the processes of a prefork pool take their
    tasks from one pipe, under one lock. A process that is killed while it has the lock blocks all others for ever.
    """
    pool = getattr(sender.pool, "_pool", None)
    # With Redis each process has a pipe of its own, and the pool itself follows their ends.
    if pool is None or getattr(pool, "on_process_down", True) is not None:
        return

    def exit_worker(process: Any) -> None:
        code = process.exitcode
        if code is not None and code < 0 and code != -signal.SIGTERM:
            log.error("a pool process was killed; the worker exits", extra={"exit_code": code})
            logging.shutdown()
            os._exit(os.EX_SOFTWARE)

    pool.on_process_down = exit_worker


app = Celery("ninefold")
# For every thread: the web's threads did not import this module themselves.
app.set_default()
app.config_from_object("config.settings.broker")
app.conf.beat_schedule = {
    "outbox dispatcher": _beat_entry(1, "config.tasks.relay_outbox"),
    "scheduler": _beat_entry(2, "apps.quotas.tasks.run_cycle"),
    "forecaster": _beat_entry(60, "apps.quotas.tasks.refresh_forecasts"),
    "defragmentation controller": _beat_entry(5, "apps.quotas.tasks.reconcile_defragmentations"),
    "queue sync": _beat_entry(60, "apps.quotas.tasks.keep_copies"),
    "what-if requests": _beat_entry(5, "apps.quotas.tasks.answer_what_ifs"),
    "job controller": _beat_entry(1, "apps.jobs.tasks.reconcile_attempts"),
    "orphaned job cleanup": _beat_entry(30, "apps.jobs.tasks.clean_up_launches"),
    "deployment controller": _beat_entry(1, "apps.serving.tasks.reconcile_deployments"),
    "orphaned replica cleanup": _beat_entry(30, "apps.serving.tasks.clean_up_launches"),
    "pipeline controller": _beat_entry(2, "apps.workflows.tasks.reconcile_pipelines"),
    "gateway snapshot publisher": _beat_entry(2, "apps.serving.tasks.publish_snapshot"),
    "team isolation": _beat_entry(300, "apps.fleet.tasks.reconcile_isolation"),
    "cluster inventory": _beat_entry(15, "apps.fleet.tasks.sync_inventories"),
    "model imports": _beat_entry(5, "apps.models.tasks.import_models"),
    "hub imports": _beat_entry(2, "apps.models.tasks.import_from_hubs"),
    "webhook deliveries": _beat_entry(10, "apps.monitoring.tasks.call_webhooks"),
    "e-mail delivery": _beat_entry(10, "apps.monitoring.tasks.send_mails"),
    "metric source reader": _beat_entry(5, "apps.monitoring.tasks.read_sources"),
    "stale card detection": _beat_entry(5, "apps.monitoring.tasks.detect_stale_cards"),
    "metric history": _beat_entry(300, "apps.monitoring.tasks.tidy_history"),
    "cluster diagnosis": _beat_entry(5, "apps.monitoring.tasks.diagnose_clusters"),
    "health rules": _beat_entry(30, "apps.monitoring.tasks.evaluate_health_rules"),
    "health policy": _beat_entry(2, "apps.monitoring.tasks.decide_health"),
    "isolation controller": _beat_entry(5, "apps.monitoring.tasks.advance_isolations"),
    "alert rules": _beat_entry(5, "apps.monitoring.tasks.evaluate_alert_rules"),
    "maintenance rollouts": _beat_entry(5, "apps.monitoring.tasks.advance_rollouts"),
    "alert delivery": _beat_entry(10, "apps.monitoring.tasks.send_alerts"),
    "event cleanup": _beat_entry(3600, "apps.monitoring.tasks.prune_events"),
    "storage usage": _beat_entry(300, "apps.models.tasks.measure_storage"),
    "retention": _beat_entry(1800, "apps.models.tasks.apply_retention"),
    "garbage collection": _beat_entry(3600, "apps.models.tasks.collect_garbage"),
    "midnight usage records": _beat_entry(3600, "apps.quotas.tasks.record_midnights"),
    "daily usage rollup": _beat_entry(300, "apps.quotas.tasks.roll_usage"),
    "usage ledger check": _beat_entry(3600, "apps.quotas.tasks.compare_ledger"),
    "cleanup": _beat_entry(600, "config.tasks.tidy_up"),
}
app.autodiscover_tasks()

#: Tasks by the names under which version 0.1.0 queues them; read for one release.
RENAMED_TASKS = {
    "apps.jobs.tasks.sweep_launches": "apps.jobs.tasks.clean_up_launches",
    "apps.monitoring.handlers.on_deployment_troubled": "apps.monitoring.tasks.on_deployment_degraded",
    "apps.monitoring.tasks.judge_alerts": "apps.monitoring.tasks.evaluate_alert_rules",
    "apps.monitoring.tasks.judge_figures": "apps.monitoring.tasks.evaluate_health_rules",
    "apps.monitoring.tasks.notice_silence": "apps.monitoring.tasks.detect_stale_cards",
    "apps.monitoring.tasks.prune_news": "apps.monitoring.tasks.prune_events",
    "apps.monitoring.tasks.read_signs": "apps.monitoring.tasks.diagnose_clusters",
    "apps.quotas.tasks.carry_out_rearrangements": "apps.quotas.tasks.reconcile_defragmentations",
    "apps.serving.tasks.sweep_launches": "apps.serving.tasks.clean_up_launches",
}


# Connected after autodiscovery: by then the tasks are there.
@import_modules.connect(sender=app, weak=False)
def _register_renamed_tasks(**_options: object) -> None:
    earlier_names = dict(RENAMED_TASKS)
    # Version 0.1.0 has the tasks of outbox messages in modules named ``handlers``.
    subscribers = [name for name in app.tasks if ".tasks.on_" in name or ".tasks.schedule" in name]
    earlier_names |= {name.replace(".tasks.", ".handlers."): name for name in subscribers}
    for earlier, present in earlier_names.items():
        task = app.tasks.pop(present)
        app.tasks[earlier] = task
        # Last, as a worker logs the name that comes last.
        app.tasks[present] = task
