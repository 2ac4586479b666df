"""What ``make demo`` prints, as the README shows it. ``python -m tests.support.readme`` writes it anew."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

REPO = Path(__file__).parent.parent.parent
README = REPO / "README.md"
BLOCK = re.compile(r"(<!-- demo -->\n```text\n)(.*?)(```\n<!-- /demo -->)", re.DOTALL)
SHOWN_ROOT, SHOWN_BIN = "runs/demo-20261130T171500Z", ".venv/bin"


def demo(root: Path) -> subprocess.CompletedProcess[str]:
    """Run ``ci/demo`` into ``root``, in this environment."""
    environment = {**os.environ, "BIN": str(Path(sys.executable).parent), "ROOT": str(root)}
    command = ["sh", "ci/demo"]
    return subprocess.run(command, cwd=REPO, env=environment, capture_output=True, text=True, check=False)


def as_shown(out: str, root: Path) -> str:
    """The demo's output with the places of the README instead of this machine's, without trailing spaces."""
    named = out.replace(str(root), SHOWN_ROOT).replace(str(Path(sys.executable).parent), SHOWN_BIN)
    return "".join(f"{line.rstrip()}\n" for line in named.splitlines())


def shape(text: str) -> str:
    """The text without its numbers, digests, line breaks, and what only a noisy run says: two warnings, and the interval of a rate."""
    calm = re.sub(r"^  warning +The (?:machine was busy|figure drifts);.*\n(   +.*\n)*", "", text, flags=re.MULTILINE)
    calm = re.sub(r"(pairs/s) \(95% [^)]*\)", r"\1", calm)
    return " ".join(re.sub(r"blake3:[0-9a-f]+|[-+]?[0-9][0-9.,]*(e[-+]?[0-9]+)?|\b(min|s|ms)\b", "#", calm).split())


def main() -> None:
    """Write the README's block from a run made now."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "root"
        done = demo(root)
        if done.returncode != 0:
            raise SystemExit(done.stdout + done.stderr)
        shown = as_shown(done.stdout, root)
        for path in (root, *root.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
    text = README.read_text(encoding="utf-8")
    README.write_text(BLOCK.sub(lambda found: found[1] + shown + found[3], text), encoding="utf-8")


if __name__ == "__main__":
    main()
