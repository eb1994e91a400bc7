"""A query becomes the parameters of a route, its answer a response."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from werkzeug.test import Client, TestResponse

from fmapboard.plugin.answers import Answer, Missing, Png
from fmapboard.plugin.apps import data_app
from fmapboard.runs.provider import Files, Provider


@dataclass(frozen=True, slots=True)
class Given(Answer):
    given: list[Any]

    @property
    def as_of(self) -> float:
        return 12.5


def echo(
    provider: Provider, run: str, step: int, key: Sequence[str], name: str = "", sample: int = 0
) -> Given:
    return Given([run, step, key, name, sample])


def ask(route: Any, query: str, method: str = "GET") -> TestResponse:
    return Client(data_app(route, lambda environ: Files({}))).open(
        query_string=query, method=method
    )


def test_the_values_of_a_query_are_the_parameters_of_the_route() -> None:
    answer = ask(echo, "run=a+b&step=-7&key=x&key=y&name=&more=1")
    assert (answer.status_code, answer.json) == (200, {"given": ["a b", -7, ["x", "y"], "", 0]})
    answer = ask(echo, "run=a&step=0&key=x&name=gan&sample=3")
    assert answer.json == {"given": ["a", 0, ["x"], "gan", 3]}


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("step=0&key=x", "the query has no run"),
        ("run=&step=0&key=x", "the query has no run"),
        ("run=a&key=x", "the query's step must be an integer, not None"),
        ("run=a&step=&key=x", "the query's step must be an integer, not ''"),
        ("run=a&step=1.5&key=x", "the query's step must be an integer, not '1.5'"),
        ("run=a&step=9223372036854775808&key=x", "the query's step must be an integer, not"),
        ("run=a&step=0", "the query has no key, or an empty one"),
        ("run=a&step=0&key=x&key=", "the query has no key, or an empty one"),
        ("run=a&step=0&key=x&sample=one", "the query's sample must be an integer, not 'one'"),
        ("run=a&step=0&key=x&ts=nan", "the query's ts must be a time in seconds, not 'nan'"),
    ],
)
def test_an_invalid_query_is_refused_with_the_name_of_the_value(query: str, why: str) -> None:
    answer = ask(echo, query)
    assert answer.status_code == 400
    assert answer.json is not None
    assert answer.json["error"].startswith(why)


def test_the_browser_may_keep_an_answer_that_is_of_the_time_it_asks_for() -> None:
    stamps = ("", "&ts=12", "&ts=12.50")
    kept = [ask(echo, f"run=a&step=0&key=x{ts}").headers["Cache-Control"] for ts in stamps]
    never = "no-cache, must-revalidate"
    assert kept == [never, never, "private, max-age=3600"]


def test_a_picture_has_its_step_in_a_header() -> None:
    def picture(provider: Provider) -> Png:
        return Png(b"png", 7)

    answer = ask(picture, "")
    assert (answer.data, answer.headers["X-Step"], answer.mimetype) == (b"png", "7", "image/png")


def test_what_fails_is_told_and_only_the_unexpected_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def route(provider: Provider, run: str) -> Answer:
        raise Missing(run) if run == "nothing" else ZeroDivisionError

    with caplog.at_level(logging.WARNING, "tensorboard"):
        answers = [ask(route, "run=nothing"), ask(route, "run=a", "POST")]
        assert not caplog.records
        answers.append(ask(route, "run=a"))
    assert [(answer.status_code, answer.json) for answer in answers] == [
        (404, {"error": "nothing"}),
        (405, {"error": "POST is not supported here; use GET"}),
        (500, {"error": "ZeroDivisionError on the server; see its log"}),
    ]
    assert len(caplog.records) == 1
