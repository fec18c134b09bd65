"""Admin of queues: the queue console, and admins of the other tables."""

from __future__ import annotations

from apps.quotas.admin import model_admins, queues

__all__ = ["model_admins", "queues"]
