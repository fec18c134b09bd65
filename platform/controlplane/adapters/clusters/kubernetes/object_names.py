"""Names and labels of Ninefold's objects on a cluster, by which they are identified.

Names derive from the Launch's name, which derives from a row's uid: creating twice is creating once.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Final

from controlplane.adapters.clusters.kubernetes.api import Object, labels_of
from controlplane.adapters.clusters.launch_validation import check_launch_identifier

DOMAIN: Final = "ninefold.io"
MANAGED_BY: Final = "app.kubernetes.io/managed-by"
PRODUCT: Final = "ninefold"
#: Which installation of the product an object belongs to: two may share a cluster.
INSTALLATION: Final = f"{DOMAIN}/installation"
LAUNCH: Final = f"{DOMAIN}/launch"
ROLE: Final = f"{DOMAIN}/role"
INDEX: Final = f"{DOMAIN}/index"
TEAM: Final = f"{DOMAIN}/team"
#: Annotation of the record: set once every object of the Launch has been created.
LAUNCHED: Final = f"{DOMAIN}/launched"
#: Annotation of a pod being stopped: the deadline for saving.
STOP_BY: Final = f"{DOMAIN}/stop-by"
#: Annotation of the record: why a started Launch was stopped again.
REFUSED: Final = f"{DOMAIN}/refused"
#: Annotation of a pod: a copy of its Launch's record, so that a list of pods is sufficient.
RECORD: Final = f"{DOMAIN}/record"
#: Annotation of a pod: indices of the cards of its node that it was placed on.
CARDS: Final = f"{DOMAIN}/cards"
#: Annotation of a namespace: the Pod Security level that we labelled it with.
POD_SECURITY: Final = f"{DOMAIN}/pod-security"
#: Keeps an ended pod until we have seen how it ended.
OBSERVED: Final = f"{DOMAIN}/observed"
NO_TEAM: Final = "shared"

_LONGEST_NAMESPACE = 63


def owner_labels(*, installation: str, launch: str = "", **more: str) -> dict[str, str]:
    """Labels of every object of this installation."""
    labels = {MANAGED_BY: PRODUCT, INSTALLATION: installation, **more}
    return labels | {LAUNCH: launch} if launch else labels


def format_label_selector(labels: Mapping[str, str]) -> str:
    """In the API's ``labelSelector`` syntax."""
    return ",".join(f"{name}={value}" for name, value in sorted(labels.items()))


def owned_objects_query(*, installation: str, launch: str = "", more: str = "") -> dict[str, str]:
    """The query that selects our objects, all or those of one Launch.

    :param more: a further requirement, in the syntax of selectors.
    """
    ours = format_label_selector(owner_labels(installation=installation, launch=launch))
    return {"labelSelector": f"{ours},{more}" if more else ours}


def namespace_of(team: str, *, prefix: str) -> str:
    """The namespace of a team's work; two teams never have the same.

    :raises LaunchRefused: if the prefix yields no valid namespace name.
    """
    wanted = f"{prefix}-{team or NO_TEAM}"
    name = re.sub(r"[^a-z0-9-]+", "-", wanted.lower()).strip("-")
    if name != wanted or len(name) > _LONGEST_NAMESPACE:
        # Distinguished from another team whose name maps to the same characters.
        digest = hashlib.sha256(wanted.encode()).hexdigest()[:8]
        name = f"{name[: _LONGEST_NAMESPACE - len(digest) - 1].rstrip('-')}-{digest}"
    check_launch_identifier(name, what="a namespace's name")
    return name


def pod_name(launch: str, *, role: str, index: int) -> str:
    return f"{launch}-{role}-{index}"


def is_managed_by_installation(thing: Object, *, installation: str) -> bool:
    """Whether this installation of the product created it."""
    return labels_of(thing).get(INSTALLATION) == installation
