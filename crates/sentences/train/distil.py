"""Brings a table nearer to how MiniLM-L6 sees requests and what tools say of themselves.

    python distil.py --table ../sentences.table --pairs pairs.jsonl more.jsonl --teacher teacher.npz --out ../sentences.table

The left side of a pair is a request, the right side what a tool says. Of a batch of either, whichever they are, all are held against all,
and the table learns to find as near what the teacher finds near; a batch of pairs beside it keeps right answers apart from those that
are easily confused with them. What comes out is mixed with the table that it began with: `--keep` is the share of the old one. The first
coordinates alone learn the same, so that a search may look at them first. `--teacher` keeps what the teacher said, which takes most of
the time; `--teach-most` bounds it.
"""

import argparse
import random

import numpy as np
import torch
import torch.nn.functional as F

import train
from further import read, sums

# How many of the first coordinates learn alone, and how much that counts.
WIDTHS = ((train.WIDTH, 1.0), (64, 0.3), (32, 0.3))
# How much the difference of a cosine counts beside the order.
COSINE = 20.0
PAIRS = 256


def encode(tokenizer, texts):
    return [encoded.ids or [100] for encoded in tokenizer.encode_batch(texts, add_special_tokens=False)]


def nearness(ours, theirs, heat):
    return F.kl_div(F.log_softmax(ours / heat, -1), F.softmax(theirs / heat, -1), reduction="batchmean") + COSINE * F.mse_loss(ours, theirs)


def taught(sums_q, sums_d, q, d, heat):
    loss = 0.0
    for width, weight in WIDTHS:
        own_q, own_d = F.normalize(sums_q[:, :width], dim=-1), F.normalize(sums_d[:, :width], dim=-1)
        for ours, theirs in ((own_q @ own_d.T, q @ d.T), (own_d @ own_q.T, d @ q.T), (own_q @ own_q.T, q @ q.T), (own_d @ own_d.T, d @ d.T)):
            loss = loss + weight * nearness(ours, theirs, heat)
    return loss


def told_apart(q, d, keys, heat):
    same = (keys[:, None] == keys[None, :]) & ~torch.eye(len(keys), dtype=torch.bool)
    scores = (F.normalize(q, dim=-1) @ F.normalize(d, dim=-1).T / heat).masked_fill(same, -1e4)
    own = torch.arange(len(keys))
    return 0.5 * (F.cross_entropy(scores, own) + F.cross_entropy(scores.T, own))


def learn(old, pairs, kept, tokenizer, options):
    chance = random.Random(options.seed)
    table = old.clone().requires_grad_()
    optimizer = torch.optim.SparseAdam([table], lr=options.rate)
    sides = [sorted({pair[side] for pair in pairs if kept.has(pair[side])}) for side in "qd"]
    bags = [encode(tokenizer, texts) for texts in sides]
    known = [torch.from_numpy(kept.matrix(texts).astype(np.float32)) for texts in sides]
    pair_bags = [encode(tokenizer, [pair[side] for pair in pairs]) for side in "qd"]
    numbers = {key: at for at, key in enumerate({pair["k"] for pair in pairs})}
    keys = torch.tensor([numbers[pair["k"]] for pair in pairs])
    openings = encode(tokenizer, train.OPENINGS[4:])
    opened = lambda bag, share: (chance.choice(openings) if chance.random() < share else []) + bag
    total = 0.0
    for step, some in zip(range(options.steps), train.batches_of(list(range(len(pairs))), pairs, PAIRS, chance)):
        optimizer.param_groups[0]["lr"] = options.rate * min(1, (step + 1) / 50) * max(0.03, 1 - step / options.steps)
        q, d = (chance.sample(range(len(texts)), options.batch) for texts in sides)
        q_sums, d_sums = sums(table, [opened(bags[0][i], 0.15) for i in q]), sums(table, [bags[1][i] for i in d])
        loss = taught(q_sums, d_sums, known[0][q], known[1][d], options.heat)
        pair_sums = sums(table, [opened(pair_bags[0][i], 0.3) for i in some]), sums(table, [pair_bags[1][i] for i in some])
        loss = loss + options.apart * told_apart(*pair_sums, keys[some], options.pair_heat)
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
    options.add_argument("--teacher", required=True, help="file that keeps what the teacher said")
    options.add_argument("--teach-most", type=int, help="ask the teacher about so many new texts at most")
    options.add_argument("--out", required=True)
    options.add_argument("--keep", type=float, default=0.3)
    options.add_argument("--steps", type=int, default=1500)
    options.add_argument("--batch", type=int, default=384)
    options.add_argument("--rate", type=float, default=0.001)
    options.add_argument("--heat", type=float, default=0.05)
    options.add_argument("--apart", type=float, default=0.2)
    options.add_argument("--pair-heat", type=float, default=0.07)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--threads", type=int, default=1)
    options = options.parse_args()
    torch.set_num_threads(options.threads)
    teacher = train.Teacher(train.model_folder())
    pairs = list(train.read_pairs(options.pairs))
    kept = train.Kept(options.teacher, teacher, options.teach_most)
    kept.of([text for pair in pairs for text in (pair["q"], pair["d"])])
    old = read(options.table, teacher.tokenizer)
    new = learn(old, pairs, kept, teacher.tokenizer, options)
    train.write(options.out, options.keep * old + (1 - options.keep) * new, teacher.tokenizer)


if __name__ == "__main__":
    main()
