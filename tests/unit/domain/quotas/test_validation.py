"""Whether a tree may become another, and who may say so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from controlplane.domain.quotas.permissions import (
    QueuePermissions,
    may_add_child_queue,
    may_change_queue,
    permission_errors,
)
from controlplane.domain.quotas.queue_documents import Documents, QueueDocument, RetiredQueue
from controlplane.domain.quotas.queues import ChipQuota, QueueState
from controlplane.domain.quotas.validation import QueueTreeContext, validate_tree_change
from tests.unit.domain.quotas.queue_trees import CHIP, CONTEXT, TEAMS, document, tree

NOTHING: Documents = {}


def findings(
    *after: QueueDocument, before: Documents = NOTHING, context: QueueTreeContext = CONTEXT
) -> list[str]:
    return [
        finding.message for finding in validate_tree_change(before, tree(*after), context).findings
    ]


def warnings(*after: QueueDocument, context: QueueTreeContext = CONTEXT) -> list[str]:
    judgement = validate_tree_change(NOTHING, tree(*after), context)
    assert not judgement.findings
    return [finding.message for finding in judgement.warnings]


def chain(levels: int) -> tuple[QueueDocument, ...]:
    return tuple(
        document(f"q{level}", parent=f"q{level - 1}" if level else "") for level in range(levels)
    )


@pytest.mark.parametrize(
    ("after", "message"),
    [
        (
            chain(9),
            "queue q8 is 9 levels deep, and at most 8 are allowed; place it higher",
        ),
        (
            (
                document("top", guaranteed=16),
                document("middle", parent="top"),
                document("one", parent="middle", guaranteed=12),
                document("other", parent="middle", guaranteed=8),
            ),
            (
                "the guaranteed quotas of the queues below top total 20 × nvidia-h800, "
                "more than its own guaranteed 16; lower their guarantees or raise its "
                "own"
            ),
        ),
        (
            (
                document("top", total=ChipQuota(cap=16)),
                document("one", parent="top", guaranteed=12),
                document("other", parent="top", total=ChipQuota(guaranteed=8)),
            ),
            (
                "the guaranteed quotas of the queues below top total 20 cards in all, "
                "more than its cap of 16; lower the guarantees or raise the cap"
            ),
        ),
        (
            (document("a", guaranteed=12, total=ChipQuota(cap=8)),),
            (
                "queue a guarantees 12 cards over all chips, more than its total cap "
                "of 8 cards; raise the cap or lower the guarantees"
            ),
        ),
        (
            (replace(document("a"), entitlements={"gpu-9": ChipQuota(guaranteed=1)}),),
            "queue a has a quota for the unknown chip 'gpu-9'; known are ascend-910b3, nvidia-h800",
        ),
        (
            (document("a", max_running_per_user=0),),
            "a: max_running_per_user must be a whole number from 1, or null for no limit, got 0",
        ),
        (
            (document("a", team="sales"),),
            "queue a is for team 'sales', which does not exist; choose another team",
        ),
        (
            (document("a", team="research"), document("b", parent="a", team="product")),
            (
                "queue b is for team product and is below a, which is only for team "
                "research; place it below a queue for every team"
            ),
        ),
        (
            (document("a", team="research"), document("b", parent="a")),
            (
                "queue b is for every team and is below a, which is only for team "
                "research; assign it to that team or place it elsewhere"
            ),
        ),
        (
            (document("a"), replace(document("b"), name="a")),
            "the name a is given to two queues; call one of them something else",
        ),
        (
            (document("two words"),),
            "two words: name must be 1 to 60 Latin letters, digits, hyphens and underscores, "
            "got 'two words'",
        ),
        (
            (document("a", weight=float("inf")),),
            "a: weight must be a number greater than 0, got inf",
        ),
        (
            (document("a", guaranteed=-1),),
            "a › nvidia-h800: guaranteed must be a whole number of cards from 0, got -1",
        ),
    ],
)
def test_a_tree_that_cannot_be_is_refused_with_the_queue_and_the_numbers(
    after: tuple[QueueDocument, ...], message: str
) -> None:
    assert message in findings(*after)


def test_queues_in_a_circle_are_found_before_anything_is_added_up() -> None:
    assert findings(
        document("a", parent="b", guaranteed=8), document("b", parent="a", guaranteed=4)
    ) == [
        f"queue {name} is below itself; move one of its ancestors to the top level"
        for name in ("a", "b")
    ]


def test_the_name_of_a_retired_queue_stays_taken_but_for_itself() -> None:
    other = replace(document("other"), name="old")
    expected = {
        "": "the name old is that of a retired queue; choose another name, or create a queue of",
        "a": "the name old is that of a retired queue of another team; choose another name, or",
    }
    for team, said in expected.items():
        retired = {"old": RetiredQueue(uid="old", team=team)}
        (message,) = findings(other, context=replace(CONTEXT, retired=retired))
        assert message.startswith(said)
    context = replace(CONTEXT, retired={"old": RetiredQueue(uid="old", team="")})
    (message,) = findings(replace(other, team=min(TEAMS)), context=context)
    assert message.startswith("the name old is that of a retired queue for every team; choose")
    assert not findings(document("old"), context=context)


def test_a_queue_with_claims_is_neither_retired_nor_split() -> None:
    before = tree(document("a"), document("b"))
    context = replace(CONTEXT, waiting={"a": 3}, holding={"a": 2})

    assert findings(document("b"), before=before, context=context) == [
        "queue a has 3 pending and 2 admitted claims; set it to draining, and retire it when it is empty"
    ]
    assert findings(*before.values(), document("c", parent="a"), before=before, context=context)[
        0
    ].startswith(
        "queue a has 3 pending and 2 admitted claims, and only a queue without child queues can have"
    )


def test_what_was_wrong_before_is_told_and_does_not_forbid_another_change() -> None:
    before = tree(document("top", guaranteed=4), document("one", parent="top", guaranteed=8))
    worse = replace(before["one"], entitlements={CHIP: ChipQuota(guaranteed=9)})

    after = {**before, "b": document("b")}
    message = (
        "the guaranteed quotas of the queues below top total 8 × nvidia-h800, more than its own"
    )
    judgement = validate_tree_change(before, after, CONTEXT)
    assert not judgement.findings
    assert judgement.warnings[0].message.startswith(message)
    assert validate_tree_change(before, {**before, "one": worse}, CONTEXT).findings


@pytest.mark.parametrize(
    ("after", "context", "message"),
    [
        (
            (document("a", guaranteed=24), document("b", guaranteed=16)),
            CONTEXT,
            (
                "the guaranteed quotas of the queues total 40 × nvidia-h800, but the "
                "fleet has 32: they cannot all be met at the same time"
            ),
        ),
        (
            (document("a", guaranteed=4),),
            replace(CONTEXT, cards={}),
            "queue a is guaranteed 4 × nvidia-h800, but the fleet has none",
        ),
        (
            (document("a", cap=8), document("b", parent="a", cap=12)),
            CONTEXT,
            "queue b has a cap of 12 × nvidia-h800 and is below a, which has a cap of 8: the lower cap applies",
        ),
        (
            (document("a", guaranteed=8, total=ChipQuota(guaranteed=4)),),
            CONTEXT,
            (
                "queue a is guaranteed 8 cards over all chips, but its total guarantee "
                "is 4 cards: at most 4 are guaranteed at the same time"
            ),
        ),
        (
            (document("a", guaranteed=8, reclaims=False),),
            CONTEXT,
            (
                "queue a lends its guaranteed quota but does not reclaim it: its "
                "claims stay pending until the borrowing claims end"
            ),
        ),
        (
            (document("a", cap=8), document("b", parent="a")),
            replace(CONTEXT, used={"b": {CHIP: 10}}),
            (
                "queue a uses 10 × nvidia-h800, more than its cap of 8: running claims "
                "continue, and no further claims start until usage falls below the cap"
            ),
        ),
    ],
)
def test_what_may_be_saved_and_is_not_what_one_thinks_is_a_warning(
    after: tuple[QueueDocument, ...], context: QueueTreeContext, message: str
) -> None:
    assert message in warnings(*after, context=context)


# -- Rights --

TREE = tree(
    document("science", guaranteed=32),
    document("lab", parent="science", team="research", reserved=4, guaranteed=16, cap=24),
    document("vision", parent="lab", team="research", guaranteed=8),
    document("speech", parent="lab", team="research"),
    document("shop", parent="science", team="product", guaranteed=8),
)
#: A card of whatever chip.
ANY = ChipQuota(guaranteed=1)
RESEARCH = QueuePermissions(teams=frozenset({"research"}))


def refused(
    changed: Mapping[str, QueueDocument | None], *, rights: QueuePermissions = RESEARCH
) -> tuple[str, ...]:
    after = {uid: one for uid, one in {**TREE, **changed}.items() if one is not None}
    return permission_errors(TREE, after, rights)


def stated(uid: str, **amounts: int) -> QueueDocument:
    return replace(TREE[uid], entitlements={CHIP: ChipQuota(**amounts)})


def test_an_administrator_of_the_company_changes_everything() -> None:
    everything = QueuePermissions(everything=True)

    changed = {"science": None, "lab": None, "shop": stated("shop", guaranteed=99)}
    assert not refused(changed, rights=everything)


@pytest.mark.parametrize(
    "changed",
    [
        {"vision": None},
        {"vision": stated("vision", guaranteed=16)},
        {"speech": stated("speech", guaranteed=4, reserved=4, cap=400)},
        {"speech": replace(TREE["speech"], parent="vision", weight=5.0, lends=False)},
        {"audio": document("audio", parent="speech", team="research")},
        {"lab": replace(TREE["lab"], state=QueueState.CLOSED, description="x", preempts=False)},
        {"lab": replace(TREE["lab"], max_running_per_user=2, borrows=False, reclaims=False)},
    ],
)
def test_a_queue_admin_changes_what_is_below_and_how_the_topmost_is_used(
    changed: dict[str, QueueDocument | None],
) -> None:
    assert not refused(changed)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"science": replace(TREE["science"], description="mine")},
            "queue science is for every team; only an administrator of the company can change it",
        ),
        (
            {"shop": replace(TREE["shop"], description="mine")},
            "queue shop is for team product; changing it requires the permission to manage queues in that team",
        ),
        (
            {"lab": None, "vision": None, "speech": None},
            (
                "queue lab was assigned to team research by an administrator of the "
                "company; only an administrator of the company can retire it"
            ),
        ),
        (
            {"lab": replace(TREE["lab"], lends=False)},
            (
                "queue lab would use more of the quota of other teams because of the "
                "change of lends; only an administrator of the company can allow this"
            ),
        ),
        (
            {"lab": stated("lab", guaranteed=24)},
            "other teams depend on the cards of queue lab; only an administrator of the company can "
            "change that",
        ),
        (
            {"vision": replace(TREE["vision"], parent="science")},
            (
                "queue vision would not be below a queue of team research; only an "
                "administrator of the company can place it there"
            ),
        ),
        (
            {"audio": document("audio", parent="shop", team="research")},
            (
                "queue audio would not be below a queue of team research; only an "
                "administrator of the company can place it there"
            ),
        ),
        (
            {"vision": stated("vision", guaranteed=17)},
            (
                "the guaranteed quotas of the queues below lab would total 17 × "
                "nvidia-h800, and lab is guaranteed 16; an administrator of the "
                "company can raise it"
            ),
        ),
        (
            {"speech": document("speech", parent="lab", team="research", total=ANY)},
            (
                "the guaranteed quotas of the queues below lab would total 1 cards in "
                "all, and lab is guaranteed 0; an administrator of the company can "
                "raise it"
            ),
        ),
        (
            {"vision": stated("vision", guaranteed=8, reserved=5)},
            (
                "the queues below lab would reserve 5 × nvidia-h800, unavailable to "
                "others even while idle, and lab may reserve 4; reserve less, or let "
                "them lend"
            ),
        ),
        (
            {"vision": replace(TREE["vision"], lends=False)},
            (
                "the queues below lab would reserve 8 × nvidia-h800, unavailable to "
                "others even while idle, and lab may reserve 4; reserve less, or let "
                "them lend"
            ),
        ),
    ],
)
def test_a_queue_admin_takes_nothing_from_others(
    changed: dict[str, QueueDocument | None], message: str
) -> None:
    assert message in refused(changed)


def test_who_manages_no_queues_changes_nothing() -> None:
    assert refused({"vision": None}, rights=QueuePermissions())
    assert not may_change_queue("vision", TREE, QueuePermissions())
    assert not may_add_child_queue("", TREE, RESEARCH)
    assert may_add_child_queue("vision", TREE, RESEARCH)
