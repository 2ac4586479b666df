"""Coverage-guided fuzzing of what ``evidence/`` parses: manifest, seal, records and the grammar of paths.

Nothing but FormatError may be raised, and what was accepted must come back as the same bytes. It needs atheris, which is
installed by hand (``pip install atheris``): it is no dependency of the project.

    python benchmarks/fuzz_evidence.py manifest|seal|record|path CORPUS_FOLDER [libFuzzer options, e.g. -max_total_time=60]

The corpus folder is made, and the seeds below are written into it.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
atheris = importlib.import_module("atheris")
with atheris.instrument_imports(include=["evidence", "json"]):
    from evidence import manifest, records

SEEDS: dict[str, tuple[bytes, ...]] = {
    "manifest": (
        b"%s  a.txt\n%s  b/c.txt\n" % (b"0" * 64, b"f" * 64),
        b"%s  a\r\n" % (b"0" * 64),
        b"%s *a\n" % (b"0" * 64),
    ),
    "seal": (manifest.render_seal("blake3:" + "0" * 64), b"qualify-seal/2 x\n"),
    "record": (b'{\n  "a": [\n    1,\n    null\n  ]\n}\n', b'{"a": NaN}', b"[" * 40, b"1e999", b'"\\ud800"\n'),
    "path": (b"a/b.txt", b"nul.txt", b"../a", b".a", b"a" * 129, b"MANIFEST.B3", b"a.npy", b"a/" * 17 + b"a"),
}


def manifest_back(data: bytes) -> None:
    """A manifest that is accepted is spelled as it would be written."""
    parsed = manifest.parse_digests(data)
    assert manifest.render_digests(parsed) == data
    assert not list(manifest.check_paths(parsed))


def seal_back(data: bytes) -> None:
    """A seal line likewise."""
    assert manifest.render_seal(manifest.parse_seal(data)) == data


def record_back(data: bytes) -> None:
    """A record likewise, and it is plain values."""
    value = records.parse_json("plan.json", data)
    assert (json.dumps(value, sort_keys=True, indent=2) + "\n").encode() == data


def path_stays_inside(data: bytes) -> None:
    """A path that is accepted is printable ASCII, stays in its folder and is no device, dotfile or option."""
    path = data.decode("utf-8", "surrogateescape")
    if manifest.check_path(path) is None:
        assert path.isascii()
        assert path.isprintable()
        assert all(name and name[0] not in ".-" and name[-1] != "." for name in path.split("/"))
        assert Path("/top", path).as_posix() == f"/top/{path}"
        assert "\\" not in path
        assert ":" not in path
    manifest.check_first_bytes(path, data)


TARGETS: dict[str, Callable[[bytes], None]] = {
    "manifest": manifest_back,
    "seal": seal_back,
    "record": record_back,
    "path": path_stays_inside,
}


def main() -> None:
    """Fuzz one target until libFuzzer's options say stop, or something is raised that should not be."""
    if len(sys.argv) < 3 or sys.argv[1] not in TARGETS:
        raise SystemExit(f"fuzz_evidence: expected one of {', '.join(TARGETS)}, a corpus folder and libFuzzer options")
    name = sys.argv.pop(1)

    def one(data: bytes) -> None:
        try:
            TARGETS[name](data)
        except manifest.FormatError as refused:
            if not refused.faults or not all(found.rule.startswith("E-") for found in refused.faults):
                raise AssertionError("a refusal that names no rule") from refused

    corpus = Path(sys.argv[1])
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(SEEDS[name]):
        (corpus / f"seed{number}").write_bytes(seed)
    atheris.Setup(sys.argv, one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
