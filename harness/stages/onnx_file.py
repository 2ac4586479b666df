"""ONNX files on disk: a folder with ``model.onnx`` and, where asked for or needed, its weights beside it."""

from __future__ import annotations

import ast
import re
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from harness.files import hash_file
from harness.metrics import onnx_graph
from harness.stages.job import folder_digest

GRAPH, WEIGHTS = "model.onnx", "model.onnx.data"
ONE_FILE_BYTES = 2_000_000_000
"""A protobuf message holds at most 2 GiB; what is larger needs external data."""
INLINE_BYTES = 1024
"""Tensors below this stay in the graph, so that shapes and scalars can be read without the file beside it."""
_SCOPES = "pkg.torch.onnx.name_scopes"
_MODULE = re.compile(r"(?!_empty_nn_module)[A-Za-z_]\w*(\.\w+)*")
"""A module's dotted path; ``torch.export`` gives nodes of none the key ``_empty_nn_module_stack_from_metadata_hook``."""


def load(path: Path) -> Any:
    """The model with all its weights in memory."""
    import onnx

    return onnx.load(str(path))


def outline(path: Path) -> Any:
    """The model without the weights that lie beside it."""
    import onnx

    return onnx.load(str(path), load_external_data=False)


def save(model: Any, folder: Path, *, external: bool) -> Path:
    """Write ``model`` into ``folder`` and return the path; the copy in memory may be without weights afterwards."""
    import onnx

    folder.mkdir(parents=True, exist_ok=True)
    path = folder / GRAPH
    if external:
        onnx.save(
            model, str(path), save_as_external_data=True, location=WEIGHTS, size_threshold=INLINE_BYTES
        )  # fmt: skip
    else:
        onnx.save(model, str(path))
    return path


def strip(model: Any) -> None:
    """Take out stack traces, doc strings and unused domains: they name files of this machine and make two exports differ.

    The module that a node is of, which one exporter says only there, goes into its name, where the other has it: ``/bert/encoder/...``.
    """
    model.doc_string = model.graph.doc_string = ""
    model.ClearField("metadata_props")
    model.graph.ClearField("metadata_props")
    for node in model.graph.node:
        node.name = _named(node)
    for node in nodes(model):
        node.ClearField("metadata_props")
        node.doc_string = ""
    for value in (*model.graph.value_info, *model.graph.input, *model.graph.output, *model.graph.initializer):
        value.ClearField("metadata_props")
        value.doc_string = ""
    for place, node in enumerate(model.graph.node):
        node.name = node.name or f"{node.op_type}_{place}"  # conversion keeps nodes by name
    used = {node.domain for node in nodes(model)} | {function.domain for function in model.functions} | {""}
    kept = [item for item in model.opset_import if item.domain in used]
    del model.opset_import[:]
    model.opset_import.extend(kept)


def _named(node: Any) -> str:
    """The node's name, below its module where the exporter told the modules around it, outermost first and the operation last."""
    name = str(node.name)
    told = next((item.value for item in node.metadata_props if item.key == _SCOPES), "[]")
    try:
        modules = [str(scope) for scope in ast.literal_eval(told)[:-1]]
    except (ValueError, SyntaxError, TypeError):  # another release's spelling is no reason to fail an export
        return name
    modules = [module for module in modules if _MODULE.fullmatch(module)]
    if not name or not modules:
        return name
    steps = [modules[0], *(inner.removeprefix(f"{outer}.") for outer, inner in pairwise(modules))]
    return "/".join(("", *steps, name))


def nodes(model: Any) -> Iterator[Any]:
    """All nodes of the main graph and of functions; of subgraphs only those that hold them."""
    yield from model.graph.node
    for function in model.functions:
        yield from function.node


def taken(node: Any) -> Iterator[str]:
    """The tensors a node takes, those that its branches and loops take from outside too."""
    yield from filter(None, node.input)
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            for inner in graph.node:
                yield from taken(inner)


def nodes_of(graph: Path) -> list[tuple[str, str]]:
    """Name and operator type of every node of the main graph."""
    return [(node.name, node.op_type) for node in outline(graph).graph.node]


def files(graph: Path) -> tuple[str, ...]:
    """Names of the files that hold weights of ``graph``, relative to its folder. Raises OSError, ``GraphError``."""
    return tuple(sorted({item.location for item in onnx_graph.census(graph.read_bytes()).external}))


def copy(graph: Path, to: Path) -> None:
    """Copy a graph of this module with its weights; ``to`` is the new graph's path and must not exist."""
    copy_file(graph, to)
    for name in files(graph):
        copy_file(graph.parent / name, to.parent / name)


def copy_file(source: Path, to: Path) -> None:
    """Copy one file to a path that must not exist, whose folder is made."""
    to.parent.mkdir(parents=True, exist_ok=True)
    with source.open("rb") as read, to.open("xb") as write:
        shutil.copyfileobj(read, write, 1 << 20)


def size(graph: Path) -> int:
    """Bytes of the graph and of its weights."""
    return sum(path.stat().st_size for path in (graph, *(graph.parent / name for name in files(graph))))


def digest(graph: Path) -> str:
    """Tree digest of the graph's folder, as an artifact's is."""
    return folder_digest(graph.parent)


def differences(first: Path, second: Path) -> str:
    """In words, what differs between two graphs of the same checkpoint; empty when no tensor, node or signature does."""
    one, two = load(first), load(second)
    found = []
    for kind, left, right in (
        ("initializer", _by_name(one.graph.initializer), _by_name(two.graph.initializer)),
        ("node", _by_name(one.graph.node), _by_name(two.graph.node)),
        ("input or output", _by_name((*one.graph.input, *one.graph.output)), _by_name((*two.graph.input, *two.graph.output))),
    ):  # fmt: skip
        odd = sorted(name for name in {*left, *right} if left.get(name) != right.get(name))
        if odd:
            found.append(f"{len(odd)} {kind}{'s' if len(odd) > 1 else ''} differ, the first {odd[0]!r:.80}")
    if not found and hash_file(first) != hash_file(second):
        found.append("the same tensors, nodes and signature in another order or with other names of inner values")
    return "; ".join(found)


def _by_name(items: Any) -> dict[str, bytes]:
    return {
        item.name or f"#{place}": item.SerializeToString(deterministic=True)
        for place, item in enumerate(items)
    }  # fmt: skip
