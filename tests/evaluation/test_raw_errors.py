from __future__ import annotations

import numpy as np
import pytest

from de_gym.evaluation.protocol import Protocol
from de_gym.evaluation.raw_errors import read_raw_errors

PROTOCOL = Protocol("cec2017", 10, (1, 3, 4))
HEADER = "algorithm,dim,func,run,error"
ROWS = [
    *("A,10,1,1,5e-9", "A,10,1,2,1e-8", "A,10,3,1,2.5", "A,10,3,2,3.5", "A,10,3,3,4.5", "A,10,4,1,9"),
    *("B,10,3,1,7", "B,10,3,2,8", "B,10,1,1,0", "B,10,1,2,0.5", "B,30,1,1,99", "B,10,2,1,99"),
]


@pytest.fixture
def write(tmp_path):
    def write(*rows, header=HEADER):
        path = tmp_path / "errors.csv"
        path.write_text("\n".join([header, *rows]) + "\n")
        return path

    return write


def test_entries_have_the_functions_that_all_share_in_the_protocol_s_order(write):
    published = read_raw_errors(write(*ROWS), PROTOCOL)
    first, second = published.methods
    assert published.functions == (1, 3)  # B lacks function 4
    assert (first.name, second.name, first.origin) == ("A (published)", "B (published)", "errors.csv")
    assert first.errors.shape == (2, 2)  # two runs of every function
    assert sorted(first.errors[0]) == [0.0, 1e-8]
    assert set(first.errors[1]) < {2.5, 3.5, 4.5}
    assert [sorted(row) for row in second.errors.tolist()] == [[0.0, 0.5], [7.0, 8.0]]
    assert first.evaluations is None


def test_the_digits_that_say_something_are_those_of_the_coarsest_entry(write):
    rows = ["A,10,1,1,0.994959", "A,10,1,2,2", "B,10,1,1,0.9949590570932898", "B,10,1,2,200"]
    published = read_raw_errors(write(*rows), PROTOCOL)
    assert published.digits == 6
    coarse, fine = (method.rounded(6).errors for method in published.methods)
    assert coarse.min() == fine.min()


def test_the_first_runs_are_no_better_than_the_others_even_where_a_file_is_sorted(write):
    rows = [f"A,10,{function},{run},{run}" for function in (1, 3, 4) for run in range(1, 52)]
    (entry,) = read_raw_errors(write(*rows), PROTOCOL).methods
    assert [sorted(row) for row in entry.errors.tolist()] == [list(range(1, 52))] * 3
    assert entry.errors[:, :25].mean() == pytest.approx(26, abs=4)
    assert not np.array_equal(entry.errors[0], entry.errors[1])
    (again,) = read_raw_errors(write(*rows), PROTOCOL).methods
    np.testing.assert_array_equal(again.errors, entry.errors)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["A,30,1,1,5"], "has no function in 10 dimensions that all its algorithms share"),
        (["A,10,1,1,5", "B,10,3,1,5"], "has no function in 10 dimensions that all its algorithms share"),
        (["A,10,1,1,5", "A,10,1,2,no"], r"Line 3 of .* is not a result \(could not convert string to float: 'no'"),
        (["A,10,1,1"], "Line 2 of .* is not a result"),
        (["A,10,1,1,nan"], "Line 2 of .* has the error nan"),
        (["A,10,1,1,-1"], r"Line 2 of .* has the error -1\.0"),
    ],
)
def test_what_is_no_result_is_refused_with_its_line(write, rows, message):
    with pytest.raises(ValueError, match=message):
        read_raw_errors(write(*rows), PROTOCOL)


def test_other_columns_are_refused(write):
    with pytest.raises(
        ValueError, match=r"must have the columns algorithm, dim, func, run, error; it lacks \['func'\]"
    ):
        read_raw_errors(write(header="algorithm,dim,function,run,error"), PROTOCOL)
