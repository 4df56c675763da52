from policygen.gpu.space import PolicyPart, joined, labels_of
from policygen.model.bindings import MemberRule

IPT, TPB = MemberRule(parameter="ipt"), MemberRule(parameter="tpb")
DELAY = MemberRule(delay=("dcid", "ns", "l2w"))


def test_what_has_no_parameter_in_common_is_apart():
    assert joined([({"ipt"}, {"items"}, IPT), ({"tpb"}, {"threads"}, TPB)]) == [
        PolicyPart(("ipt",), frozenset({"items"})),
        PolicyPart(("tpb",), frozenset({"threads"})),
    ]


def test_what_couples_parameters_joins_their_parts():
    lots = [
        ({"ipt"}, {"items"}, IPT),
        ({"tpb"}, {"threads"}, TPB),
        ({"tpb", "ipt"}, (), None),
    ]
    assert joined(lots) == [PolicyPart(("ipt", "tpb"), frozenset({"items", "threads"}))]


def test_what_no_parameter_decides_is_no_part():
    assert joined([((), {"algorithm"}, MemberRule(constant="lookback"))]) == []


def test_a_delay_alone_is_told_as_one():
    lots = [({"dcid", "ns", "l2w"}, {"kind"}, DELAY)]
    assert joined(lots) == [PolicyPart(("dcid", "l2w", "ns"), frozenset({"kind"}), DELAY.delay)]
    assert joined([*lots, ({"ns"}, {"items"}, None)])[0].delay is None


def test_a_rule_looks_at_its_parameter_and_at_what_multiplies_it():
    assert labels_of(MemberRule(parameter="vsp2", times="unrl")) == {"vsp2", "unrl"}
    assert labels_of(MemberRule(parameter="pref", times=32)) == {"pref"}
    assert labels_of(MemberRule(constant="x")) == frozenset()
