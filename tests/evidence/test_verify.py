from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from evidence import manifest, meaning, report, tree, verify
from evidence.manifest import Fault
from evidence.verify import NotVerifiedError, open_root
from tests.evidence.conftest import MakeRoot, rules, rules_of
from tests.roots import make
from tests.roots.make import GOOD, SMALL

REPO = Path(__file__).parent.parent.parent
OTHER = "blake3:" + "0" * 64


def digest_of(root: Path) -> str:
    return manifest.digest_of((root / "MANIFEST.b3").read_bytes())


# --- the report -------------------------------------------------------------------------------------------------------


def test_a_whole_root_has_no_fault_and_every_check_ran(sealed: MakeRoot) -> None:
    root = sealed(GOOD)
    found = verify.verify(root)
    assert (found.digest, found.faults, found.authenticity) == (digest_of(root), (), "none")
    assert (found.ok, found.exit_code) == (True, 0)
    assert [check.name for check in found.checks] == [
        "seal", "manifest", "tree", "hashes", "records", "origins", "plan", "candidate", "inputs", "gates", "steps", "artifacts",
        "times", "claim", "lineage",
    ]  # fmt: skip
    assert all(check.ran and check.state == "ran" and not check.note for check in found.checks)


def test_files_without_a_plan_are_undetermined_never_verified(open_root_folder: MakeRoot) -> None:
    found = verify.verify(open_root_folder(SMALL))
    assert (found.faults, found.ok, found.exit_code) == ((), False, 30)
    assert {check.note for check in found.checks if not check.ran} == {
        "there is no plan.json, so nothing says what was to be done"
    }
    assert [check.name for check in found.checks if check.ran] == ["seal", "manifest", "tree", "hashes"]


def test_a_report_without_checks_is_never_intact() -> None:
    assert report.Report(None, (), (), "none").exit_code == 30


def test_a_folder_without_a_manifest_is_not_the_pinned_one_because_nothing_was_expected(tmp_path: Path) -> None:
    found = verify.verify(tmp_path)
    assert (found.digest, found.authenticity, rules(found.faults)) == (None, "none", ["E-MANIFEST", "E-SEAL"])


def test_the_expected_digest_pins_the_root(sealed: MakeRoot) -> None:
    root = sealed(GOOD)
    found = verify.verify(root, expect=digest_of(root))
    assert (found.authenticity, found.exit_code) == ("pinned", 0)
    assert found.checks[0] == report.Check("pin", ("E-PIN",))


@pytest.mark.parametrize("expect", [OTHER, "", "blake3:", "rubbish"])
def test_another_root_than_the_expected_one_is_refused(sealed: MakeRoot, expect: str) -> None:
    root = sealed(GOOD)
    found = verify.verify(root, expect=expect)
    assert found.faults == (Fault("E-PIN", "", f"root: expected the root digest {expect}, got {digest_of(root)}"),)
    assert (found.authenticity, found.exit_code) == ("none", 20)


def test_a_root_without_manifest_is_not_the_expected_one(open_root_folder: MakeRoot) -> None:
    root = open_root_folder(SMALL)
    (root / "MANIFEST.b3").unlink()
    found = verify.verify(root, expect=OTHER)
    assert [item.message for item in found.faults] == [
        "MANIFEST.b3: expected this file, got none",
        f"root: expected the root digest {OTHER}, got no manifest",
    ]
    assert {check.note for check in found.checks if not check.ran} == {"there is no manifest to compare with"}


@pytest.mark.parametrize("kind", ["nothing", "file", "empty folder"])
def test_what_is_no_root_ends_in_a_verdict(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "root"
    if kind == "file":
        place.write_bytes(b"")
    elif kind == "empty folder":
        place.mkdir()
    found = verify.verify(place)
    assert (found.digest, found.exit_code) == (None, 20)
    assert rules(found.faults) == (["E-MANIFEST", "E-SEAL"] if kind == "empty folder" else ["E-READ"])
    assert not all(check.ran for check in found.checks)


def test_the_root_itself_may_be_named_through_a_link(sealed: MakeRoot) -> None:
    root = sealed(GOOD)
    root.with_name("latest").symlink_to(root.name)
    assert verify.verify(root.with_name("latest")).ok


def test_all_faults_are_listed_sorted_and_each_once(open_root_folder: MakeRoot) -> None:
    root = open_root_folder(GOOD)
    (root / "extra").write_bytes(b"")
    (root / "ladder.yaml").write_bytes(b"other")
    (root / "plan.json").unlink()
    (root / "SEAL").unlink()
    (root / "SEAL").symlink_to("ladder.yaml")
    (root / "empty").mkdir()
    found = verify.verify(root).faults
    assert [(item.rule, item.path) for item in found] == [
        ("E-EMPTY", "empty"), ("E-EXTRA", "extra"), ("E-HASH", "ladder.yaml"), ("E-LINK", "SEAL"), ("E-MISSING", "plan.json"),
    ]  # fmt: skip
    assert list(found) == sorted(found)


def test_the_meaning_of_changed_bytes_is_not_asked(open_root_folder: MakeRoot) -> None:
    root = open_root_folder(GOOD)
    (root / "plan.json").write_bytes(b"{}")
    found = verify.verify(root)
    assert rules(found.faults) == ["E-HASH"]
    assert {check.note for check in found.checks if not check.ran} == {"the files are not those that were sealed"}


def test_progress_tells_bytes_of_sealed_files(open_root_folder: MakeRoot) -> None:
    seen: list[tuple[int, int]] = []
    verify.verify(open_root_folder(SMALL), progress=lambda done, total: seen.append((done, total)))
    assert seen == [(4, 8), (8, 8)]


# --- what git cannot store, so no fixture has it ----------------------------------------------------------------------


def to_pipe(root: Path) -> None:
    (root / "a.txt").unlink()
    os.mkfifo(root / "a.txt")


def seal_to_link(root: Path) -> None:
    (root / "SEAL").rename(root.parent / "SEAL")
    (root / "SEAL").symlink_to("../SEAL")


SPOILED: dict[str, Callable[[Path], None]] = {
    "E-EMPTY": lambda root: (root / "b/empty").mkdir(),
    "E-HARDLINK": lambda root: os.link(root / "a.txt", root.parent / "other name"),
    "E-TYPE": to_pipe,
    "E-LINK": seal_to_link,
}


@pytest.mark.parametrize("rule", SPOILED)
def test_what_git_cannot_store_is_refused_by_its_rule_alone(open_root_folder: MakeRoot, rule: str) -> None:
    root = open_root_folder(SMALL)
    assert verify.verify(root).faults == ()
    SPOILED[rule](root)
    assert rules_of(root) == [rule]


@pytest.mark.parametrize("name", ["SEAL", "MANIFEST.b3"])
@pytest.mark.parametrize("kind", ["folder", "pipe", "second name"])
def test_seal_and_manifest_are_files_like_any_other(open_root_folder: MakeRoot, name: str, kind: str) -> None:
    root = open_root_folder(SMALL)
    if kind == "second name":
        os.link(root / name, root.parent / "other name")
    else:
        (root / name).unlink()
        (root / name).mkdir() if kind == "folder" else os.mkfifo(root / name)
    assert verify.verify(root).exit_code == 20
    assert rules_of(root)[-1] == ("E-HARDLINK" if kind == "second name" else "E-TYPE")


def test_a_folder_that_cannot_be_listed_is_refused(open_root_folder: MakeRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    """As for a folder of mode 000, which does not stop the superuser."""
    root = open_root_folder(SMALL)
    real = os.open

    def refusing(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path == "b":
            raise PermissionError(13, "Permission denied")
        return real(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", refusing)
    assert verify.verify(root).faults == (
        Fault("E-MISSING", "b/c.txt", "b/c.txt: expected this file, got none"),
        Fault("E-READ", "b", "b: expected something that can be read, got Permission denied"),
    )


def test_a_record_that_changes_between_hash_and_reading_is_refused(
    open_root_folder: MakeRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = open_root_folder(GOOD)
    hash_files = tree.hash_files

    def then_change(*args: object) -> object:
        found = hash_files(*args)  # type: ignore[arg-type]
        (root / "plan.json").write_bytes(b"{}\n")
        return found

    monkeypatch.setattr(tree, "hash_files", then_change)
    assert rules_of(root) == ["E-CHANGED"]


# --- the reader -------------------------------------------------------------------------------------------------------


def test_reader_gives_the_sealed_bytes(sealed: MakeRoot) -> None:
    root = open_root(sealed(GOOD))
    assert root.paths == tuple(sorted(GOOD))
    assert {path: root.read(path) for path in root.paths} == GOOD
    assert root.digest == root.report.digest == digest_of(root.folder)


@pytest.mark.parametrize("path", ["SEAL", "MANIFEST.b3", "../SEAL", "none"])
def test_reader_gives_only_sealed_files(sealed: MakeRoot, path: str) -> None:
    with pytest.raises(KeyError):
        open_root(sealed(GOOD)).read(path)


def test_nothing_is_read_from_a_root_that_did_not_verify(open_root_folder: MakeRoot) -> None:
    place = open_root_folder(GOOD)
    (place / "ladder.yaml").write_bytes(b"other")
    root = open_root(place)
    assert root.paths == ()
    with pytest.raises(
        NotVerifiedError, match=r"expected a root that verifies, got E-HASH ladder.yaml: expected blake3"
    ):
        root.read("plan.json")


def test_nothing_is_read_from_a_root_that_is_undetermined(open_root_folder: MakeRoot) -> None:
    root = open_root(open_root_folder(SMALL))
    with pytest.raises(NotVerifiedError, match="got a check that could not run"):
        root.read("a.txt")


def test_a_reader_knows_how_many_bytes_each_file_has(open_root_folder: MakeRoot) -> None:
    root = open_root(open_root_folder(GOOD))
    assert root.sizes == {path: len(data) for path, data in GOOD.items()}


def test_a_file_that_grew_since_is_not_read_whole(open_root_folder: MakeRoot) -> None:
    place = open_root_folder(GOOD)
    root = open_root(place)
    (place / "ladder.yaml").write_bytes(GOOD["ladder.yaml"] + b"#")
    with pytest.raises(NotVerifiedError) as refused:
        root.read("ladder.yaml")
    assert [item.message for item in refused.value.faults] == ["ladder.yaml: expected at most 10 bytes, got 11"]


@pytest.mark.parametrize("number", [1000, 1001])
def test_of_one_rule_a_thousand_faults_are_listed_and_how_many_there_are(
    open_root_folder: MakeRoot, number: int
) -> None:
    """And those of other rules beside them."""
    root = open_root_folder(SMALL)
    named = dict.fromkeys([f"n{n:04}.txt" for n in reversed(range(number))], "0" * 64)
    lines = manifest.render_digests(named)
    (root / "MANIFEST.b3").write_bytes(lines)
    (root / "SEAL").write_bytes(manifest.render_seal(manifest.digest_of(lines)))
    found = verify.verify(root).faults
    more = (Fault("E-MISSING", "", f"root: expected at most 1000 of its faults listed, got {number}"),)
    extra = [Fault("E-EXTRA", path, f"{path}: expected only files that the manifest names, got this") for path in SMALL]
    missing = [Fault("E-MISSING", path, f"{path}: expected this file, got none") for path in sorted(named)[:1000]]
    assert found == (*extra, *(more if number > 1000 else ()), *missing)


@pytest.mark.parametrize(
    ("module", "name", "ran"),
    [(manifest, "parse_digests", 0), (tree, "hash_files", 2), (meaning, "check", 4)],
    ids=["manifest", "files", "records"],
)
def test_a_root_that_needs_more_memory_than_there_is_is_undetermined(
    open_root_folder: MakeRoot, monkeypatch: pytest.MonkeyPatch, module: object, name: str, ran: int
) -> None:
    root = open_root_folder(GOOD)

    def more(*_args: object) -> object:
        raise MemoryError

    monkeypatch.setattr(module, name, more)
    found = verify.verify(root)
    assert (found.faults, found.ok, found.exit_code) == ((), False, 30)
    assert [check.ran for check in found.checks] == [True] * ran + [False] * (len(found.checks) - ran)
    assert {check.note for check in found.checks if not check.ran} == {"this machine has too little memory for it"}


def test_a_manifest_that_memory_does_not_suffice_for_ends_30_and_not_with_a_traceback(
    open_root_folder: MakeRoot,
) -> None:
    """The real thing: an address space of little more than the interpreter has."""
    root = open_root_folder(SMALL)
    lines = manifest.render_digests({f"{number:06x}": "0" * 64 for number in range(400_000)})
    (root / "MANIFEST.b3").write_bytes(lines)
    (root / "SEAL").write_bytes(manifest.render_seal(manifest.digest_of(lines)))
    limited = (
        "import resource, sys; from evidence import verify; "
        "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize(); "
        f"resource.setrlimit(resource.RLIMIT_AS, (used + {2 * len(lines)},) * 2); sys.exit(verify.main())"
    )
    done = subprocess.run([sys.executable, "-c", limited, str(root)], cwd=REPO, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (30, b"")
    assert b"this machine has too little memory for it" in done.stdout


def test_reader_refuses_a_file_that_changed_since(open_root_folder: MakeRoot) -> None:
    place = open_root_folder(GOOD)
    root = open_root(place)
    (place / "ladder.yaml").write_bytes(b"other")
    with pytest.raises(NotVerifiedError) as refused:
        root.read("ladder.yaml")
    assert rules(refused.value.faults) == ["E-CHANGED"]
    (place / "ladder.yaml").unlink()
    with pytest.raises(NotVerifiedError) as refused:
        root.read("ladder.yaml")
    assert rules(refused.value.faults) == ["E-READ"]
    place.rename(place.with_name("moved"))
    with pytest.raises(NotVerifiedError) as refused:
        root.read("plan.json")
    assert rules(refused.value.faults) == ["E-READ"]


# --- tampering --------------------------------------------------------------------------------------------------------


def spellings(data: bytes, step: int) -> list[bytes]:
    """The bytes with each one flipped, each one deleted, and one inserted at each place; every `step`-th of them."""
    flipped = [data[:n] + bytes([data[n] ^ 1 << n % 8]) + data[n + 1 :] for n in range(0, len(data), step)]
    deleted = [data[:n] + data[n + 1 :] for n in range(0, len(data), step)]
    inserted = [data[:n] + b"\n" + data[n:] for n in range(0, len(data) + 1, step)]
    return [spelled for spelled in flipped + deleted + inserted if spelled != data]


@pytest.mark.parametrize(
    ("files", "step", "intact", "at_least"), [(SMALL, 1, 30, 700), (GOOD, 41, 0, 300)], ids=["small", "climb"]
)
def test_every_byte_counts(
    open_root_folder: MakeRoot, files: dict[str, bytes], step: int, intact: int, at_least: int
) -> None:
    """Each byte of each file flipped, deleted, and one inserted before it; for the larger root a part of them."""
    root = open_root_folder(files)
    assert verify.verify(root).exit_code == intact
    tried = 0
    for path in [place for place in root.rglob("*") if place.is_file()]:
        data = path.read_bytes()
        for spelled in spellings(data, step):
            path.write_bytes(spelled)
            found = verify.verify(root)
            assert found.exit_code == 20, (path.name, spelled)
            assert {item.rule for item in found.faults} <= {"E-SEAL", "E-MANIFEST", "E-HASH", "E-PATH", "E-MISSING", "E-EXTRA",
                                                            "E-DOTFILE", "E-CASE", "E-KIND"}  # fmt: skip
            tried += 1
        path.write_bytes(data)
    assert verify.verify(root).exit_code == intact
    assert tried >= at_least


# --- the command ------------------------------------------------------------------------------------------------------

ISOLATED = f"import sys; sys.path.insert(0, {str(REPO)!r}); import runpy; runpy.run_module('evidence.verify', run_name='__main__')"


def run(*args: str | Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-I", "-c", ISOLATED, *args],
        env={**os.environ, **environment},
        capture_output=True,
        check=False,
    )


def test_command_says_everything_in_text(open_root_folder: MakeRoot) -> None:
    root = open_root_folder(SMALL)
    (root / "a.txt").unlink()
    done = run(root)
    assert done.returncode == 20
    assert done.stderr == b""
    why = "the files are not those that were sealed"
    assert done.stdout.decode().splitlines() == [
        f"root          {root}",
        f"digest        {digest_of(root)}",
        "authenticity  none: the root agrees with itself; nothing here shows who made it or that it is the one you were told of",
        "ran           seal E-SEAL",
        "ran           manifest E-MANIFEST E-PATH E-DOTFILE E-KIND E-CASE E-SIZE",
        "ran           tree E-EXTRA E-MISSING E-TYPE E-LINK E-EMPTY E-PATH",
        "ran           hashes E-HASH E-HARDLINK E-KIND E-CHANGED E-READ",
        f"not possible  records E-RECORD E-JSON E-SIZE: {why}",
        f"not possible  origins E-ORIGIN: {why}",
        f"not possible  plan E-PLAN E-LADDER: {why}",
        f"not possible  candidate E-CANDIDATE: {why}",
        f"not possible  inputs E-INPUT: {why}",
        f"not possible  gates E-GATE: {why}",
        f"not possible  steps E-STEP: {why}",
        f"not possible  artifacts E-ARTIFACT: {why}",
        f"not possible  times E-TIME: {why}",
        f"not possible  claim E-CLAIM: {why}",
        f"not possible  lineage E-LINEAGE: {why}",
        "E-MISSING     a.txt: expected this file, got none",
        "not intact: do not rely on anything in this root",
    ]


def test_command_gives_the_same_as_json(sealed: MakeRoot) -> None:
    root = sealed(GOOD)
    done = run(root, "--json", "--expect", digest_of(root))
    assert done.returncode == 0
    answer = json.loads(done.stdout)
    assert answer == verify.verify(root, digest_of(root)).as_dict()
    assert (answer["exit_code"], answer["ok"], answer["authenticity"]) == (0, True, "pinned")


@pytest.mark.parametrize(
    ("args", "code"),
    [
        ((), 64),
        (("--wrong", "x"), 64),
        (("x", "y"), 64),
        (("x", "--expect", "latest"), 64),
        (("x", "--expect"), 64),
        (("x", "--expect", OTHER + "0"), 64),
        (("-x",), 64),
        (("--help",), 0),
        (("none",), 20),
    ],
)
def test_command_exit_codes_are_never_1_or_2(args: tuple[str, ...], code: int) -> None:
    assert run(*args).returncode == code


def test_command_in_process_gives_json(
    open_root_folder: MakeRoot, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = open_root_folder(SMALL)
    monkeypatch.setattr(sys, "argv", ["verify", "--json", str(root)])
    assert verify.main() == 30
    assert json.loads(capsys.readouterr().out) == verify.verify(root).as_dict()


def test_module_is_the_command(sealed: MakeRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["verify", str(sealed(GOOD))])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(verify.__file__, run_name="__main__")
    assert ended.value.code == 0


def test_json_breaks_up_commands_and_stays_the_same_text() -> None:
    said = "::a:: :::: ##[b] ###[ \x7f\x1b \\::"
    shown = report.as_json(report.Report(None, (Fault("E-HASH", said, said),), (), "none"))
    assert "::" not in shown
    assert "##[" not in shown
    assert json.loads(shown)["faults"] == [{"rule": "E-HASH", "path": said, "message": said}]


def test_a_root_without_plan_exits_30(open_root_folder: MakeRoot) -> None:
    done = run(open_root_folder(SMALL))
    assert done.returncode == 30
    assert done.stdout.endswith(b"undetermined: no fault was found, but not every check could run\n")


def test_command_says_the_same_bytes_everywhere(open_root_folder: MakeRoot, tmp_path: Path) -> None:
    root = open_root_folder(GOOD | {"caf\u00e9": b"", "inputs/x\x1b[2J": b"", "b": b""})
    first = run(root)
    assert first.returncode == 20
    assert first.stdout.isascii()
    for environment in ({"LC_ALL": "C"}, {"LC_ALL": "tr_TR.UTF-8", "LANG": "tr_TR.UTF-8"}, {"TZ": "Asia/Kathmandu"},
                        {"GITHUB_ACTIONS": "true"}, {"COLUMNS": "20"}):  # fmt: skip
        assert run(root, **environment).stdout == first.stdout
    for seed, cwd in (("0", "/"), ("12345", tmp_path)):
        command = [sys.executable, "-P", "-c", ISOLATED, str(root)]
        done = subprocess.run(command, cwd=cwd, env={"PYTHONHASHSEED": seed}, capture_output=True, check=False)
        assert (done.stdout, done.returncode) == (first.stdout, 20)


@pytest.mark.parametrize("path", ["preserved", "other/x.txt", "x.txt"])
def test_a_file_outside_the_layout_is_refused(open_root_folder: MakeRoot, path: str) -> None:
    assert rules_of(open_root_folder(GOOD | {path: b"x"})) == ["E-RECORD"]


AS_NOBODY = (
    f"import os, sys; sys.path.insert(0, {str(REPO)!r}); import evidence.verify\n"
    "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"  # after the imports: the interpreter may be root's alone
    "assert os.getresuid() == (65534,) * 3\n"
    "sys.exit(evidence.verify.main())"
)


def test_command_says_the_same_bytes_to_another_user() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become another user: that the user id changes nothing is not shown here")
    with tempfile.TemporaryDirectory() as scratch:  # pytest's own folders are closed to other users
        place = Path(scratch)
        place.chmod(0o755)
        for name, files in (("whole", GOOD), ("spoiled", GOOD | {"caf\u00e9": b""})):
            make.Case(name, (), "", files).write(place)
            root = place / name / "root"
            for option in ([], ["--json"]):
                mine = run(root, *option)
                command = [sys.executable, "-I", "-c", AS_NOBODY, str(root), *option]
                theirs = subprocess.run(command, capture_output=True, check=False)
                assert (theirs.stdout, theirs.stderr, theirs.returncode) == (mine.stdout, b"", mine.returncode)
                assert mine.returncode == (0 if name == "whole" else 20)


def test_text_from_a_root_cannot_command_a_terminal_or_a_runner(open_root_folder: MakeRoot) -> None:
    root = open_root_folder(SMALL)
    for name in (
        "\x1b[32mok\r",
        "::error::x\n::set-env",
        "##[add-mask]x",
        "\u202e\U0001f600",
        ":::",
        "\x9b31m",
        "\x7f",
    ):
        (root / name).write_bytes(b"")
    (root / os.fsdecode(b"\xff\xfe")).write_bytes(b"")
    for option in ([], ["--json"]):
        shown = run(root, *option).stdout.decode("ascii")
        assert all(char.isprintable() or char == "\n" for char in shown)
        assert "::" not in shown
        assert "##[" not in shown
    names = {item["path"] for item in json.loads(run(root, "--json").stdout)["faults"]}
    assert {"\x1b[32mok\r", "::error::x\n::set-env", "##[add-mask]x", "\u202e\U0001f600", ":::"} <= names


def test_evidence_alone_verifies_every_fixture() -> None:
    """A child that may import the standard library, blake3 and evidence, and nothing else."""
    code = (
        f"import sys; sys.path.insert(0, {str(REPO)!r})\n"
        "class Only:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] not in sys.stdlib_module_names | {'blake3', 'evidence'}:\n"
        "            raise ImportError(f'{name} may not be imported')\n"
        "sys.meta_path.insert(0, Only())\n"
        "from pathlib import Path\n"
        "from evidence.verify import verify\n"
        "import evidence.seal\n"
        "for root in sys.argv[1:]:\n"
        "    print(verify(Path(root)).exit_code)\n"
        "try:\n    import msgspec\nexcept ImportError:\n    print('blocked')\n"
    )
    cases = make.cases()
    roots = [make.HERE / case.name / "root" for case in cases]
    done = subprocess.run([sys.executable, "-I", "-c", code, *roots], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(case.exit_code) for case in cases] + ["blocked"]


# --- progress ---------------------------------------------------------------------------------------------------------


class Terminal:
    """A stream that says it is a terminal and keeps what is written."""

    def __init__(self) -> None:
        self.text = ""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def flush(self) -> None:
        pass


def test_progress_is_shown_after_one_second_ten_times_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, terminal = [-2.0], Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    bar = report.Bar()
    for moment in (-1.5, -1.0, 0.0, 0.05, 0.1, 0.2):  # a second and a tenth exactly: not yet
        clock[0] = moment
        bar(int((moment + 2) * 1e9), 4_000_000_000)
    assert terminal.text == "\rhashed 2,000 of 4,000 MB\rhashed 2,200 of 4,000 MB"
    bar.clear()
    assert terminal.text.endswith("MB\r\x1b[K")


def test_a_quick_verify_shows_no_progress(
    sealed: MakeRoot, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(sys, "argv", ["verify", str(sealed(GOOD))])
    assert verify.main() == 0
    assert terminal.text == ""
    assert capsys.readouterr().out.endswith("(what the numbers mean is judged by `qualify verify`)\n")


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_is_for_terminals_alone(
    sealed: MakeRoot, monkeypatch: pytest.MonkeyPatch, terminal: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    stream, clock = Terminal(), iter(range(0, 10_000, 5))
    monkeypatch.setattr(stream, "isatty", lambda: terminal)
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))
    monkeypatch.setattr(sys, "argv", ["verify", str(sealed(GOOD))])
    assert verify.main() == 0
    assert ("hashed" in stream.text) == terminal
    assert capsys.readouterr().out


def test_command_in_process_refuses_a_digest_that_is_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["verify", "x", "--expect", "a\x1b::b"])
    assert verify.main() == 64
    assert capsys.readouterr().err == (
        "evidence.verify: expected a root and known options, got x --expect a\\x1b:\\x3ab; "
        "usage: python -m evidence.verify ROOT [--expect blake3:<64 hex>] [--json]\n"
    )


def test_command_without_words_says_that_it_got_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["verify"])
    assert verify.main() == 64
    assert "expected a root and known options, got nothing; usage" in capsys.readouterr().err


def test_text_of_a_root_without_a_manifest_says_that_there_is_no_digest(tmp_path: Path) -> None:
    shown = report.as_text(tmp_path, verify.verify(tmp_path)).splitlines()
    assert shown[1] == "digest        none"


def test_command_in_process_says_how_to_ask(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["verify", "--help"])
    assert verify.main() == 0
    assert capsys.readouterr().out == "usage: python -m evidence.verify ROOT [--expect blake3:<64 hex>] [--json]\n"
