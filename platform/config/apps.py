from __future__ import annotations

from django.apps import AppConfig


class NinefoldConfig(AppConfig):
    name = "config"
    label = "config"

    def ready(self) -> None:
        # Its models can be imported from here on.
        from config.loops import TurnKeeper  # noqa: PLC0415
        from config.storage import connect_sources  # noqa: PLC0415

        TurnKeeper().connect()
        connect_sources()
