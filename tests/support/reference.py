"""The tables of docs/reference/ladder.md and diff.md, made from the structs and the catalogue.

``python -m tests.support.reference`` writes them between the markers of the pages; a test compares.
"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from harness import fields, policy
from harness.ladder_format import (
    AdapterReference,
    BuildTier,
    CandidateReference,
    Ladder,
    ParityTier,
    PerfTier,
    RerankTier,
    Target,
)
from harness.ladder_keys import KEYS as LADDER_KEYS
from harness.metrics import catalogue
from harness.metrics.direction import better
from harness.metrics.metric import Metric
from harness.policy import Gate, Pin, Policy
from harness.records import (
    TIERS,
    DataSource,
    HalfOptions,
    IntegerOptions,
    Limit,
    LoadOptions,
    Lock,
    PairedOptions,
    Precision,
    QualityGate,
    Record,
    SessionOptions,
    SweepOptions,
    Tier,
    TrecFiles,
)

DOCS = Path(__file__).parent.parent.parent / "docs/reference"
PAGES = (DOCS / "ladder.md", DOCS / "diff.md")
KEYS = LADDER_KEYS | policy.KEYS
STRUCTS: dict[str, type[Record]] = {
    kind.__name__: kind
    for kind in (
        *(
            Ladder,
            CandidateReference,
            AdapterReference,
            Target,
            BuildTier,
            HalfOptions,
            IntegerOptions,
            PerfTier,
            ParityTier,
            RerankTier,
        ),
        *(
            DataSource,
            TrecFiles,
            Limit,
            SessionOptions,
            PairedOptions,
            SweepOptions,
            LoadOptions,
            Policy,
            Pin,
            Gate,
            QualityGate,
            Lock,
        ),
    )
}


def keys_table(name: str) -> str:
    """Every key of one struct: what it takes, its default, what it means."""
    kind = msgspec.inspect.type_info(STRUCTS[name])
    assert isinstance(kind, msgspec.inspect.StructType)
    by_name = {field.encode_name: field for field in kind.fields}
    lines = ["| key | takes | default | meaning |", "| --- | --- | --- | --- |"]
    for key, meaning in KEYS[name].items():
        field = by_name[key]
        lines.append(f"| `{key}` | {_takes(field.type)} | {_default(name, key, field)} | {meaning} |")
    return "\n".join(lines)


def metrics_table(tier: Tier) -> str:
    """Every metric of one tier with its unit, its kind and the limit that no ladder can change."""
    lines = ["| metric | unit | better | bounds | meaning |", "| --- | --- | --- | --- | --- |"]
    for name, metric in catalogue.METRICS.items():
        if metric.tier == tier:
            shown = f"{name}.<{metric.parameter}>" if metric.parameter else name
            way = better(name).replace("neither", "–")
            lines.append(f"| `{shown}` | {metric.unit} | {way} | {_bounds(name, metric)} | {metric.meaning} |")
    return "\n".join(lines)


def blocks() -> dict[str, str]:
    """Every generated block of the page by its marker's name."""
    made = {f"keys {name}": keys_table(name) for name in STRUCTS}
    return made | {f"metrics {tier}": metrics_table(tier) for tier in TIERS}


def replaced(page: str) -> str:
    """The page with every block made anew. Raises ``KeyError`` for a marker that means nothing."""
    made = blocks()
    found = re.compile(r"(<!-- table: ([A-Za-z0-9 ]+) -->\n).*?(\n<!-- end -->)", re.DOTALL)
    return found.sub(lambda match: match[1] + made[match[2]] + match[3], page)


def _takes(kind: msgspec.inspect.Type) -> str:
    match kind:
        case msgspec.inspect.StructType() | msgspec.inspect.DictType():
            return "table"
        case msgspec.inspect.VarTupleType():
            item = kind.item_type
            return (
                "list of tables" if isinstance(item, msgspec.inspect.StructType) else f"list, each {fields.words(item)}"
            )
        case msgspec.inspect.UnionType():
            kinds = [item for item in kind.types if not isinstance(item, msgspec.inspect.NoneType)]
            return " or ".join(dict.fromkeys(map(_takes, kinds)))
        case _:
            return fields.words(kind)


def _default(name: str, key: str, field: msgspec.inspect.Field) -> str:
    if name == "Target" and key == "name":
        return "`<provider>-<precision>`"
    if field.required:
        return "required"
    if field.default is None or field.default is msgspec.NODEFAULT:
        return "none"
    if isinstance(field.default, Record):
        return "its defaults"
    return f"`{field.default:g}`" if isinstance(field.default, float) else f"`{field.default}`"


def _bounds(name: str, metric: Metric) -> str:
    precisions: tuple[Precision, ...] = ("fp32", "fp16", "int8")
    fixed = {
        precision: catalogue.fixed_limits(metric.tier, precision, adapter=True).get(name) for precision in precisions
    }
    if name in catalogue.LOAD_LIMITS:
        return f"fixed with `load`: {limit_text(catalogue.LOAD_LIMITS[name])}"
    shown = {precision: limit_text(limit) for precision, limit in fixed.items() if limit is not None}
    if len(set(shown.values())) == 1:
        return f"fixed: {shown['fp32']}"
    if shown:
        return "fixed: " + ", ".join(f"{text} for {precision}" for precision, text in shown.items())
    return "`exactly`" if metric.kind in (str, bool) else "any"


def limit_text(limit: Limit) -> str:
    """A limit in words: ``at most 0.5``."""
    given = {"at most": limit.at_most, "at least": limit.at_least, "exactly": limit.exactly}
    shown = (
        f"{word} {value:g}" if isinstance(value, float) else f"{word} {value}"
        for word, value in given.items()
        if value is not None
    )
    return ", ".join(shown)


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(replaced(page.read_text("utf-8")), "utf-8")
