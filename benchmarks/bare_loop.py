"""A bare onnxruntime loop over the same pairs, as anybody would write it: the peer that L1 is compared with.

    python benchmarks/bare_loop.py MODEL_FOLDER model.onnx pairs.jsonl CANDIDATES BATCH MAX_LENGTH THREADS WARM_UP CALLS

Prints the milliseconds of every steady call as a JSON list.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np
import onnxruntime as ort
from tokenizers import Tokenizer


def main() -> None:
    """Tokenise, sort, pad, load, call, print."""
    folder, graph, data = map(Path, sys.argv[1:4])
    candidates, batch, max_length, threads, warm_up, calls = map(int, sys.argv[4:10])
    rows = [json.loads(line) for line in data.read_bytes().split(b"\n") if line]
    rows = [rows[i % len(rows)] for i in range(candidates)]
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_length, strategy="longest_first")
    encoded = tokenizer.encode_batch([(row["query"], row["document"]) for row in rows])
    encoded.sort(key=lambda item: -len(item.ids))
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    session = ort.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])
    wanted = {item.name for item in session.get_inputs()}
    feeds = []
    for start in range(0, len(encoded), batch):
        chunk = encoded[start : start + batch]
        shape = (len(chunk), len(chunk[0].ids))
        tensors = {name: np.zeros(shape, np.int64) for name in ("input_ids", "attention_mask", "token_type_ids")}
        for row, item in enumerate(chunk):
            tensors["input_ids"][row, : len(item.ids)] = item.ids
            tensors["attention_mask"][row, : len(item.ids)] = 1
            tensors["token_type_ids"][row, : len(item.ids)] = item.type_ids
        feeds.append({name: value for name, value in tensors.items() if name in wanted})
    samples = []
    for number in range(warm_up + calls):
        begin = time.perf_counter()
        for feed in feeds:
            session.run(["logits"], feed)
        if number >= warm_up:
            samples.append((time.perf_counter() - begin) * 1000)
    print(json.dumps(samples))


if __name__ == "__main__":
    main()
