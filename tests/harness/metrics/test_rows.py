"""Rows of different length in one flat array."""

from __future__ import annotations

import numpy as np
import pytest

from harness.metrics.rows import Rows

ROWS: tuple[list[float], ...] = ([1.0, 2.0], [], [3.0], [np.nan, 4.0])


def test_rows_are_what_they_were_made_of() -> None:
    rows = Rows.of(ROWS)
    assert Rows.of(rows) is rows
    assert [row.tolist() for row in rows][:3] == [[1.0, 2.0], [], [3.0]]
    assert (len(rows), len(Rows.of([]))) == (4, 0)
    assert rows.finite().tolist() == [True, True, True, False]
    assert rows.count(rows.flat > 1).tolist() == [1, 0, 1, 1]


def test_rows_are_taken_in_any_order_and_repeated() -> None:
    rows = Rows.of(ROWS)
    taken = rows.take(np.array([2, 0, 1]))
    assert [row.tolist() for row in taken] == [[3.0], [1.0, 2.0], []]
    assert [row.tolist() for row in taken.repeated(2)] == [[3.0], [1.0, 2.0], []] * 2
    assert taken.like(-taken.flat)[1].tolist() == [-1.0, -2.0]
    assert len(rows.take(np.array([], dtype=np.int64))) == 0


def test_padding_stands_behind_the_end_of_a_row() -> None:
    assert Rows.of(ROWS[:3]).padded(9.0).tolist() == [[1.0, 2.0], [9.0, 9.0], [3.0, 9.0]]
    assert Rows.of([[1.0], [2.0]]).padded(9.0).tolist() == [[1.0], [2.0]]


def test_a_row_is_flat() -> None:
    with pytest.raises(ValueError, match=r"rows: expected one shape \(candidates,\), got \(1, 1\)"):
        Rows.of([[[1.0]]])
