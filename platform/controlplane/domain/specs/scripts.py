"""The spec of a script."""

from __future__ import annotations

from controlplane.domain.fields import Field, Kind

SCRIPT = (
    Field(
        name="argv",
        label="Command",
        help='The program and its arguments, such as ["python", "train.py"]; python is the engine\'s.',
        kind=Kind.TEXTS,
    ),
    Field(
        name="environment",
        label="Environment",
        help="Variables for the program.",
        kind=Kind.VARIABLES,
        default={},
    ),
    Field(
        name="maximum_run_time_seconds",
        label="Maximum run time",
        help="In seconds; the program is ended after it.",
        kind=Kind.INTEGER,
        default=3600,
        least=1,
        most=30 * 24 * 3600,
    ),
)
