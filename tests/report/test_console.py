from policygen.errors import plural


def test_one_thing_is_not_many():
    assert plural(1, "family", "families") == "1 family"
    assert plural(1200, "entry", "entries") == "1,200 entries"
    assert plural(2, "header") == "2 headers"
