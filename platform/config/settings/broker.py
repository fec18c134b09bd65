"""Celery settings. The broker holds no state of record: losing it costs time only."""

from __future__ import annotations

from kombu.transport import TRANSPORT_ALIASES

from config.settings.environment import HOME, env

TRANSPORT_ALIASES["filesystem"] = "config.filesystem_broker:Transport"

broker_url = env.str("NINEFOLD_BROKER_URL", default="filesystem://")
broker_connection_retry_on_startup = True
if broker_url == "filesystem://":
    broker_transport_options = {
        "data_folder_in": str(HOME / "broker"),
        "data_folder_out": str(HOME / "broker"),
        "control_folder": str(HOME / "broker" / "control"),
        "polling_interval": 0.1,
    }
else:
    # Longer than any task: reconcile runs are short. Publishers do not wait long for an unreachable broker.
    broker_transport_options = {"visibility_timeout": 300, "socket_connect_timeout": 2}

task_ignore_result = True
task_acks_late = True
task_reject_on_worker_lost = True
task_default_queue = "celery"
task_serializer = "json"
accept_content = ["json"]
worker_prefetch_multiplier = 1
worker_hijack_root_logger = False
timezone = "UTC"
