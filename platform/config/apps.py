from __future__ import annotations

from django.apps import AppConfig
from django.conf import settings


class NinefoldConfig(AppConfig):
    name = "config"
    label = "config"

    def ready(self) -> None:
        # Its models can be imported from here on.
        from apps.fleet.selectors import connect_isolations, connect_occupancy  # noqa: PLC0415
        from apps.monitoring.selectors.out_of_use import NodeIsolations  # noqa: PLC0415
        from apps.serving.selectors.occupancy import WorkloadOccupancy  # noqa: PLC0415
        from config.loops import TurnKeeper  # noqa: PLC0415
        from config.naming import name_tables  # noqa: PLC0415
        from config.storage import connect_sources  # noqa: PLC0415
        from config.waking import Waker  # noqa: PLC0415
        from config.wiring import TOPICS  # noqa: PLC0415
        from controlplane.outbox import messages  # noqa: PLC0415

        name_tables()
        messages.hear(TOPICS)
        if settings.NINEFOLD_WAKE_RELAY:
            messages.wake_with(Waker())
        TurnKeeper().connect()
        connect_sources()
        connect_occupancy(WorkloadOccupancy())
        connect_isolations(NodeIsolations())
