"""Names of rocPRIM's benchmarks: what ran, in all spellings, or why a name says too little."""

import json
import re

import pytest

from policygen.results.tuners.formats import DoubledNames
from policygen.rocprim.result_names import parse_meta, parse_name, plain_value
from tests.results.rocprim_files import ALGORITHMS, configurations, name_of

REDUCE = "{lvl:device,algo:reduce,key_type:int,cfg:{bs:256,ipt:16,method:using_warp_reduce}}"


@pytest.mark.parametrize(
    "name",
    [
        REDUCE,
        REDUCE.replace(",", ", ").replace(":", ": "),
        '{"lvl":"device","algo":"reduce","key_type":"int","cfg":{"bs":256,"ipt":16,'
        '"method":"using_warp_reduce"}}',
        '{"lvl": "device", "algo": "reduce", "key_type": "int", "cfg": {"bs": "256", "ipt": 16,'
        ' "method": "using_warp_reduce"}}',
    ],
)
@pytest.mark.parametrize("rest", ["", "/manual_time", "/iterations:10/manual_time", "/repeats:5"])
def test_a_name_says_what_ran(name, rest):
    found = parse_name(name + rest)
    assert (found.algorithm, found.workload) == ("device_reduce", {"key_type": "int"})
    assert found.config == {"bs": 256, "ipt": 16, "method": "using_warp_reduce"}
    assert found.aggregate == ""


@pytest.mark.parametrize(("algorithm", "types"), ALGORITHMS)
def test_all_spellings_say_the_same(algorithm, types):
    for config in [*configurations(ALGORITHMS[algorithm, types]), "default_config"]:
        txt, quoted = (
            parse_name(name_of(algorithm, types, config, how)) for how in ("txt", "json")
        )
        assert txt == quoted
        assert txt.algorithm == f"device_{algorithm}"
        assert (txt.config is None) == (config == "default_config")


def test_what_is_nested_has_the_names_of_all_levels():
    found = parse_name(
        "{lvl:device,algo:radix_sort_onesweep,key_type:int,value_type:empty_type,"
        "cfg:{histogram:{bs:256,ipt:12},sort:{bs:512,ipt:6},bits_per_place:8,"
        "algorithm:block_radix_rank_algorithm::match}}/manual_time_mean"
    )
    assert found.config == {
        "histogram_bs": 256,
        "histogram_ipt": 12,
        "sort_bs": 512,
        "sort_ipt": 6,
        "bits_per_place": 8,
        "algorithm": "block_radix_rank_algorithm::match",
    }
    assert found.workload == {"key_type": "int", "value_type": "rocprim::empty_type"}
    assert found.aggregate == "mean"


def test_a_subalgorithm_and_facts_of_the_input_are_told():
    found = parse_name(
        "{lvl:device,algo:partition,subalgo:flag,data_type:custom_type<int,int>,probability:0.5,"
        "exclusive:true,cfg: default_config}"
    )
    assert found.algorithm == "device_partition_flag"
    assert found.workload == {
        "data_type": "custom_type<int,int>",
        "probability": "0.5",
        "exclusive": "true",
    }
    assert found.config is None
    assert parse_name(
        '{"lvl":"device","algo":"a","x":true,"n":3,"cfg":"default_config"}'
    ).workload == {
        "x": "true",
        "n": "3",
    }


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        ("16", 16),
        (" 16 ", 16),
        ("-3", -3),
        ("007", "007"),
        ("true", True),
        (False, False),
        (0.5, "0.5"),
        (2.0, "2.0"),
        (1 << 40, "1099511627776"),
        ("a::b", "a::b"),
    ],
)
def test_a_value_is_a_number_where_it_can_be(value, plain):
    found = plain_value(value)
    assert (found, type(found)) == (plain, type(plain))


def nested(depth):
    return "{lvl:device,algo:a,cfg:" + "{a:" * depth + "1" + "}" * depth + "}"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("", "it does not name what ran"),
        ("device,reduce,int,<256,16>/manual_time", "it does not name what ran"),
        ("{", "it does not name what ran"),
        ("}", "it does not name what ran"),
        ("{lvl:device}/1000", "it does not name what ran"),
        ("{" + "x" * 5000 + "}", "it has more than 4,000 characters"),
        ("{lvl:device,algo:a}", "it has no cfg"),
        ("{lvl:device,algo:a,algo:b,cfg:default_config}", "it names something twice"),
        ("{lvl:device,cfg:default_config}", "it does not name its lvl and its algo"),
        ("{lvl:{a:1},algo:a,cfg:default_config}", "it has several values where one should be"),
        ("{lvl:device,algo:a,cfg:other}", "its cfg, 'other', is not a configuration"),
        ("{lvl:device,algo:a,cfg:{}}", "it has a value without a name"),
        ('{"lvl":"d","algo":"a","cfg":{}}', "0 parameters, but only 1 to 64 are possible"),
        ("{lvl:device,algo:a,cfg:{a_b:1,a:{b:2}}}", "it names a_b twice"),
        ("{lvl:device,algo:a,cfg:{1a:1}}", "'1a' is not the name of a parameter"),
        ("{lvl:device,algo:A b,cfg:{a:1}}", "'device_A b' is not the name of an algorithm"),
        ("{lvl:device,algo:copy_2,cfg:{a:1}}", "'device_copy_2' is not the name of an algorithm"),
        ("{lvl:device,algo:a\"; DROP,cfg:{a:1}}", "it is not JSON"),
        ("{lvl:device,algo:a,Key:int,cfg:{a:1}}", "'Key' is not the name of an axis"),
        ("{lvl:device,algo:a,key_type:i\x1bnt,cfg:{a:1}}", "key_type, 'i\\x1bnt', is not a type"),
        ("{lvl:device,algo:a,key_type:,cfg:{a:1}}", "key_type, '', is not a type or number"),
        (
            "{lvl:device,algo:a," + ",".join(f"a{n}:1" for n in range(17)) + ",cfg:{a:1}}",
            "it has more than 16 axes",
        ),
        ("{lvl:device,algo:a,cfg:{a:" + "x" * 201 + "}}", "a value of more than 200 characters"),
        (
            "{lvl:device,algo:a,cfg:{" + ",".join(f"a{n}:1" for n in range(65)) + "}}",
            "65 parameters, but only 1 to 64 are possible",
        ),
        (nested(5), "it is nested too deeply"),
        ("{lvl:device,algo:a,cfg:{a:1}x}", "it is not terminated"),
        ("{lvl:device,algo:a,cfg:{a:f<1}", "it is not terminated"),
        ("{lvl:device,algo:a,cfg:{a:1}}}", "it ends before its last brace"),
        ('{"lvl":"d","algo":"a","cfg":[1]}', "it has a list"),
        ('{"lvl":"d","algo":null,"cfg":"default_config"}', "'algo' has no value"),
        ('{"lvl":"d","algo":"a","cfg":' + '{"a":' * 5 + "1" + "}" * 6, "it is nested too deeply"),
        ('{"a":' + "[" * 1900 + "]" * 1900 + "}", "it is"),
    ],
)  # fmt: skip
def test_a_name_that_says_too_little_has_a_reason(name, told):
    with pytest.raises(ValueError, match=re.escape(told)) as error:
        parse_name(name)
    assert str(error.value).startswith(told)
    assert len(str(error.value)) < 200
    assert json.dumps(str(error.value)).isascii()


@pytest.mark.parametrize("default", ["default", "default_config"])
@pytest.mark.parametrize("algorithm", ["reduce", "device_reduce"])
def test_an_object_says_the_same_as_a_name(default, algorithm):
    meta = {"lvl": "device", "algo": algorithm, "key_type": "i32", "cfg": default}
    found = parse_meta(meta)
    assert found == parse_name(f"{{lvl:device,algo:reduce,key_type:i32,cfg:{default}}}")
    assert (found.algorithm, found.config) == ("device_reduce", None)


def test_an_object_has_numbers_and_truth_values():
    found = parse_meta(
        {
            "lvl": "device",
            "algo": "device_partition",
            "subalgo": "two_way_flag",
            "exclusive": False,
            "position": 0.1,
            "cfg": {"sort": {"bs": 256, "ipt": 4}, "keep": True},
        }
    )
    assert found.algorithm == "device_partition_two_way_flag"
    assert found.workload == {"exclusive": "false", "position": "0.1"}
    assert found.config == {"sort_bs": 256, "sort_ipt": 4, "keep": True}


@pytest.mark.parametrize(
    ("meta", "told"),
    [
        ({}, "it has no cfg"),
        ({"algo": "device_api", "cfg": {"blocks": 1}}, "it does not name its lvl and its algo"),
        ({"lvl": "device", "algo": {}, "cfg": "default"}, "it has several values where one should"),
        ({"lvl": "device", "algo": "a", "cfg": []}, "'cfg' has no value"),
        ({"lvl": "device", "algo": None, "cfg": "default"}, "'algo' has no value"),
        ({"lvl": "device", "algo": "a", "cfg": {}}, "0 parameters, but only 1 to 64 are possible"),
        ({"cfg": DoubledNames([("bs", 1), ("bs", 2)])}, "'cfg' names something twice"),
        ({"cfg": {"a": {"a": {"a": {"a": 1}}}}}, "it is nested too deeply"),
        (
            {"lvl": "device", "algo": "A b", "cfg": "default"},
            "'device_A b' is not the name of an algo",
        ),
    ],
)
def test_an_object_that_says_too_little_has_a_reason(meta, told):
    with pytest.raises(ValueError, match=re.escape(told)):
        parse_meta(meta)
