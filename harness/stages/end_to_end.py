"""Whole requests, from a query and its documents to a ranking, one after another on the session that was timed."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from harness.raw import RerankCall, RerankCallsRaw
from harness.runtimes.rerank import Document, Reranker
from harness.runtimes.tokens import tokenizer_of
from harness.stages.timing import collector_off, now_ms

if TYPE_CHECKING:
    from harness.runtimes.rerank import Ranking
    from harness.runtimes.session import Session
    from harness.stages.job import Job


def measure(job: Job, session: Session) -> None:
    """Rank ``candidates`` documents of the pairs for one query after another and write ``end_to_end.json``."""
    options = job.request.options.L1
    assert options is not None
    layout = job.layout(session.inputs, options.batch_size, session.fixed)
    reranker = Reranker(session, tokenizer_of(job.model, options.max_length), layout)
    given = job.pairs()
    total = options.warm_up + options.end_to_end_calls
    calls: list[RerankCall] = []
    begun_ms = now_ms()
    with collector_off():
        for number in range(total):
            places = [(number + step) % len(given) for step in range(options.candidates)]
            documents = [Document(id=str(place), text=given[place][1]) for place in places]
            if number == options.warm_up:
                begun_ms = now_ms()
            begin = time.perf_counter_ns()
            ranking = reranker.rerank(given[number % len(given)][0], documents)
            calls.append(_record(ranking, (time.perf_counter_ns() - begin) / 1e6))
            job.progress(number + 1, total, "whole requests")
        span = begun_ms, now_ms()
    counted = tuple(calls[options.warm_up :])
    job.write_record("end_to_end.json", RerankCallsRaw(format=1, warm_up=options.warm_up, span_ms=span, calls=counted))


def _record(ranking: Ranking, total_ms: float) -> RerankCall:
    logits = (float(logit) for logit in ranking.logits)
    return RerankCall(
        total_ms=total_ms,
        tokenise_ms=ranking.tokenise_ms,
        score_ms=ranking.score_ms,
        documents=len(ranking.logits),
        ranked=tuple(document.place for document in ranking.ranked),
        logits=tuple(logit if math.isfinite(logit) else None for logit in logits),
    )
