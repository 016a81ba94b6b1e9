"""The official shifts, rotations and permutations, read from the package ``surfaces-cec-data``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources
from importlib.util import find_spec

import numpy as np

from de_gym.arrays import FloatArray, IntArray

_PACKAGE = "surfaces_cec_data"


@cache
def _archive(suite: str, dimension: int) -> Mapping[str, FloatArray]:
    """Return the archive of one suite and dimension; its arrays are read when asked for."""
    if find_spec(_PACKAGE) is None:
        raise ImportError(
            "The benchmark suites need the official data: install it with `pip install surfaces-cec-data==0.0.1`."
        )
    path = resources.files(_PACKAGE) / suite / f"{suite}_data_dim{dimension}.npz"
    with resources.as_file(path) as file, np.load(file, allow_pickle=False) as archive:
        return {key: archive[key] for key in archive.files}


@cache
def _shift_stream_2013() -> FloatArray:
    """Return the whole official shift file as the one stream of numbers it is read as."""
    rows = _archive("cec2013", 100)
    return np.concatenate([rows[f"shift_{row}"] for row in range(1, 11)])


def shift_2013(component: int, dimension: int) -> FloatArray:
    """Return shift vector ``component`` (from 0) of CEC'13, shape (D,).

    NOTE: the report takes the first D numbers of a row; the official code reads its file as one stream and takes
    consecutive slices, and so do we.
    """
    return _shift_stream_2013()[component * dimension : (component + 1) * dimension]


def rotation_2013(component: int, dimension: int) -> FloatArray:
    """Return rotation ``component`` (from 0) of CEC'13, shape (D, D)."""
    return _archive("cec2013", dimension)[f"rotation_{component + 1}"]


def _key_2017(kind: str, number: int, component: int) -> str:
    return f"{kind}_{number}" if number <= 20 else f"{kind}_{number}_{component}"


def shift_2017(number: int, component: int, dimension: int) -> FloatArray:
    """Return the shift of a component (from 0) of a CEC'17 function, shape (D,)."""
    return _archive("cec2017", dimension)[_key_2017("shift", number, component)][:dimension]


def rotation_2017(number: int, component: int, dimension: int) -> FloatArray:
    """Return the matrix of a component (from 0) of a CEC'17 function, shape (D, D); often not orthogonal."""
    return _archive("cec2017", dimension)[_key_2017("rotation", number, component)]


def permutation_2017(number: int, component: int, dimension: int) -> IntArray:
    """Return the coordinate order of a component (from 0) of a CEC'17 hybrid, from 0, shape (D,)."""
    return _archive("cec2017", dimension)[_key_2017("shuffle", number, component)].astype(np.int64)
