"""The hub's own client against a hub on loopback: exactly the pinned commit, or one line that names model and revision."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import hub
from harness.errors import CandidateError
from tests.support.checkpoints import files
from tests.support.hub import COMMIT, Hub, Repository

OTHER = "2" * 40
LONG = b"0123456789abcdef" * 2**20
SCRIPT = """
import json, sys, time
from pathlib import Path
from harness import candidate
from harness.errors import QualifyError

time.sleep = lambda seconds: None  # the client waits between its tries; a test has seen enough without
for name in sys.argv[1:]:
    model, _, revision = name.partition("@")
    try:
        found = candidate.resolve(model, revision or None, Path()).candidate
        print(json.dumps([0, found.model, found.revision, found.digest]))
    except QualifyError as error:
        print(json.dumps([error.exit_code, str(error)]))
"""


@pytest.fixture(scope="module")
def served() -> Iterator[Hub]:
    """A hub with one good repository and one for each way in which a hub refuses."""
    good = {**files(), "pytorch_model.bin": b"\x80", "modeling.py": b"raise SystemExit", "onnx/model.onnx": b"x"}
    pickled = {name: data for name, data in good.items() if name != "model.safetensors"}
    repositories = {
        "org/good": Repository({COMMIT: good, OTHER: {}}, branches={"main": OTHER}),
        "org/pickled": Repository({COMMIT: pickled}),
        "org/gated": Repository({COMMIT: good}, gated=True),
        "org/private": Repository({COMMIT: good}, private=True),
        "org/broken": Repository({COMMIT: good}, status=500),
        "org/limited": Repository({COMMIT: good}, status=429),
        "org/cut": Repository({COMMIT: good}, cut_after=10),
        "org/dropped": Repository({COMMIT: {**good, "vocab.txt": LONG}}, cut_after=len(LONG) - 1000, cuts=1),
        "org/old": Repository({COMMIT: good}, moved="org/good"),
        "org/data": Repository({COMMIT: good}, kind="dataset"),
    }
    with Hub(repositories) as running:
        yield running


def resolved(cache: Path, endpoint: str, *names: str, **more: str) -> list[list[object]]:
    """What a fresh process makes of each name, with an empty environment but for the hub's variables."""
    environment = {
        "HF_HOME": str(cache),
        "HF_ENDPOINT": endpoint,
        "HF_HUB_DISABLE_XET": "1",
        "PATH": os.environ["PATH"],
    }
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *names],
        env=environment | {"PYTHONPATH": str(Path(hub.__file__).parent.parent)} | more,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory, served: Hub) -> Path:
    """A cache in which the good repository was resolved once."""
    folder: Path = tmp_path_factory.mktemp("cache")
    found = resolved(folder, served.endpoint, f"org/good@{COMMIT}")
    assert found[0][:3] == [0, "org/good", COMMIT]
    return folder


def test_the_pinned_commit_is_fetched_without_pickles_or_code(cache: Path, served: Hub) -> None:
    snapshot = next(cache.rglob(f"snapshots/{COMMIT}"))
    assert {path.name for path in snapshot.iterdir()} == set(files())
    assert not any("pytorch_model" in line or "modeling" in line or "/main" in line for line in served.requests)


def test_the_digest_is_that_of_the_same_files_in_a_folder(cache: Path, tmp_path: Path) -> None:
    from harness import candidate
    from tests.support.checkpoints import write

    write(tmp_path / "m", files())
    offline = resolved(cache, "http://127.0.0.1:9", f"org/good@{COMMIT}", HF_HUB_OFFLINE="1")
    assert offline[0][3] == candidate.resolve("./m", None, tmp_path).candidate.digest


def test_what_is_cached_needs_no_hub(cache: Path) -> None:
    unreachable = "http://127.0.0.1:9"
    assert resolved(cache, unreachable, f"org/good@{COMMIT}")[0][:3] == [0, "org/good", COMMIT]


def test_an_unreachable_hub_is_named_with_model_and_revision(tmp_path: Path) -> None:
    found = resolved(tmp_path, "http://127.0.0.1:9", f"org/good@{COMMIT}")
    assert found == [
        [
            30,
            (
                f"model org/good at revision {COMMIT}: expected a reachable hub, got ConnectionRefusedError and no complete"
                " copy in the cache; check the network and HF_ENDPOINT, then run again"
            ),
        ]
    ]


def test_offline_without_a_copy_is_named_with_model_and_revision(tmp_path: Path, served: Hub) -> None:
    found = resolved(tmp_path, served.endpoint, f"org/good@{COMMIT}", HF_HUB_OFFLINE="1")
    assert found == [
        [
            30,
            (
                f"model org/good at revision {COMMIT}: expected it in the cache, since the client is offline, got no copy;"
                " unset HF_HUB_OFFLINE"
            ),
        ]
    ]


def test_every_refusal_of_a_hub_is_one_line_with_model_and_revision(tmp_path: Path, served: Hub) -> None:
    expected = {
        f"org/good@{'3' * 40}": (
            64,
            "expected that commit, got none in the repository; no other is taken, so correct it",
        ),
        f"org/none@{COMMIT}": (
            64,
            (
                "expected a repository of that name, got none that is open to this user; correct the name,"
                " or set HF_TOKEN if it is private"
            ),
        ),
        f"org/private@{COMMIT}": (
            64,
            (
                "expected a repository of that name, got none that is open to this user; correct the name,"
                " or set HF_TOKEN if it is private"
            ),
        ),
        f"org/data@{COMMIT}": (
            64,
            (
                "expected a repository of that name, got none that is open to this user; correct the name,"
                " or set HF_TOKEN if it is private"
            ),
        ),
        f"org/old@{COMMIT}": (
            64,
            "expected a repository of that name, got one that moved to org/good; name that one",
        ),
        f"org/gated@{COMMIT}": (
            30,
            "expected access, got a gated repository; accept its terms on the hub and set HF_TOKEN",
        ),
        f"org/broken@{COMMIT}": (
            30,
            "expected an answer, got HTTP status 500 and no copy in the cache; try again later",
        ),
        f"org/limited@{COMMIT}": (
            30,
            "expected an answer, got HTTP status 429 and no copy in the cache; the hub limits the rate; wait, or set HF_TOKEN",
        ),
        f"org/cut@{COMMIT}": (
            30,
            (
                "expected a complete download, got RemoteProtocolError; check the network and HF_ENDPOINT, then run again:"
                " what was fetched is kept"
            ),
        ),
    }
    found = resolved(tmp_path, served.endpoint, *expected)
    said = {name: f"model {name.replace('@', ' at revision ')}: {text}" for name, (_, text) in expected.items()}
    assert found == [[code, said[name]] for name, (code, _) in expected.items()]


def test_a_download_that_was_cut_off_goes_on_where_it_ended(tmp_path: Path, served: Hub) -> None:
    """The client writes ten megabytes at a time, asks for the rest after a cut, and what lies in the cache is whole."""
    assert resolved(tmp_path, served.endpoint, f"org/dropped@{COMMIT}")[0][:3] == [0, "org/dropped", COMMIT]
    assert any(re.fullmatch(r"vocab\.txt bytes=[1-9]\d*-\d*", asked) for asked in served.ranges)
    assert next(tmp_path.rglob("vocab.txt")).read_bytes() == LONG


def test_a_download_that_was_given_up_is_taken_up_by_the_next_run(tmp_path: Path, served: Hub) -> None:
    dropped = served.repositories["org/dropped"]
    dropped.cuts, dropped.cut_after = -1, 10
    assert resolved(tmp_path, served.endpoint, f"org/dropped@{COMMIT}")[0][0] == 30
    dropped.cuts = 0
    assert resolved(tmp_path, served.endpoint, f"org/dropped@{COMMIT}")[0][0] == 0


def test_a_token_opens_no_record(tmp_path: Path, served: Hub) -> None:
    token = "hf_" + "aB3" * 11
    found = resolved(tmp_path, served.endpoint, f"org/good@{COMMIT}", f"org/gated@{COMMIT}", HF_TOKEN=token)
    assert f"Bearer {token}" in served.tokens
    assert token not in json.dumps(found)


def test_a_repository_of_pickles_alone_is_refused(tmp_path: Path, served: Hub) -> None:
    found = resolved(tmp_path, served.endpoint, f"org/pickled@{COMMIT}")
    assert found == [
        [
            64,
            (
                f"org/pickled at revision {COMMIT}: weights: expected model.safetensors or model.safetensors.index.json,"
                " got neither; save the model with save_pretrained"
            ),
        ]
    ]


@pytest.mark.parametrize("revision", ["main", "777b2f3", COMMIT.replace("1", "A"), "refs/pr/1", "", None])
def test_only_a_whole_commit_is_a_revision(revision: str | None) -> None:
    with pytest.raises(CandidateError) as caught:
        hub.fetch("org/good", revision, ("config.json",))
    got = "nothing" if revision is None else repr(revision)
    assert str(caught.value) == (
        f"model org/good: expected a revision of 40 hex digits, got {got};"
        " a branch or tag can move, so give the commit in full"
    )


def test_datasets_are_fetched_from_their_own_part_of_the_hub(
    tmp_path: Path, served: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = f"from harness import hub; print(hub.fetch('org/data', '{COMMIT}', ('config.json',), 'dataset') / 'config.json')"
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.setenv("HF_ENDPOINT", served.endpoint)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert Path(done.stdout.strip()).read_bytes() == files()["config.json"]
    assert done.stderr == ""
    assert f"GET /datasets/org/data/resolve/{COMMIT}/config.json" in served.requests


def test_without_the_client_the_install_that_brings_it_is_named(tmp_path: Path) -> None:
    script = (
        "import sys; sys.modules['huggingface_hub'] = None\n"
        "from harness import hub\nfrom harness.errors import Unavailable\n"
        f"try:\n    hub.fetch('org/good', '{COMMIT}', ())\nexcept Unavailable as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    expected = "model org/good: expected the package huggingface_hub, got none; install it with: pip install '.[run]'\n"
    assert done.stdout == expected
