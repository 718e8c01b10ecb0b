"""The header that names what was left out."""

from __future__ import annotations

from dragoman.loss import Loss, Lost
from dragoman.serve.core.request_fields import HEADER, loss_headers


def lost(what: Lost, which: str = "", message: int | None = None) -> Loss:
    return Loss(message, None, what, "why", which)


def test_each_kind_stands_once_with_its_count() -> None:
    losses = [
        lost(Lost.thinking, message=1),
        lost(Lost.thinking, message=3),
        lost(Lost.option, "logit_bias"),
    ]
    assert loss_headers(losses) == {HEADER: 'thinking;n=2, option;which="logit_bias"'}
    assert loss_headers([]) == {}


def test_names_of_the_clients_own_stay_out_and_so_does_what_no_header_may_hold() -> None:
    odd = ["a\r\nset-cookie: x", 'a"b', "ä", "x" * 65, ""]
    assert loss_headers([lost(Lost.option, which) for which in odd]) == {
        HEADER: f"option;n={len(odd)}"
    }
    assert loss_headers([lost(Lost.data, "salary.pdf"), lost(Lost.tool_call, "pay")]) == {
        HEADER: "data, tool-call"
    }


def test_what_does_not_fit_is_counted() -> None:
    header = loss_headers([lost(Lost.option, f"field_{n}") for n in range(500)])[HEADER]
    assert len(header) <= 1000
    named, _, rest = header.rpartition(", ")
    assert rest == f"more;n={500 - named.count('option')}"
