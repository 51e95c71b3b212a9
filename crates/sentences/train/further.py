"""Trains the table further on more pairs, without asking the teacher again.

    python further.py --table ../sentences.table --pairs pairs.jsonl more.jsonl --out ../sentences.table

It learns the pairs as `train.py` does, and is held to how the table that it began with spreads the texts of a batch. What comes out is
mixed with that table: `--keep` is the share of the old one. Only the rows of tokens that occur are touched, so a minute of one core is enough.
"""

import argparse
import random
import struct

import numpy as np
import torch
import torch.nn.functional as F
from tokenizers import Tokenizer

import train


def read(path, tokenizer):
    """The rows of a table at their places in the vocabulary."""
    with open(path, "rb") as file:
        raw = file.read()
    count, width = struct.unpack("<II", raw[8:16])
    at, tokens = 16, []
    for _ in range(count):
        tokens.append(raw[at + 1 : at + 1 + raw[at]].decode())
        at += 1 + raw[at]
    scales = np.frombuffer(raw[at : at + 2 * count], "<f2").astype(np.float32)
    rows = np.frombuffer(raw[at + 2 * count :], np.int8).reshape(count, width).astype(np.float32) * scales[:, None]
    table = torch.zeros(tokenizer.get_vocab_size(), width)
    table[[tokenizer.token_to_id(token) for token in tokens]] = torch.from_numpy(rows)
    return table


def sums(table, bags):
    flat = torch.tensor([token for bag in bags for token in bag], dtype=torch.long)
    starts = torch.tensor(np.cumsum([0] + [len(bag) for bag in bags[:-1]]), dtype=torch.long)
    return F.embedding_bag(flat, table, starts, mode="sum", sparse=table.requires_grad)


def spread(scores, target, heat):
    return F.kl_div(F.log_softmax(scores / heat, -1), F.softmax(target / heat, -1), reduction="batchmean")


def learn(old, pairs, tokenizer, options):
    chance = random.Random(options.seed)
    table = old.clone().requires_grad_()
    optimizer = torch.optim.SparseAdam([table], lr=options.rate)
    encode = lambda texts: [encoded.ids or [100] for encoded in tokenizer.encode_batch(texts, add_special_tokens=False)]
    q_bags, d_bags = encode([p["q"] for p in pairs]), encode([p["d"] for p in pairs])
    openings = encode(train.OPENINGS[4:])
    keys = {key: i for i, key in enumerate({p["k"] for p in pairs})}
    keys = torch.tensor([keys[p["k"]] for p in pairs])
    own, total = torch.arange(options.batch), 0.0
    for step, batch in zip(range(options.steps), train.batches(pairs, options.batch, chance)):
        optimizer.param_groups[0]["lr"] = options.rate * min(1, (step + 1) / 50) * max(0.05, 1 - step / options.steps)
        q_some = [(chance.choice(openings) if chance.random() < 0.3 and len(q_bags[i]) > 1 else []) + q_bags[i] for i in batch]
        d_some = [d_bags[i] for i in batch]
        q, d = sums(table, q_some), sums(table, d_some)
        q_old, d_old = F.normalize(sums(old, q_some), dim=-1), F.normalize(sums(old, d_some), dim=-1)
        batch = torch.tensor(batch)
        same = (keys[batch][:, None] == keys[batch][None, :]) & ~torch.eye(len(batch), dtype=torch.bool)
        loss = 0.0
        for width, weight in ((train.WIDTH, 1.0), (train.FIRST, 0.5)):
            qn, dn = F.normalize(q[:, :width], dim=-1), F.normalize(d[:, :width], dim=-1)
            scores = qn @ dn.T
            masked = (scores / options.heat).masked_fill(same, -1e4)
            pairs_loss = 0.5 * (F.cross_entropy(masked, own) + F.cross_entropy(masked.T, own))
            hold = spread(scores, q_old @ d_old.T, options.hold_heat) + 0.5 * spread(qn @ qn.T, q_old @ q_old.T, options.hold_heat)
            loss = loss + weight * (pairs_loss + options.hold * hold)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
        if (step + 1) % 100 == 0:
            print(f"step {step + 1}: loss {total / 100:.3f}", flush=True)
            total = 0.0
    return table.detach()


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--table", required=True)
    options.add_argument("--pairs", nargs="+", required=True)
    options.add_argument("--out", required=True)
    options.add_argument("--keep", type=float, default=0.5)
    options.add_argument("--steps", type=int, default=600)
    options.add_argument("--batch", type=int, default=512)
    options.add_argument("--rate", type=float, default=0.0005)
    options.add_argument("--heat", type=float, default=0.07)
    options.add_argument("--hold", type=float, default=0.5)
    options.add_argument("--hold-heat", type=float, default=0.05)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--threads", type=int, default=1)
    options = options.parse_args()
    torch.set_num_threads(options.threads)
    tokenizer = Tokenizer.from_file(str(train.model_folder() / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(96)
    old = read(options.table, tokenizer)
    new = learn(old, list(train.read_pairs(options.pairs)), tokenizer, options)
    train.write(options.out, options.keep * old + (1 - options.keep) * new, tokenizer)


if __name__ == "__main__":
    main()
