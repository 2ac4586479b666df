"""The expensive fixtures: one tiny checkpoint, and one climb of all tiers on fp32, fp16 and int8, made once for all workers."""

from __future__ import annotations

from pathlib import Path

import pytest
from securesystemslib.signer import SSlibKey

from harness import dsse
from harness.records import TIERS
from tests.support.keys import KeyPair, make_keys
from tests.support.ladders import qualify, write_groups, write_ladder
from tests.support.models import make_bert
from tests.support.once import once
from tests.support.steps import Bench, bench

TARGETS = ("cpu-fp32", "cpu-fp16", "cpu-int8")
RANKED_TARGETS = """
  - {precision: fp32, threads: 1}
  - {precision: int8, threads: 1, limits: {L2: {max_abs_gap: {at_most: 2}}}}
"""


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT classifier of two layers, 32 wide, with its tokenizer."""
    return once(tmp_path_factory, "tiny-model", make_bert)


@pytest.fixture(scope="session")
def tiny_root(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> Path:
    """A sealed root of the tiny ladder, all three targets to L3. Read only."""

    def climb(folder: Path) -> None:
        ladder = write_ladder(folder, tiny_model)
        said = qualify("run", ladder, "--out", folder / "root", "--json")
        assert said.code == 0, said.err + said.out
        (folder / "answer.json").write_text(said.out, encoding="utf-8")

    return once(tmp_path_factory, "tiny-root", climb) / "root"


@pytest.fixture(scope="session")
def ranked_root(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> Path:
    """A sealed root of the tiny ladder on fp32 and int8 whose ranked set is no smoke test. Read only."""

    def climb(folder: Path) -> None:
        ladder = write_ladder(folder, tiny_model, RANKED_TARGETS)
        write_groups(folder)
        said = qualify("run", ladder, "--out", folder / "root", "--json")
        assert said.code == 0, said.err + said.out

    return once(tmp_path_factory, "ranked-root", climb) / "root"


@pytest.fixture(scope="session")
def climbed(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> Bench:
    """A staging folder in which every tier ran on every target. Read only: ``copy`` it to go on."""

    def climb(folder: Path) -> None:
        made = bench(folder / "root", tiny_model)
        for target in TARGETS:
            for tier in TIERS:
                ran = made.run(made.request(tier, target))
                assert not ran.reason, f"{target} {tier}: {ran.reason}\n{ran.log()}"

    folder = once(tmp_path_factory, "climbed", climb)
    return bench(folder / "root", tiny_model)


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> KeyPair:
    """Those of the producer, who is trusted."""
    return make_keys(tmp_path_factory.mktemp("keys"), "producer")


@pytest.fixture(scope="session")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> KeyPair:
    """Those of somebody whom nobody trusts."""
    return make_keys(tmp_path_factory.mktemp("keys"), "stranger")


@pytest.fixture(scope="session")
def trusted(keys: KeyPair) -> tuple[SSlibKey, ...]:
    """The producer's public key."""
    return (dsse.public_key(keys.public),)


@pytest.fixture
def empty_bench(tmp_path: Path, tiny_model: Path) -> Bench:
    """A staging folder in which nothing ran."""
    return bench(tmp_path / "root", tiny_model)
