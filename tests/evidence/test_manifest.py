from __future__ import annotations

import string

import pytest
from blake3 import blake3
from hypothesis import example, given
from hypothesis import strategies as st

from evidence import manifest
from evidence.manifest import Entry, FormatError, check_path, check_paths

ONE, TWO = "1" * 64, "a" * 64
NAMES = st.text("abAB0_", min_size=1, max_size=5)
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
DIGESTS = st.text("0123456789abcdef", min_size=64, max_size=64)
ENTRIES = st.dictionaries(PATHS, DIGESTS, min_size=1, max_size=8).filter(lambda made: not list(check_paths(made)))


def faults_of(data: bytes) -> list[str]:
    with pytest.raises(FormatError) as refused:
        manifest.parse_digests(data)
    return [item.message for item in refused.value.faults]


def test_manifest_is_what_b3sum_prints_sorted_by_path() -> None:
    made = {"b/c.txt": TWO, "a.txt": ONE}
    assert manifest.render_digests(made) == f"{ONE}  a.txt\n{TWO}  b/c.txt\n".encode()


def test_parsed_manifest_has_its_entries_in_order() -> None:
    assert manifest.parse_digests(f"{ONE}  a\n{TWO}  b/c\n".encode()) == {"a": ONE, "b/c": TWO}


def test_a_line_of_another_form_is_named_with_its_number() -> None:
    assert faults_of(f"{ONE}  a\n{TWO} b\n".encode()) == [
        f"MANIFEST.b3 line 2: expected `<64 lower-case hex>  <path>` and LF, got '{TWO} b\\n'"
    ]


def test_a_long_broken_line_is_cut_in_the_message() -> None:
    assert faults_of(b"z" * 100) == [
        f"MANIFEST.b3 line 1: expected `<64 lower-case hex>  <path>` and LF, got '{'z' * 80}' and 20 bytes more"
    ]


def test_a_broken_line_of_the_length_that_is_shown_is_shown_whole() -> None:
    assert faults_of(b"z" * 80)[0].endswith(f", got '{'z' * 80}'")


def test_lines_out_of_order_are_named() -> None:
    assert faults_of(f"{ONE}  b\n{TWO}  a\n".encode()) == ["MANIFEST.b3 line 2: expected a path after 'b', got 'a'"]


def test_a_path_that_stands_twice_is_named() -> None:
    assert faults_of(f"{ONE}  a\n{TWO}  a\n".encode()) == ["MANIFEST.b3 line 2: expected a path after 'a', got 'a'"]


def test_every_fault_of_a_manifest_is_listed() -> None:
    data = f"{ONE}  ../a\nrubbish\n{TWO}  .b".encode()
    with pytest.raises(FormatError) as refused:
        manifest.parse_digests(data)
    assert [item.rule for item in refused.value.faults] == ["E-PATH", "E-MANIFEST", "E-MANIFEST"]


def test_an_empty_manifest_is_refused() -> None:
    assert faults_of(b"") == ["MANIFEST.b3 line 1: expected `<64 lower-case hex>  <path>` and LF, got ''"]


def test_a_manifest_over_the_limit_is_refused_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest, "MANIFEST_LIMIT_BYTES", 10)
    assert faults_of(b"x" * 11) == ["MANIFEST.b3: expected at most 10 bytes, got 11"]
    assert faults_of(b"x" * 10)[0].startswith("MANIFEST.b3 line 1")


def test_a_manifest_of_bytes_that_are_no_text_is_refused() -> None:
    (message,) = faults_of(ONE.encode() + b"  \xff\xfe\n")
    assert message == (
        "\udcff\udcfe: expected 1 to 16 names of 1 to 128 of A-Z a-z 0-9 . _ - (none of . - first, no . last, no device of Windows), "
        "got '\\udcff\\udcfe'"
    )


@given(ENTRIES)
def test_every_manifest_comes_back_as_it_was(digests: dict[str, str]) -> None:
    assert manifest.parse_digests(manifest.render_digests(digests)) == digests


@given(st.binary(max_size=300))
@example(f"{ONE}  \u00e9\n".encode())
@example(f"{ONE}  a\r\n".encode())
@example(f"{ONE}  a\x0b\n".encode())
def test_any_bytes_are_a_manifest_of_one_spelling_or_refused(data: bytes) -> None:
    try:
        made = manifest.parse_digests(data)
    except FormatError as error:
        assert error.faults  # noqa: PT017 - there is no exception to expect for good bytes
    else:
        assert manifest.render_digests(made) == data


@given(ENTRIES, st.data())
def test_no_other_byte_string_near_a_manifest_has_the_same_meaning(
    digests: dict[str, str], data: st.DataObject
) -> None:
    spelled = manifest.render_digests(digests)
    at = data.draw(st.integers(0, len(spelled)))
    other = spelled[:at] + data.draw(st.binary(max_size=2)) + spelled[at + data.draw(st.integers(0, 2)) :]
    try:
        parsed = manifest.parse_digests(other)
    except FormatError:
        parsed = None
    assert (parsed == digests) == (other == spelled)


def test_root_digest_is_the_blake3_of_the_manifest() -> None:
    assert manifest.digest_of(b"lines\n") == "blake3:" + blake3(b"lines\n").hexdigest()


def test_tree_digest_does_not_depend_on_the_order_of_entries() -> None:
    one, two = Entry("a", ONE), Entry("b", TWO)
    assert manifest.tree_digest([two, one]) == manifest.digest_of(f"{ONE}  a\n{TWO}  b\n".encode())


@pytest.mark.parametrize(
    "entry", [Entry(f"a\n{TWO}  b", ONE), Entry("a", TWO.upper()), Entry("a", ONE + "1"), Entry("", ONE)]
)
def test_tree_digest_refuses_what_could_be_read_as_other_lines(entry: Entry) -> None:
    with pytest.raises(FormatError):
        manifest.tree_digest([entry])


def test_tree_digest_refuses_a_path_that_comes_twice() -> None:
    with pytest.raises(FormatError, match="a: expected a path of one line, once, and 64 hex, got '1111"):
        manifest.tree_digest([Entry("a", TWO), Entry("a", ONE)])


def test_tree_digest_takes_names_that_no_root_would() -> None:
    assert manifest.tree_digest([Entry("caf\u00e9 .py", ONE)]) == manifest.digest_of(f"{ONE}  caf\u00e9 .py\n".encode())


# --- SEAL -------------------------------------------------------------------------------------------------------------


def test_seal_line_comes_back_as_it_was() -> None:
    line = b"qualify-seal/1 blake3:" + ONE.encode() + b"\n"
    assert manifest.parse_seal(line) == "blake3:" + ONE
    assert manifest.render_seal("blake3:" + ONE) == line


@given(st.binary(max_size=120) | st.text(string.printable, max_size=120).map(str.encode))
@example(b"qualify-seal/1 blake3:" + ONE.encode())
@example(b"qualify-seal/1 blake3:" + ONE.encode() + b"\n\n")
@example(b"qualify-seal/1 blake3:" + TWO.upper().encode() + b"\n")
@example(b"qualify-seal/2 blake3:" + ONE.encode() + b"\n")
def test_any_other_seal_line_is_refused(data: bytes) -> None:
    with pytest.raises(FormatError, match="SEAL: expected `qualify-seal/1 blake3"):
        manifest.parse_seal(data)


# --- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    ["a", "SEAL.txt", "a/SEAL", "steps/L0-build.cpu-fp32/outcome.json", "a" * 128, "/".join("a" * 16), "zip", "nulls.txt",
     "com10", "a..b", "x.tar.json", "py", "a.b/c", "-a".removeprefix("-"), "/".join(["a" * 119] * 2),
     "a" * 120 + "/" + "a" * 119],
)  # fmt: skip
def test_portable_paths_are_taken(path: str) -> None:
    assert check_path(path) is None


@pytest.mark.parametrize(
    ("path", "rule"),
    [("", "E-PATH"), ("/a", "E-PATH"), ("a/", "E-PATH"), ("a//b", "E-PATH"), (".", "E-PATH"), ("..", "E-PATH"),
     ("a/../b", "E-PATH"), ("a\\b", "E-PATH"), ("C:", "E-PATH"), ("a\n", "E-PATH"), ("a\0", "E-PATH"), ("a ", "E-PATH"),
     (" a", "E-PATH"), ("a.", "E-PATH"), ("a/b./c", "E-PATH"), ("-a", "E-PATH"), ("a/-b", "E-PATH"), ("\u0130", "E-PATH"),
     ("CON", "E-PATH"), ("con.txt", "E-PATH"), ("a/Aux/b", "E-PATH"), ("lpt9.x.y", "E-PATH"), ("com0", "E-PATH"),
     ("prn", "E-PATH"), ("a" * 129, "E-PATH"), ("/".join("a" * 17), "E-PATH"), ("/".join(["a" * 120] * 2), "E-PATH"),
     ("Seal", "E-PATH"), ("MANIFEST.b3", "E-PATH"), (".a", "E-DOTFILE"), ("a/.b", "E-DOTFILE"), ("...a", "E-PATH"),
     ("a.zip", "E-KIND"), ("A.ZIP", "E-KIND"), ("a.tar.gz", "E-KIND"), ("x/w.pt", "E-KIND"), ("m.npy", "E-KIND"),
     ("run.sh", "E-KIND"), ("lib.so", "E-KIND"), ("m.py", "E-KIND")],
)  # fmt: skip
def test_other_paths_are_refused_with_their_rule(path: str, rule: str) -> None:
    found = check_path(path)
    assert found is not None
    assert (found.rule, found.path) == (rule, path[:240])


@given(st.text(max_size=20))
def test_a_path_that_is_taken_is_portable_whatever_it_is(path: str) -> None:
    if check_path(path) is None:
        assert path.isascii()
        assert set(path) <= set(string.ascii_letters + string.digits + "._-/")
        assert all(name and name[0] not in ".-" and name[-1] != "." for name in path.split("/"))


def test_the_message_says_what_is_wrong_with_a_path() -> None:
    assert [found.message for path in ("a.pkl", ".a", "a" * 241, "seal") if (found := check_path(path))] == [
        "a.pkl: expected inert data, got a pickle by its name",
        ".a: expected no name that begins with a dot, got '.a'",
        "a" * 240 + ": expected at most 240 characters, got 241",
        "seal: expected no sealed file with the name of SEAL or MANIFEST.b3, got 'seal'",
    ]


@pytest.mark.parametrize(
    ("paths", "named"),
    [(["a", "A"], ["a"]), (["a/b", "A/c"], ["a"]), (["a/b", "a/B"], ["a/b"]), (["a", "a/b"], ["a"]), (["A", "a/b"], ["A"]),
     (["x/A/1", "x/a/2", "x/a/3"], ["x/a"])],
)  # fmt: skip
def test_names_that_differ_only_in_case_are_refused_once_each(paths: list[str], named: list[str]) -> None:
    assert [(item.rule, item.path) for item in check_paths(paths)] == [("E-CASE", path) for path in named]


def test_twins_of_the_longest_path_there_may_be_are_refused() -> None:
    longest = "/".join(["a" * 119] * 2) + "/"
    assert len(longest) == 240
    paths = [longest[:-1] + "b", longest[:-1] + "B"]
    assert [item.rule for item in check_paths(paths)] == ["E-CASE"]


def test_names_that_differ_otherwise_are_taken() -> None:
    assert list(check_paths(["a", "ab", "b/a", "b/c/a", "d/a"])) == []


def test_a_fault_of_the_root_itself_says_root() -> None:
    assert manifest.fault("E-READ", "", "x", "y").message == "root: expected x, got y"


def test_a_format_error_names_the_first_five_faults() -> None:
    error = FormatError([manifest.fault("E-PATH", str(n), "x", "y") for n in range(7)])
    assert str(error) == "; ".join(f"{n}: expected x, got y" for n in range(5))
    assert len(error.faults) == 7


def test_an_empty_path_is_no_path_and_no_twin_of_a_folder() -> None:
    assert [item.rule for item in check_paths(["", "a/b"])] == ["E-PATH"]


def test_a_manifest_of_many_broken_lines_or_names_is_refused_with_the_first_of_them() -> None:
    """64 MiB have room for 64 million broken lines: listed one by one they would need more memory than there is."""
    faults = faults_of(b"\n" * 3000)
    assert len(faults) == 1000
    assert faults[-1] == "MANIFEST.b3 line 1000: expected `<64 lower-case hex>  <path>` and LF, got '\\n'"
    assert len(faults_of("".join(f"{ONE}  .{n:04}\n" for n in range(3000)).encode())) == 1000


def test_a_path_of_a_million_names_is_refused_without_looking_for_its_twins() -> None:
    assert faults_of(ONE.encode() + b"  " + b"a/" * 1_000_000 + b"a\n") == [
        f"{'a/' * 120}: expected at most 240 characters, got 2000001"
    ]
