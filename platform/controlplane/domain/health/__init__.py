"""The health of the fleet: signals, decisions, and the guards that suppress them.

``faults`` has signals, levels and fault maps; ``rules`` derive faults from metrics. ``snapshots`` is the input
of decisions, ``decisions`` the function that makes them: ``recommended_actions`` follow from faults by their
severity, stale nodes and ``suspicions`` (from crashes) add to them, guards suppress them. ``isolations``
is the way back into service, ``maintenance_rollouts`` the planned way out. ``controllers`` evaluates the
product's own controllers.
"""
