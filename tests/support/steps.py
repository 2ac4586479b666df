"""A staging folder with a tiny candidate and its data, and single steps run in it as ``run`` does it."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from evidence.seal import write_new
from harness import candidate, data, launch, records
from harness.bounds import Bounds, whole
from harness.group_facts import facts
from harness.prebuilt import pin
from harness.records import (
    BuildOptions,
    Candidate,
    Exit,
    Inputs,
    LoadOptions,
    Measurement,
    Measurements,
    ParityOptions,
    PerfOptions,
    PlannedStep,
    PlannedTarget,
    PrebuiltArtifact,
    Request,
    RerankOptions,
    SweepOptions,
    Tier,
    TierOptions,
    Value,
    from_json,
    step_folder,
)
from tests.support.models import TEXTS

PAIRS = (*((query, document) for query in TEXTS[:3] for document in TEXTS), ("python", ""), (TEXTS[0], TEXTS[1] * 20))
OPTIONS = TierOptions(
    L0=BuildOptions(),
    L1=PerfOptions(
        candidates=8,
        batch_size=4,
        max_length=48,
        warm_up=2,
        calls=60,
        growth_calls=24,
        end_to_end_calls=6,
        sweep=SweepOptions(candidates=(2, 8), max_length=(16, 48), batch_size=(4,), threads=(1, 2), calls=3),
        load=LoadOptions(concurrency=(1, 2), calls=4, arrival_per_s=200.0, arrivals=10),
    ),
    L2=ParityOptions(batch_size=4, max_length=48),
    L3=RerankOptions(data="groups.jsonl", batch_size=8, max_length=48, resamples=200),
)


@dataclass(frozen=True)
class Ran:
    """What became of one step."""

    root: Path
    request: Request
    exit: Exit
    redactions: int

    @property
    def reason(self) -> str:
        return launch.why_blocked(self.root, self.request, self.exit)

    def file(self, name: str) -> bytes:
        return (self.root / self.request.step / name).read_bytes()

    def log(self) -> str:
        return (self.file("stdout.log") + self.file("stderr.log")).decode()

    def raw(self, name: str) -> Any:
        return msgspec.json.decode(self.file(name))

    def measured(self) -> dict[str, Measurement]:
        assert not self.reason, f"{self.reason}\n{self.log()}"
        found = from_json(self.file("measurements.json"), Measurements, "measurements.json")
        return {item.metric: item for item in found.measurements}

    def value(self, metric: str) -> Value:
        return self.measured()[metric].value


@dataclass(frozen=True)
class Bench:
    """A staging folder for one candidate."""

    root: Path
    model: Path
    candidate: Candidate
    inputs: Inputs
    adapter: Path | None = None

    def copy(self, root: Path) -> Bench:
        """The same, its artifacts and steps too, in another folder."""
        shutil.copytree(self.root, root)
        return Bench(root, self.model, self.candidate, self.inputs, self.adapter)

    def request(
        self,
        tier: Tier,
        name: str = "cpu-fp32",
        *,
        options: TierOptions = OPTIONS,
        artifact: PrebuiltArtifact | None = None,
        provider: str = "cpu",
        time_limit_s: float = 600.0,
    ) -> Request:
        precision: Any = name.rpartition("-")[2]
        target = PlannedTarget(
            name=name,
            precision=precision,
            provider=provider,
            threads=1,
            artifact=artifact,
            deferred=None,
            steps=(PlannedStep(tier=tier, limits={}, time_limit_s=time_limit_s),),
        )
        return Request(
            format=1,
            tier=tier,
            target=target,
            candidate=self.candidate,
            options=options,
            inputs=self.inputs,
            seed=7,
            plan_digest="blake3:" + "0" * 64,
            step=step_folder(tier, name),
            artifact=records.artifact_folder(name),
        )

    def run(self, request: Request, prebuilt: Path | None = None) -> Ran:
        places = launch.Places(root=self.root, model=self.model, prebuilt=prebuilt, adapter=self.adapter)
        ended, redactions = launch.run_step(request, places, lambda _done, _total, _what: None)
        return Ran(self.root, request, ended, redactions)

    def earlier(self, tier: Tier, name: str = "cpu-fp32") -> Ran:
        """A step that ran here before."""
        ended = Exit(code=0, signal=None, timed_out=False, seconds=1.0)
        return Ran(self.root, self.request(tier, name), ended, 0)

    def graph(self, name: str = "cpu-fp32") -> Path:
        """What L0 left of a target."""
        return self.root / records.artifact_folder(name) / "model.onnx"

    def check(self, graph: Path, name: str = "cpu-fp32") -> Ran:
        """L0 of a prebuilt graph."""
        return self.run(self.request("L0", name, artifact=pin(graph)), graph)


def bench(root: Path, model: Path, texts: tuple[tuple[str, str], ...] = PAIRS, *, headless: bool = False) -> Bench:
    """A staging folder with pairs and groups, made if it is not there; the best document of each query is its own text."""
    pairs = tuple(data.Pair(query=query, document=document) for query, document in texts)
    groups = tuple(
        data.Group(
            query_id=f"q{number}",
            query=query,
            candidates=tuple(
                data.Doc(id=f"d{place}", text=text, gain=float(place == number)) for place, text in enumerate(TEXTS)
            ),
        )
        for number, query in enumerate(TEXTS)
    )
    if not root.exists():
        root.mkdir()
        write_new(root, records.PAIRS, data.render_pairs(pairs))
        write_new(root, records.GROUPS, data.render_groups(groups))
    inputs = Inputs(
        pairs=data.pair_facts(pairs, source="test"),
        groups=facts(whole(groups), source="groups.jsonl", bounds=Bounds()),
    )
    resolved = candidate.resolve(str(model), None, model.parent, headless=headless)
    return Bench(root, resolved.folder, resolved.candidate, inputs)
