"""Whether a tree may become another, and who may say so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from controlplane.domain.quotas.documents import Documents, QueueDocument
from controlplane.domain.quotas.permissions import (
    QueuePermissions,
    may_add_below,
    may_change,
    permission_errors,
)
from controlplane.domain.quotas.queues import ChipQuota, QueueState
from controlplane.domain.quotas.validation import TreeContext, validate_tree_change
from tests.unit.domain.quotas.queue_trees import CHIP, CONTEXT, document, tree

NOTHING: Documents = {}


def findings(
    *after: QueueDocument, before: Documents = NOTHING, context: TreeContext = CONTEXT
) -> list[str]:
    return [
        finding.message for finding in validate_tree_change(before, tree(*after), context).findings
    ]


def warnings(*after: QueueDocument, context: TreeContext = CONTEXT) -> list[str]:
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
            "queue q8 is 9 levels down, and 8 are the most; place it higher",
        ),
        (
            (
                document("top", guaranteed=16),
                document("middle", parent="top"),
                document("one", parent="middle", guaranteed=12),
                document("other", parent="middle", guaranteed=8),
            ),
            "the queues below top are guaranteed 20 × nvidia-h800 together, more than its own 16; "
            "lower theirs or raise it",
        ),
        (
            (
                document("top", total=ChipQuota(cap=16)),
                document("one", parent="top", guaranteed=12),
                document("other", parent="top", total=ChipQuota(guaranteed=8)),
            ),
            "the queues below top are guaranteed 20 cards in all together, more than its cap of 16; "
            "lower theirs or raise it",
        ),
        (
            (document("a", guaranteed=12, total=ChipQuota(cap=8)),),
            "queue a guarantees 12 cards of single chips, more than its cap of 8 cards in all; "
            "raise the cap or lower the guarantees",
        ),
        (
            (replace(document("a"), entitlements={"gpu-9": ChipQuota(guaranteed=1)}),),
            "queue a states cards of 'gpu-9', and no chip is called that; known are "
            "ascend-910b3, nvidia-h800",
        ),
        (
            (document("a", max_running_per_user=0),),
            "a: max_running_per_user must be a whole number from 1, or null for no limit, got 0",
        ),
        (
            (document("a", team="sales"),),
            "queue a is for team 'sales', and there is none of that name; choose another",
        ),
        (
            (document("a", team="research"), document("b", parent="a", team="product")),
            "queue b is for team product and stands below a, which is for team research alone; "
            "place it below a queue for every team",
        ),
        (
            (document("a", team="research"), document("b", parent="a")),
            "queue b is for every team and stands below a, which is for team research alone; "
            "give it that team or place it elsewhere",
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
            "a: weight must be a number more than 0, got inf",
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
        f"queue {name} stands below itself; let one of the queues above it stand at the top"
        for name in ("a", "b")
    ]


def test_the_name_of_a_retired_queue_stays_taken_but_for_itself() -> None:
    context = replace(CONTEXT, retired={"old": "old"})

    (message,) = findings(replace(document("other"), name="old"), context=context)
    assert message.startswith("the name old is that of a retired queue")
    assert not findings(document("old"), context=context)


def test_a_queue_with_claims_is_neither_retired_nor_split() -> None:
    before = tree(document("a"), document("b"))
    context = replace(CONTEXT, waiting={"a": 3}, holding={"a": 2})

    assert findings(document("b"), before=before, context=context) == [
        "queue a has 3 claims that wait and 2 that hold cards; set it to draining, and retire it "
        "when it is empty"
    ]
    assert findings(*before.values(), document("c", parent="a"), before=before, context=context)[
        0
    ].startswith("queue a has 3 claims that wait and 2 that hold cards, and only a queue")


def test_what_was_wrong_before_is_told_and_does_not_forbid_another_change() -> None:
    before = tree(document("top", guaranteed=4), document("one", parent="top", guaranteed=8))
    worse = replace(before["one"], entitlements={CHIP: ChipQuota(guaranteed=9)})

    after = {**before, "b": document("b")}
    message = "the queues below top are guaranteed 8 × nvidia-h800 together, more than its own 4"
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
            "the queues are guaranteed 40 × nvidia-h800 together and the fleet has 32: they cannot "
            "all have theirs at once",
        ),
        (
            (document("a", guaranteed=4),),
            replace(CONTEXT, cards={}),
            "queue a is guaranteed 4 × nvidia-h800, and the fleet has none",
        ),
        (
            (document("a", cap=8), document("b", parent="a", cap=12)),
            CONTEXT,
            "queue b has a cap of 12 × nvidia-h800 and stands below a, which has one of 8: it never "
            "holds more than that",
        ),
        (
            (document("a", guaranteed=8, total=ChipQuota(guaranteed=4)),),
            CONTEXT,
            "queue a is guaranteed 8 cards of single chips and 4 cards in all: it is owed no more "
            "than 4 at once",
        ),
        (
            (document("a", guaranteed=8, reclaims=False),),
            CONTEXT,
            "queue a lends its guarantee and does not take it back: it waits until those who "
            "borrowed have ended",
        ),
        (
            (document("a", cap=8), document("b", parent="a")),
            replace(CONTEXT, used={"b": {CHIP: 10}}),
            "queue a holds 10 × nvidia-h800, more than its cap of 8: what runs goes on, and nothing "
            "more starts until enough of it has ended",
        ),
    ],
)
def test_what_may_be_saved_and_is_not_what_one_thinks_is_a_warning(
    after: tuple[QueueDocument, ...], context: TreeContext, message: str
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
            "queue shop is for team product; changing it needs the permission to manage queues "
            "there",
        ),
        (
            {"lab": None, "vision": None, "speech": None},
            "queue lab was given to team research by an administrator of the company; only they "
            "can retire it",
        ),
        (
            {"lab": replace(TREE["lab"], lends=False)},
            "queue lab would take from other teams what it did not take so far (lends); only an "
            "administrator of the company can allow it that",
        ),
        (
            {"lab": stated("lab", guaranteed=24)},
            "other teams depend on the cards of queue lab; only an administrator of the company can "
            "change that",
        ),
        (
            {"vision": replace(TREE["vision"], parent="science")},
            "queue vision would not stand below a queue of team research; only an administrator of "
            "the company can place it there",
        ),
        (
            {"audio": document("audio", parent="shop", team="research")},
            "queue audio would not stand below a queue of team research; only an administrator of "
            "the company can place it there",
        ),
        (
            {"vision": stated("vision", guaranteed=17)},
            "the queues below lab would be guaranteed 17 × nvidia-h800 together, and lab has 16; an "
            "administrator of the company can give it more",
        ),
        (
            {"speech": document("speech", parent="lab", team="research", total=ANY)},
            "the queues below lab would be guaranteed 1 cards in all together, and lab has 0; an "
            "administrator of the company can give it more",
        ),
        (
            {"vision": stated("vision", guaranteed=8, reserved=5)},
            "the queues below lab would keep 5 × nvidia-h800 from others while idle, and lab may "
            "keep 4; reserve less, or let them lend",
        ),
        (
            {"vision": replace(TREE["vision"], lends=False)},
            "the queues below lab would keep 8 × nvidia-h800 from others while idle, and lab may "
            "keep 4; reserve less, or let them lend",
        ),
    ],
)
def test_a_queue_admin_takes_nothing_from_others(
    changed: dict[str, QueueDocument | None], message: str
) -> None:
    assert message in refused(changed)


def test_who_manages_no_queues_changes_nothing() -> None:
    assert refused({"vision": None}, rights=QueuePermissions())
    assert not may_change("vision", TREE, QueuePermissions())
    assert not may_add_below("", TREE, RESEARCH)
    assert may_add_below("vision", TREE, RESEARCH)
