"""From texts to a ranking, the thing a service calls: ``Reranker.rerank(query, documents, top_k)``."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.records import SessionOptions
from harness.runtimes import load, tokens
from harness.runtimes.batching import Layout, batches, layout_of, score
from harness.runtimes.session import DEFAULT

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from harness.runtimes.session import Session


class Document(NamedTuple):
    """A text with the id that its owner knows it by."""

    id: str
    text: str


class Ranked(NamedTuple):
    """A document of a ranking: its id, its place among the documents that were given (from 0), and its raw logit."""

    id: str
    place: int
    logit: float


class Ranking(NamedTuple):
    """The best documents, best first; the logits of all, float32 of shape (documents,), in the order given; ms of the two parts."""

    ranked: tuple[Ranked, ...]
    logits: NDArray[np.float32]
    tokenise_ms: float
    score_ms: float


class Reranker:
    """A session with its tokenizer. Several threads may call it at once."""

    def __init__(self, session: Session, tokenizer: Any, layout: Layout) -> None:
        self._session = session
        self._tokenizer = tokenizer
        self._layout = layout

    def rerank(self, query: str, documents: Sequence[Document], top_k: int | None = None) -> Ranking:
        """Rank ``documents`` for ``query`` and give the ``top_k`` best, or all.

        Pairs are tokenised together, sorted by length, scored in micro-batches of at most the layout's batch size, and ranked by
        one stable sort over all of them: equal logits keep the order in which the documents were given; NaN comes last. No
        documents give an empty ranking. Raises ``Blocked`` when the graph takes no so long pair.
        """
        import numpy as np

        if not documents:
            return Ranking((), np.zeros(0, dtype=np.float32), 0.0, 0.0)
        begin = time.perf_counter_ns()
        encoded = tokens.encoded(self._tokenizer.encode_batch([(query, document.text) for document in documents]))
        middle = time.perf_counter_ns()
        made = batches(encoded, self._layout)
        logits = score(self._session.logits, made, len(documents), lambda _done: None)
        order = order_of(logits)[:top_k]
        ranked = tuple(Ranked(documents[place].id, int(place), float(logits[place])) for place in order)
        return Ranking(ranked, logits, (middle - begin) / 1e6, (time.perf_counter_ns() - middle) / 1e6)


def order_of(logits: NDArray[np.float32]) -> NDArray[np.intp]:
    """Places of the logits from the largest down; equal ones by place, NaN last."""
    import numpy as np

    return np.argsort(-logits, kind="stable")


def open_reranker(
    model: Path,
    graph: Path,
    *,
    provider: str = "cpu",
    threads: int = 2,
    max_length: int = 512,
    batch_size: int = 16,
    session: SessionOptions = DEFAULT,
) -> Reranker:
    """A reranker of a candidate's folder and an ONNX file made of it, e.g. ``artifacts/cpu-fp32/model.onnx`` of a root.

    Raises ``CandidateError`` for a folder that is no candidate, ``Blocked`` for a graph or tokenizer that does not load.
    """
    from harness import candidate

    found = candidate.resolve(str(model.resolve()), None, model.parent).candidate
    loaded = load(provider, graph, threads, session, graph.name)
    layout = layout_of(found, loaded.inputs, batch_size, loaded.fixed)
    return Reranker(loaded, tokens.tokenizer_of(model, min(max_length, found.max_length)), layout)
