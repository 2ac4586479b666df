"""What ``qualify verify`` found, on a terminal or in a log: the verdict first, every fault, every check, the digest last."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from harness.report import escape, wording
from harness.report.terminal import wrapped


def verify_text(answer: Mapping[str, Any]) -> str:
    """The text of a verification, from its JSON answer (``review.answer``)."""
    lines = [_verdict_line(answer), *wrapped("root", answer["root"])]
    for found in answer["faults"]:
        lines += ["", *wrapped(found["rule"], found["path"] or "the root"), *wrapped("", found["message"])]
    if answer["ladder"] is not None:
        lines += ["", *_ladder(answer)]
    for label in answer["smoke"]:
        lines += wrapped("smoke", label)
    lines.append("")
    plain = [check["check"] for check in answer["checks"] if check["ran"] and not check["note"]]
    lines += wrapped("checked", ", ".join(plain)) if plain else ()
    for check in answer["checks"]:
        if check["note"] or not check["ran"]:
            note = f"{check['check']}{': ' if check['note'] else ''}{check['note']}"
            lines += wrapped("checked" if check["ran"] else "skipped", note)
    held = answer["intact"] or not answer["faults"]
    means = answer["authenticity_means"] if held else "it did not verify, so nothing vouches for it"
    lines += wrapped("trust", f"{answer['authenticity']}: {means}")
    for item in answer["attestations"]:
        by = f" by {item['verifier']}" if item["verifier"] else ""
        lines += wrapped("signed", f"{item['file']}: {item['kind']} {item['result']}{by}, key sha256 {item['key']}")
    lines += ["", f"digest  {escape.terminal(str(answer['digest'] or 'none'))}"]
    return "\n".join(lines) + "\n"


def _verdict_line(answer: Mapping[str, Any]) -> str:
    count = len(answer["faults"])
    faults = f"{count} fault{'' if count == 1 else 's'}"
    if count and answer["intact"]:
        return f"✗ NOT ATTESTED: {faults} of what should vouch for the root; the root itself is intact"
    if count:
        return f"✗ NOT INTACT: {faults}; rely on nothing in this root"
    if answer["verdict"] is None:
        return "? UNDETERMINED: no fault was found, but not every check could run"
    sign = wording.sign(answer["verdict"])
    if answer["ladder"] is not None:
        return f"{sign}: intact, and judged under your ladder; under the sealed plan {answer['sealed_verdict']}"
    return f"{sign}: intact, and judged again from its raw samples it says the same"


def _ladder(answer: Mapping[str, Any]) -> Iterator[str]:
    """The reviewer's ladder: what became of each target under it, and every difference from the sealed plan."""
    ladder = answer["ladder"]
    yield from wrapped("ladder", f"{ladder['name']}, {ladder['digest']}")
    for target in ladder["targets"]:
        deferred = f"deferred: {target['deferred']}" if target["deferred"] else ""
        why = deferred or target["reason"]
        yield from wrapped("", f"{target['name']}: {wording.WORDS[target['verdict']]}{', ' if why else ''}{why}")
    if not ladder["differences"]:
        yield from wrapped("differs", "in nothing: the same limits and options as the sealed plan")
    for number, item in enumerate(ladder["differences"]):
        where = " ".join(filter(None, (item["target"], item["tier"], item["name"])))
        blocked = "; BLOCKED, the root measured something else" if item["blocks"] else ""
        yield from wrapped(
            "" if number else "differs", f"{where}: sealed {item['sealed']}, yours {item['own']}{blocked}"
        )
