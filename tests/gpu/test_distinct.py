import pytest

from policygen.errors import InputError
from policygen.gpu.space import Classifier, SpaceCounts
from policygen.model.bindings import MemberRule
from policygen.model.workload import as_label
from tests.gpu.pretended import PretendedMeaning, space

SPACE = {"ipt": "1:8:1", "tpb": "32:256:32", "ld": "0:1:1"}


@pytest.fixture
def classifier():
    return Classifier(space(**SPACE), PretendedMeaning())


def by_force(known, meaning):
    """The labels of each policy, and those that cannot be, asked one by one."""
    found, refused = {}, []
    for variant in known:
        try:
            policy = meaning.policy(variant)
        except InputError:
            refused.append(as_label(variant))
            continue
        found.setdefault(tuple(policy.items()), []).append(as_label(variant))
    return found, refused


def test_variants_of_the_same_policy_are_one(classifier):
    found, refused = by_force(classifier.space, PretendedMeaning())
    told = classifier.classify()
    assert [(one.label, *one.others) for one in told.distinct] == [*map(tuple, found.values())]
    assert [tuple(one.policy.items()) for one in told.distinct] == [*found]
    assert [*told.refused] == refused
    assert (told.variants, told.valid) == (128, 128 - len(refused))


def test_a_space_is_counted_by_its_parts(classifier):
    told = classifier.classify()
    meaning = PretendedMeaning()
    counts = Classifier(space(**SPACE), meaning).counts()
    assert counts == SpaceCounts(128, told.valid, len(told.distinct))
    assert meaning.asked <= 8 * 8 + 2 + 17, "and not for each of its variants"


def test_each_combination_of_a_part_is_asked_once(classifier):
    classifier.classify()
    asked = classifier.meaning.asked
    classifier.classify()
    assert classifier.meaning.asked == asked <= 8 * 8 + 2 + 16 * 2


def test_the_first_label_stands_for_the_others(classifier):
    told = classifier.classify()
    stands_for = told.stands_for
    assert stands_for["ipt_3.tpb_64.ld_0"] == "ipt_2.tpb_64.ld_0"
    assert stands_for["ipt_2.tpb_64.ld_0"] == "ipt_2.tpb_64.ld_0"
    assert len(stands_for) == told.valid


def test_what_is_base_is_told(classifier):
    base = [one for one in classifier.classify().distinct if one.is_base]
    assert [(one.label, one.others) for one in base] == [
        ("ipt_4.tpb_64.ld_1", ("ipt_5.tpb_64.ld_1",))
    ]


def test_a_rule_tells_how_many_it_drops(classifier):
    told = classifier.classify()
    assert told.dropped == {"A thread has one item at least.": 16}
    assert told.refused["ipt_1.tpb_32.ld_0"] == (
        "items = 0 cannot be. A thread has one item at least."
    )


def test_some_variants_are_classified_as_all_are(classifier):
    chosen = classifier.space.sample(20, 3)
    told = classifier.classify([*chosen, *chosen])
    assert told.variants == 20
    keys = {as_label(one): classifier.key(one) for one in chosen if one["ipt"] > 1}
    assert len(told.distinct) == len(set(keys.values()))


def test_policies_are_drawn_until_there_are_as_many_as_are_wanted(classifier):
    told = classifier.draw(10, seed=1)
    assert len(told.distinct) == 10
    assert told == classifier.draw(10, seed=1)
    assert len(classifier.draw(1000, seed=1).distinct) == len(classifier.classify().distinct)


def test_a_parameter_that_decides_nothing_makes_no_difference():
    known = space(**SPACE, x="1:100:1")
    counts = Classifier(known, PretendedMeaning()).counts()
    plain = Classifier(space(**SPACE), PretendedMeaning()).counts()
    assert counts == SpaceCounts(12_800, plain.valid * 100, plain.distinct)


def test_a_variant_that_lacks_a_parameter_is_refused(classifier):
    with pytest.raises(InputError, match="has no parameter 'ld'"):
        classifier.key({"ipt": 4, "tpb": 32})


def test_where_nothing_can_be_it_is_told_why():
    classifier = Classifier(space(ipt="1:1:1", tpb="32:64:32", ld="0:1:1"), PretendedMeaning())
    with pytest.raises(
        InputError,
        match=r"has no valid variant: of 8 checked, 8: items = 0 cannot be",
    ):
        classifier.counts()


class Waiting(PretendedMeaning):
    """A policy that is nothing but a way to wait."""

    def policy(self, variant):
        return {"delay": "_".join(map(str, variant.values()))}

    def groups(self):
        labels = ("dcid", "ns", "l2w")
        return [(labels, ("delay",), MemberRule(delay=labels))]


def test_ways_to_wait_are_counted_by_what_they_use():
    """`no_delay` ignores the delay; 8 to 9 are none of CUB's, and below 0 is no time."""
    known = space(dcid="0:9:1", ns="-4:8:4", l2w="5:10:5")
    counts = Classifier(known, Waiting()).counts()
    assert counts == SpaceCounts(80, 8 * 3 * 2, 2 + 7 * 3 * 2)
