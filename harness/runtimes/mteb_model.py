"""The artifact of a sealed root as a cross-encoder of mteb, so that ``mteb.evaluate`` runs on exactly what was qualified.

import mteb
from harness.runtimes.mteb_model import CrossEncoder

scored = mteb.evaluate(CrossEncoder("runs/my-root", "cpu-fp16"), mteb.get_task("SciDocsRR"))
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness import candidate, records
from harness.answer import check
from harness.errors import AskedWrongly, CandidateError
from harness.root import RootRecords
from harness.runtimes import load, tokens
from harness.runtimes.batching import batches, layout_of, score
from harness.stages.job import folder_digest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_LENGTH = 512
BATCH_SIZE = 32


class CrossEncoder:
    """The graph of one target of a root, on the target's provider, with the candidate's own tokenizer.

    ``model`` is the folder of the candidate where it is not on a hub; a hub model is taken at its commit. Pairs are cut at
    ``max_length``, else at that of L3, else at 512 tokens or what the model takes. Raises ``NotIntact`` for a root that does not
    verify, ``AskedWrongly`` for a target without an artifact, ``CandidateError`` for another model than was qualified, ``Blocked``
    when the provider is not here.
    """

    def __init__(
        self, root: str | Path, target: str, model: str | Path | None = None, max_length: int | None = None
    ) -> None:
        found = check(Path(root)).records
        digest = _artifact(found, target)
        self._candidate = found.plan.candidate
        self._folder = _model_folder(self._candidate, model)
        folder = Path(root) / records.artifact_place(found.lineage, target)
        if folder_digest(folder) != digest:
            raise AskedWrongly(f"{folder}: expected the artifact {digest}, got another; verify the root again")
        planned = next(planned for planned in found.plan.targets if planned.name == target)
        self._session = load(planned.provider, folder / "model.onnx", planned.threads, planned.session)
        options = found.plan.options.L3
        most = min(MAX_LENGTH, self._candidate.max_length)
        self._max_length = max_length or (options.max_length if options is not None else most)
        batch_size = options.batch_size if options is not None else BATCH_SIZE
        self._layout = layout_of(self._candidate, self._session.inputs, batch_size, self._session.fixed)
        self.name = _name(self._candidate.model, target)
        self.artifact_digest = digest

    @property
    def mteb_model_meta(self) -> Any:
        """What mteb says of the model: named by model and target, with the artifact's digest as revision."""
        from mteb.models import ModelMeta

        about = {"name": self.name, "revision": self.artifact_digest.removeprefix("blake3:"), "framework": ["ONNX"]}
        return ModelMeta.create_empty(overwrites=about | {"modalities": ["text"], "is_cross_encoder": True})

    def predict(
        self,
        inputs1: Iterable[Mapping[str, Any]],
        inputs2: Iterable[Mapping[str, Any]],
        **_about: Any,
    ) -> NDArray[np.float32]:
        """Raw logits, float32 of shape (pairs,): queries from ``inputs1``, documents from ``inputs2``, batches of ``text``."""
        queries, documents = ([text for batch in side for text in batch["text"]] for side in (inputs1, inputs2))
        encoded = tokens.encode(
            self._folder, self._candidate, list(zip(queries, documents, strict=True)), self._max_length
        )
        return score(self._session.logits, batches(encoded, self._layout), len(queries), lambda _done: None)


def _artifact(found: RootRecords, target: str) -> str:
    """The digest of the target's artifact as its L0 recorded it."""
    names = [planned.name for planned in found.plan.targets]
    if target not in names:
        raise AskedWrongly(f"target: expected one of {', '.join(names)}, got {target!r:.60}; name one of them")
    step = found.steps.get((target, "L0"))
    digest = step.outcome.artifact_digest if step is not None else None
    if digest is None:
        raise AskedWrongly(f"target {target}: expected an artifact in the root, got none; L0 did not come so far")
    return digest


def _model_folder(qualified: records.Candidate, model: str | Path | None) -> Path:
    """The folder with the tokenizer, after its digest was compared."""
    if model is None and qualified.revision is None:
        do = "give its folder as model, since a root does not hold the checkpoint"
        raise CandidateError(f"{qualified.model}: expected the folder of the candidate, got none; {do}")
    found = (
        candidate.resolve(qualified.model, qualified.revision, Path())
        if model is None
        else candidate.resolve(str(Path(model).resolve()), None, Path())
    )
    if found.candidate.digest != qualified.digest:
        do = "give the checkpoint that was qualified"
        raise CandidateError(f"{model}: expected the candidate {qualified.digest}, got {found.candidate.digest}; {do}")
    return found.folder


def _name(model: str, target: str) -> str:
    """``org/name`` as mteb wants it, with the target, so that it is never taken for the PyTorch model."""
    parts = [part for part in model.split("/") if part not in {"", ".", ".."}] or ["model"]
    organisation = parts[-2] if len(parts) > 1 else "local"
    return f"{organisation}/{parts[-1]}--{target}"
