"""The spec of a script."""

from __future__ import annotations

from controlplane.domain.common.spec_fields import FieldKind, SpecField

SCRIPT = (
    SpecField(
        name="argv",
        label="Command",
        help='The program and its arguments, such as ["python", "train.py"]; python is the engine\'s.',
        kind=FieldKind.TEXTS,
    ),
    SpecField(
        name="environment",
        label="Environment",
        help="Variables for the program.",
        kind=FieldKind.VARIABLES,
        default={},
    ),
    SpecField(
        name="maximum_run_time_seconds",
        label="Maximum run time",
        help="In seconds; the program is ended after it.",
        kind=FieldKind.INTEGER,
        default=3600,
        least=1,
        most=30 * 24 * 3600,
    ),
)
