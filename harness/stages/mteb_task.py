"""Read the groups of an mteb task. In the child that reads data: mteb is heavy.

mteb has no way to stream a task, so its repository is fetched whole at the pinned commit, into the hub client's cache, and mteb reads
that folder. So it can read no other commit, and offline it reads what it would read online.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from harness import hub
from harness.data import Doc, Group
from harness.errors import LadderError, QualifyError, Unavailable
from harness.records import DataSource, TaskFact

TYPES = ("Reranking", "InstructionReranking")


def read(source: DataSource, named: str) -> tuple[Iterator[Group], dict[str, Any]]:
    """The groups of a task, in the order of its queries, and what ``bounds.Selected`` says of the whole source.

    A group is what mteb gives to a reranker: the candidates, each once, with the task's judgements. Raises ``LadderError`` for a
    wrong request or row, and ``Unavailable`` for what could not be had.
    """
    task = _loaded(source, named)
    subset = source.config or "default"
    for name, there, what in ((subset, task.dataset, "config"), (source.split, task.dataset.get(subset, {}), "split")):
        if name not in there:
            raise LadderError(f"{named}: expected a {what} of the task, got {name!r}; it has {', '.join(there)}")
    split = task.dataset[subset][source.split]
    if split["top_ranked"] is None:
        raise LadderError(f"{named}: expected candidates for each query, got a task without; name a reranking task")
    languages = tuple(map(str, task.metadata.hf_subsets_to_langscripts[subset]))
    about = TaskFact(main_score=task.metadata.main_score, languages=languages)
    return _groups(split, named), {**_odd(split), "task": about}


def _groups(split: Mapping[str, Any], named: str) -> Iterator[Group]:
    corpus = split["corpus"]
    places = {str(name): place for place, name in enumerate(corpus["id"])}
    for query in split["queries"]:
        ranked, judged = split["top_ranked"].get(query["id"]), split["relevant_docs"].get(query["id"])
        if not ranked or not judged:  # nothing to rank, or no way to judge it: counted below
            continue
        docs = []
        for name in dict.fromkeys(map(str, ranked)):
            if name not in places:
                got = f"{name!r:.60} of query {query['id']!r:.60}"
                raise LadderError(f"{named}: expected each candidate in the corpus, got {got}; pin another commit")
            text = _document(corpus[places[name]], name, named)
            docs.append(Doc(id=name, text=text, gain=float(max(0, judged.get(name, 0)))))
        yield Group(query_id=str(query["id"]), query=_query(query, named), candidates=tuple(docs))


def _odd(split: Mapping[str, Any]) -> dict[str, int]:
    """What is passed over, and what no ranking of the candidates can find, of all queries of the split."""
    ranked, judged = split["top_ranked"], split["relevant_docs"]
    queries = [name for name in split["queries"]["id"] if judged.get(name)]
    lists = {name: [*map(str, ranked[name])] for name in queries if ranked.get(name)}
    return {
        "elsewhere": sum(
            gain > 0 and document not in found
            for name, found in ((name, {*documents}) for name, documents in lists.items())
            for document, gain in judged[name].items()
        ),
        "without_candidates": len(queries) - len(lists),
        "without_judgement": sum(bool(documents) and not judged.get(name) for name, documents in ranked.items()),
        "repeated": sum(len(documents) - len({*documents}) for documents in lists.values()),
    }


def _document(row: Mapping[str, Any], name: str, named: str) -> str:
    """Title and text in one, as mteb gives them to a model."""
    title, text = row.get("title"), row.get("text")
    if not isinstance(text, str) or not isinstance(title, str | None):
        got = _kind(text) if not isinstance(text, str) else f"{_kind(title)} as its title"
        raise LadderError(f"{named}: expected text as document {name!r:.60}, got {got}; name another task")
    return f"{title or ''} {text}".strip()


def _query(row: Mapping[str, Any], named: str) -> str:
    """Query and instruction in one, as mteb gives them to a model."""
    text = row.get("text")
    if not isinstance(text, str) or not text.strip():
        raise LadderError(f"{named}: expected text as query {row['id']!r:.60}, got {_kind(text)}; name another task")
    return f"{text} {row['instruction']}".strip() if row.get("instruction") else text


def _kind(value: Any) -> str:
    return "empty text" if isinstance(value, str) else "none" if value is None else type(value).__name__


def _loaded(source: DataSource, named: str) -> Any:
    """The loaded task, read from the folder of the pinned commit."""
    task = _task(source, named)
    place, revision = task.metadata.dataset["path"], task.metadata.dataset["revision"]
    try:
        folder = hub.fetch(place, revision, ("*",), "dataset")
    except QualifyError as error:
        raise type(error)(f"{named}: {error}") from error
    here = {**task.metadata.dataset, "path": str(folder)}
    task.metadata = task.metadata.model_copy(update={"dataset": here})
    try:
        task.load_data()
        task.convert_v1_dataset_format_to_v2(num_proc=None)
    except Exception as error:  # mteb and its readers raise whatever they like
        cause = hub.root_cause(error)
        got = f"{type(cause).__name__}: {' '.join(str(cause).split())[:300]}"
        raise _unread(f"{named} ({place}@{revision})", got) from error
    return task


def _task(source: DataSource, named: str) -> Any:
    """The task, not loaded, after type, modality and revision were compared with what is asked for."""
    try:
        import mteb
        from mteb.abstasks.retrieval import AbsTaskRetrieval
    except ImportError as error:
        raise Unavailable(f"{named}: expected the package mteb, got none; pip install '.[mteb]' brings it") from error
    try:
        task = mteb.get_task(source.mteb)
    except KeyError as error:
        got = " ".join(str(error).split())[:300]
        raise LadderError(f"{named}: expected a task that mteb {mteb.__version__} knows, got {got}") from error
    about = task.metadata
    if not isinstance(task, AbsTaskRetrieval) or about.type not in TYPES:
        raise LadderError(f"{named}: expected a reranking task, got one of type {about.type}; name another")
    if list(about.modalities) != ["text"]:
        raise LadderError(f"{named}: expected a task of text alone, got {' and '.join(about.modalities)}; name another")
    if about.dataset["revision"] != source.revision:
        do = "pin that one, or name the repository itself as dataset"
        raise LadderError(
            f"{named}: expected the revision {source.revision}, got {about.dataset['revision']} of {about.dataset['path']},"
            f" which mteb {mteb.__version__} loads; {do}"
        )
    return task


def _unread(named: str, got: str) -> QualifyError:
    """A copy that cannot be read is the data's fault, unless nobody could be asked whether it is all of the data."""
    if hub.is_out_of_reach():
        do = "run again when the hub answers: what is missing is fetched then"
        return Unavailable(f"{named}: expected a complete copy in the cache, since no hub is asked, got {got}; {do}")
    return LadderError(f"{named}: expected data that mteb can read, got {got}; mend the data, or name another task")
