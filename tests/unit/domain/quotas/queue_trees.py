"""Trees of queues for the tests: by hand, and of every form."""

from __future__ import annotations

import string

from hypothesis import strategies as st

from controlplane.domain.quotas.queue_documents import Documents, QueueDocument
from controlplane.domain.quotas.queues import TOTAL, ChipQuota, QueueState
from controlplane.domain.quotas.validation import QueueTreeContext

CHIP = "nvidia-h800"
OTHER = "ascend-910b3"
CHIPS = (CHIP, OTHER)
TEAMS = ("research", "product")

CONTEXT = QueueTreeContext(teams=TEAMS, chips=CHIPS, cards={CHIP: 32, OTHER: 32})


def document(
    name: str,
    *,
    parent: str = "",
    team: str = "",
    reserved: int = 0,
    guaranteed: int = 0,
    cap: int | None = None,
    total: ChipQuota | None = None,
    **fields: object,
) -> QueueDocument:
    """Known by its name; figures are of one chip."""
    stated = ChipQuota(reserved=reserved, guaranteed=guaranteed, cap=cap)
    entitlements = {CHIP: stated, TOTAL: total or ChipQuota()}
    return QueueDocument(
        uid=name,
        name=name,
        parent=parent,
        team=team,
        entitlements={chip: one for chip, one in entitlements.items() if one != ChipQuota()},
        **fields,  # type: ignore[arg-type]
    )


def tree(*documents: QueueDocument) -> Documents:
    return {one.uid: one for one in documents}


entitlements = st.builds(
    lambda reserved, more, room: ChipQuota(
        reserved=reserved,
        guaranteed=reserved + more,
        cap=None if room is None else reserved + more + room,
    ),
    st.integers(0, 8),
    st.integers(0, 8),
    st.none() | st.integers(0, 8),
).filter(lambda stated: stated != ChipQuota())

names = st.text(string.ascii_letters + string.digits + "-_", min_size=1, max_size=12)


@st.composite
def trees(draw: st.DrawFn) -> Documents:
    """Up to six queues, each below one that came before it, or at the top."""
    documents: dict[str, QueueDocument] = {}
    for name in draw(st.lists(names, max_size=6, unique=True)):
        high = [uid for uid in documents if _depth(uid, documents) < 7]
        uid = f"uid of {name}"
        documents[uid] = QueueDocument(
            uid=uid,
            name=name,
            parent=draw(st.sampled_from(["", *high])),
            team=draw(st.sampled_from(["", *TEAMS])),
            state=draw(st.sampled_from(QueueState)),
            description=draw(
                st.text(
                    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=9
                )
            ),
            weight=draw(st.floats(1e-3, 1e6)),
            borrows=draw(st.booleans()),
            lends=draw(st.booleans()),
            reclaims=draw(st.booleans()),
            preempts=draw(st.booleans()),
            max_running_per_user=draw(st.none() | st.integers(1, 100)),
            entitlements=draw(st.dictionaries(st.sampled_from([*CHIPS, TOTAL]), entitlements)),
        )
    return documents


def _depth(uid: str, documents: Documents) -> int:
    return 1 + (_depth(documents[uid].parent, documents) if documents[uid].parent else 0)
