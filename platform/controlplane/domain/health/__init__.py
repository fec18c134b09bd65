"""The health of the fleet: signals, decisions, and the guards that suppress them.

``faults`` has signals, levels and fault maps; ``rules`` make more of them out of metrics. ``snapshots`` is
what decisions depend on, ``decisions`` says what to do about it: ``recommended_actions`` are those of faults by
their severity, ``stale_nodes`` and ``suspicions`` (out of crashes) add to them, ``guards`` suppress them.
``isolations`` is the way back into service, ``maintenance_rollouts`` the planned way out. ``controllers`` judges
the product's own controllers.
"""
