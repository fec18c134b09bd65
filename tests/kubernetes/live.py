"""The one test cluster that tests share: started by the first that needs it, stopped after the last."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kubernetes import clusters
from tests.kubernetes.clusters import LiveCluster


@pytest.fixture(scope="session")
def live_cluster() -> Iterator[LiveCluster]:
    """For tests that leave its programs alone; what they make there they take away again."""
    try:
        with clusters.running(say=print) as running:
            yield running
    except clusters.NoCluster as reason:
        pytest.skip(str(reason))
