import pytest

from policygen.model.bindings import BenchmarkBinding, MemberRule, Unit
from tests.proof.lint.toys import binding, entry, find

RULE = "label-contradicts-values"
EXPONENT = "label-stores-exponent"
LOADS = ("LOAD_DEFAULT", "LOAD_CA")
BOUND = binding(
    {
        "items": MemberRule(parameter="ipt"),
        "nominal_4b_items": MemberRule(
            parameter="ipt", unit=Unit(scaling="nominal_4b", of="InputT")
        ),
        "threads": MemberRule(parameter="tpb"),
        "load_modifier": MemberRule(parameter="ld", choices=LOADS),
        "rle_compress": MemberRule(parameter="rle", choices=("false", "true")),
        "work_stealing": MemberRule(parameter="ws"),
        "vec_size": MemberRule(parameter="vec", power_of_two=True),
        "delay_constructor": MemberRule(delay=("dcid", "ns", "l2w")),
        "store_algorithm": MemberRule(constant="BLOCK_STORE_DIRECT"),
    },
    args=("T", "sizeof(InputT)"),
)


def delay(label, spelling):
    return entry([], comment=label).replace("};", f"  using delay_constructor = {spelling};\n}};")


@pytest.mark.parametrize(
    ("body", "at", "message"),
    [
        (
            entry(["threads = 384"], comment="ipt_4.tpb_512"),
            "384",
            "the label says tpb_512, the entry has 384",
        ),
        (
            entry(["CacheLoadModifier load_modifier = LOAD_LDG"], comment="ld_1.tpb_8"),
            "LOAD_LDG",
            "the label says ld_1, which is LOAD_CA, the entry has LOAD_LDG",
        ),
        (
            entry(["bool rle_compress = true"], comment="rle_0.tpb_8"),
            "true",
            "the label says rle_0, which is false, the entry has true",
        ),
        (
            entry(["bool work_stealing = false"], comment="ws_1.tpb_8"),
            "false",
            "the label says ws_1, the entry has false",
        ),
        (
            entry(["vec_size = 8"], comment="vec_2.tpb_8"),
            "8",
            "the label says vec_2, which is 4, the entry has 8",
        ),
        # 22 nominal items are 11 of eight bytes: neither is 12.
        (
            entry(["nominal_4b_items = 22"], comment="ipt_12.tpb_8", args="T, 8"),
            "22",
            "the label says ipt_12, the entry has 22",
        ),
        (
            delay("ns_244.dcid_3.l2w_390", "exponential_backoff_jitter_constructor_t<224, 390>"),
            "exponential_backoff_jitter_constructor_t<224, 390>",
            "the label says ns_244, the entry has 224",
        ),
        (
            delay("ns_516.dcid_7.l2w_635", "detail::fixed_delay_constructor_t<516, 635>"),
            "detail::fixed_delay_constructor_t<516, 635>",
            "the label says dcid_7, which is exponential_backon_constructor_t,"
            " the entry has fixed_delay_constructor_t",
        ),
        # The write latency belongs there.
        (
            delay("ns_532.dcid_0.l2w_850", "no_delay_constructor_t<532>"),
            "no_delay_constructor_t<532>",
            "the label says l2w_850, the entry has 532, which is ns_532",
        ),
    ],
)
def test_finds_values_that_the_label_contradicts(body, at, message):
    assert find(RULE, body, BOUND) == [(at, message)]


@pytest.mark.parametrize(
    "body",
    [
        entry(["items = 4", "threads = 512"], comment="ipt_4.tpb_512 1.0 1.0"),
        entry(["threads = 512"]),
        entry(["threads = 384"], comment="512 threads were slower"),
        entry(["threads = some()"], comment="tpb_512.ipt_1"),
        entry(["warps = 4"], comment="tpb_512.ipt_1"),
        entry(["items = 4"], comment="tpb_512.trp_1"),
        entry(["CacheLoadModifier load_modifier = cub::LOAD_CA"], comment="ld_1.tpb_8"),
        # A benchmark of another version had more choices.
        entry(["CacheLoadModifier load_modifier = LOAD_CA"], comment="ld_2.tpb_8"),
        entry(["bool rle_compress = true", "bool work_stealing = true"], comment="rle_1.ws_1"),
        entry(["vec_size = 4"], comment="vec_2.tpb_8"),
        entry(["vec_size = 4"], comment="vec_40.tpb_8"),
        entry(["vec_size = 2"], comment="vec_2.tpb_8"),  # has a rule of its own
        entry(
            ["BlockStoreAlgorithm store_algorithm = BLOCK_STORE_TRANSPOSE"], comment="ipt_4.tpb_8"
        ),
        # Labels of CUB before 3.0 are on the nominal scale, later ones are not.
        entry(["nominal_4b_items = 22"], comment="ipt_22.tpb_8", args="T, 8"),
        entry(["nominal_4b_items = 22"], comment="ipt_11.tpb_8", args="T, 8"),
        entry(["nominal_4b_items = 22"], comment="ipt_12.tpb_8", args="T, Size").replace(
            "<class T>", "<class T, int Size>"
        ),
        # Two variants were measured, and one was taken.
        entry(["threads = 384"], comment="ipt_4.tpb_512\n  // ipt_5.tpb_384"),
        # A label of what is commented out.
        "template <class T> struct sm90_tuning<T, 4> : other {\n // ipt_4.tpb_512\n"
        " // static constexpr int threads = 384;\n};",
        delay("ns_516.dcid_7.l2w_635", "exponential_backon_constructor_t<516, 635>"),
        delay("ns_516.dcid_0.l2w_635", "detail::no_delay_constructor_t<635>"),
        delay("ns_516.dcid_99.l2w_635", "no_delay_constructor_t<635>"),
        delay("dcid_7.tpb_128", "no_delay_constructor_t<635>"),
        delay("ns_516.dcid_0.l2w_635", "no_delay_constructor_t<>"),
        delay("ns_516.dcid_0.l2w_635", "no_delay_constructor_t<latency>"),
    ],
)
def test_leaves_values_alone_that_the_label_does_not_contradict(body):
    assert find(RULE, body, BOUND) == []


def measured(scaling, **also):
    units = {"tpb": Unit(scaling=scaling, of="KeyT")} if scaling else {}
    parameters = {"ipt": "7:24:1", "tpb": "128:1024:32"}
    return BenchmarkBinding(name="b", site="demo", parameters=parameters, units=units, **also)


@pytest.mark.parametrize(
    ("benchmarks", "count"),
    [
        ([measured("reg_bound")], 1),
        # One that cannot be written has no labels in headers.
        ([measured("reg_bound"), measured(None, writable=False, edit="nothing")], 1),
        ([measured("reg_bound"), measured(None)], 0),
        ([measured("mem_bound")], 0),
        ([measured(None)], 0),
        ([], 0),
    ],
)
def test_scaled_values_are_compared_where_the_benchmark_scales_them_too(benchmarks, count):
    rule = MemberRule(parameter="tpb", unit=Unit(scaling="reg_bound", of="KeyT"))
    body = entry(["threads = 384"], comment="ipt_4.tpb_512", args="T, 8")
    found = find(RULE, body, binding({"threads": rule}), benchmarks=tuple(benchmarks))
    assert len(found) == count


def test_without_a_binding_labels_say_nothing():
    assert find(RULE, entry(["threads = 384"], comment="ipt_4.tpb_512")) == []


def test_of_several_bindings_the_one_that_fits_best_counts():
    other = binding({"threads": MemberRule(parameter="ipt")})
    body = entry(["threads = 384"], comment="ipt_4.tpb_384")
    assert find(RULE, body, other) == [("384", "the label says ipt_4, the entry has 384")]
    assert find(RULE, body, other, BOUND) == []


@pytest.mark.parametrize(("exponent", "meant"), [(0, 1), (1, 2), (2, 4)])
def test_finds_exponents_in_place_of_powers(exponent, meant):
    body = entry([f"vec_size = {exponent}"], comment=f"ipt_4.vec_{exponent}")
    assert find(EXPONENT, body, BOUND) == [
        (
            str(exponent),
            f"the label says vec_{exponent}, which is {meant},"
            f" the entry has the exponent {exponent}",
        )
    ]


@pytest.mark.parametrize(
    "body",
    [
        entry(["vec_size = 4"], comment="ipt_4.vec_2"),
        entry(["vec_size = 8"], comment="ipt_4.vec_2"),
        entry(["vec_size = 2"], comment="ipt_4.tpb_128"),
        entry(["vec_size = 2"]),
        entry(["items = 4"], comment="ipt_4.vec_2"),
        entry(["vec_size = -2"], comment="ipt_4.vec_-2"),
        entry(["vec_size = 4"], comment="ipt_4.vec_4\n  // ipt_4.vec_2"),
    ],
)
def test_leaves_exponents_alone_that_are_none(body):
    assert find(EXPONENT, body, BOUND) == []
