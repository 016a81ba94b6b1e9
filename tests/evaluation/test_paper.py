from __future__ import annotations

import numpy as np
import pytest

from de_gym.evaluation.paper import (
    LABELS,
    function_label,
    paper_algorithms,
    paper_column,
    paper_scores,
)
from de_gym.evaluation.statistics import count_marks

CEC2017 = [1, *range(3, 31)]
CEC2013 = list(range(21, 29))

# The last row of each of the paper's tables: on how many functions an algorithm is better / similar / worse.
FOOTERS = {
    ("cec2013-10d-50g", "de"): "7/0/1",
    ("cec2013-10d-50g", "jade"): "7/1/0",
    ("cec2013-10d-50g", "jade-archive"): "7/1/0",
    ("cec2013-10d-50g", "jso"): "7/1/0",
    ("cec2017-10d", "de"): "2/11/16",
    ("cec2017-10d", "jade"): "2/12/15",
    ("cec2017-10d", "jade-archive"): "2/11/16",
    ("cec2017-10d", "jso"): "7/15/7",
    ("cec2017-10d", "cobide"): "12/16/1",
    ("cec2017-10d", "cobide-pcm"): "0/5/24",
    ("cec2017-10d", "cde"): "0/13/16",
    ("cec2017-10d", "cde-pcm"): "6/21/2",
    ("cec2017-10d", "hses"): "5/10/14",
    ("cec2017-30d", "cobide"): "7/15/7",
    ("cec2017-30d", "cobide-pcm"): "2/2/25",
    ("cec2017-30d", "cde"): "2/4/23",
    ("cec2017-30d", "cde-pcm"): "2/5/22",
    ("cec2017-30d", "hses"): "17/6/6",
}


@pytest.mark.parametrize(("table", "algorithm"), FOOTERS)
def test_marks_of_each_column_add_up_to_the_footer_the_paper_prints(table, algorithm):
    functions = CEC2017 if table.startswith("cec2017") else CEC2013
    column = paper_column(table, algorithm, functions)
    assert str(count_marks(column.marks)) == FOOTERS[table, algorithm]


def test_columns_hold_the_printed_numbers_under_official_function_numbers():
    column = paper_column("cec2017-10d", "lde", [1, 11, 30])
    assert column.mean.tolist() == [0.0, 9.75e-2, 3.97e2]
    assert column.std.tolist() == [0.0, 3.55e-1, 8.13]
    assert paper_column("cec2013-10d", "lde-n50-cell500", [21]).mean.tolist() == [400.0]


def test_a_mark_of_the_paper_is_plus_where_the_compared_algorithm_has_the_clearly_smaller_mean():
    lde, jso = (paper_column("cec2013-10d-50g", name, CEC2013) for name in ("lde", "jso"))
    for mark, ours, theirs in zip(jso.marks, lde.mean, jso.mean, strict=True):
        assert mark == ("+" if theirs < ours else "~")


def test_what_the_paper_does_not_print_is_none():
    assert paper_column("cec2017-10d", "lde", [2]) is None
    assert paper_column("cec2013-10d", "hses", CEC2013) is None
    assert paper_column("cec2013-10d", "lde", []) is None
    with pytest.raises(ValueError, match=r"Unknown table 'cec2017-50d'.*Available: cec2013-10d"):
        paper_column("cec2017-50d", "lde", [1])


def test_algorithms_come_in_the_order_of_the_paper_s_columns():
    assert paper_algorithms("cec2017-10d") == list(LABELS)
    assert paper_algorithms("cec2013-30d") == ["lde", "de", "jade", "jade-archive", "jso"]


def test_rankings_are_the_printed_scores():
    scores = paper_scores("cec2017-10d")
    assert sorted(scores, key=scores.__getitem__)[:4] == ["cobide", "cde-pcm", "lde", "jso"]
    assert max(scores, key=scores.__getitem__) == "cobide-pcm"
    assert np.isclose(scores["lde"], 36 / 29, atol=5e-5)
    assert paper_scores("cec2013-10d-50g") == {}


def test_functions_of_cec2017_are_renumbered_without_the_second():
    labels = [function_label("cec2017", number) for number in (1, 2, 3, 30)]
    assert labels == ["f1", "f2", "f3 (F2)", "f30 (F29)"]
    assert function_label("cec2013", 28) == "f28"
