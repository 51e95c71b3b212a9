"""Brings a table nearer to how MiniLM-L6 sees requests and what tools say of themselves.

    git clone --depth 1 https://github.com/Homebrew/homebrew-cask
    git clone --depth 1 https://github.com/Homebrew/homebrew-core
    git clone --depth 1 https://github.com/microsoft/PowerPlatformConnectors
    git clone --depth 1 https://github.com/jaywcjlove/awesome-mac
    git clone --depth 1 https://github.com/ai-collection/ai-collection
    git clone --depth 1 https://github.com/mahseema/awesome-ai-tools
    git clone --depth 1 https://github.com/google-research-datasets/natural-questions
    curl -O https://deb.debian.org/debian/dists/bookworm/main/dep11/Components-amd64.yml.gz
    python distil.py --table ../sentences.table --pairs pairs.jsonl more.jsonl --teacher teacher.npz --out ../sentences.table \
        --texts homebrew-cask/Casks homebrew-core/Formula PowerPlatformConnectors/*-connectors awesome-mac/README.md \
        ai-collection/README.md awesome-ai-tools/README.md natural-questions/nq_open Components-amd64.yml.gz oos-eval/data/all_wiki_sents.txt

The left side of a pair is a request, the right side what a tool says; `--texts` are more of either, without a partner. Of a batch of
either, half of it from a few neighbourhoods, all are held against all, and the table learns to find as near what the teacher finds near;
a batch of pairs beside it keeps right answers apart from those that are easily confused with them.

Most pieces are in few texts, so a row that is free to follow these soon fits them and nothing else. What changes a row is therefore a
small network, the same for all pieces, that sees what the teacher says of the piece alone, and only the rest is the row's own: that
follows the gradient as it is, so that a rare piece moves little. Held-back texts show whether it is still learning. The table that comes
out is the average over the last steps, mixed with the one that it began with: `--keep` is the share of the old one. The first coordinates
alone learn the same, so that a search may look at them first. `--teacher` keeps what the teacher said, which takes most of the time;
`--teach-most` bounds it. `--never` are folders with sets to measure with: no text of theirs is learnt from, not even by chance.
"""

import argparse
import gzip
import json
import pathlib
import random
import re

import numpy as np
import torch
import torch.nn.functional as F
import yaml

import train
from further import read

# How many of the first coordinates learn alone, and how much that counts.
WIDTHS = ((train.WIDTH, 1.0), (32, 0.4))
# How much the difference of a cosine counts beside the order, and how much the order among texts of one side.
COSINE = 20.0
WITHIN = 0.5
PAIRS = 256
# Neighbourhoods of texts, and how many a batch takes from.
NEIGHBOURHOODS = 200
NEAR = 6
# Coordinates of what is known of a piece.
KNOWN = 320
HELD_BACK = 1000
# So many operations of one API, and so many of them as requests too.
OPERATIONS, AS_REQUESTS = 8, 3
# More ways to begin than training began with, and how many requests begin so.
OPENINGS = train.OPENINGS[4:] + [
    "can I ", "could I ", "would you ", "how can I ", "how could I ", "what is the best way to ", "is it possible to ", "I would like to ",
    "I would like you to ", "I want you to ", "I need you to ", "I am trying to ", "I am looking for ", "I'm looking for ", "I am interested in ",
    "I was wondering if you could ", "I need help with ", "I need some help to ", "do you know how to ", "do you have ", "are there any ",
    "is there any ", "is there a tool to ", "give me ", "tell me ", "show me ", "let me ", "can you help me ", "could you please ",
    "can you please ", "can you provide me with ", "could you provide ", "please provide ", "can you give me some information about ",
    "I need information on ", "can you tell me about ", "can you show me ", "please assist me with ", "hi, ", "hello, ", "hey, ", "thanks, ",
    "for me, ", "for my project, ", "as soon as possible, ",
]
OPENED = 0.35
# Steps between two looks at the table for its average, and how much of the average a step keeps.
LOOK, AVERAGE = 20, 0.99


def texts_of(path):
    """The texts of a file or folder, each with the side that it is of."""
    path = pathlib.Path(path)
    if path.is_dir():
        for child in sorted(path.iterdir()):
            yield from texts_of(child)
        return
    readers = {".rb": of_homebrew, ".md": of_list, ".json": of_connector, ".jsonl": of_questions, ".gz": of_appstream, ".txt": of_lines}
    if path.suffix in readers:
        yield from readers[path.suffix](path)


def of_lines(path):
    for line in path.read_text().splitlines():
        yield "q", line


def of_questions(path):
    for line in path.read_text().splitlines():
        yield "q", json.loads(line).get("question", "")


def of_homebrew(path):
    text = path.read_text()
    name, about = re.search(r'^  name "(.*)"', text, re.M), re.search(r'^  desc "(.*)"', text, re.M)
    if about:
        yield "d", f"{name[1] if name else path.stem}. {about[1]}"


def of_list(path):
    """A list with an entry a line, or with a heading, a motto and a paragraph for each entry."""
    text = path.read_text()
    for name, about in re.findall(r"^\s*[-*] \[([^\]]+)\]\([^)]*\) - (?:\*\[reviews\]\([^)]*\)\* - )?(.*?)\s*(?:\[!.*|!\[.*)?$", text, re.M):
        yield "d", f"{name}. " + re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", about)
    for name, rest in re.findall(r"^### (.*)\n((?:(?!##).*\n|#### .*\n)*)", text, re.M):
        motto = re.search(r"^#### (.*)$", rest, re.M)
        about = [line for line in rest.split("\n") if line.strip() and line[0] not in "[<-!#"]
        if motto and about:
            yield "q", motto[1]
            yield "d", f"{name.strip()}. {about[0]}"


def of_connector(path):
    if not path.name.startswith("apiDefinition"):
        return
    try:
        api = json.loads(path.read_text(encoding="utf-8-sig"))
    except ValueError:
        return
    name = (api.get("info", {}).get("title") or "").strip()
    yield "d", f"{name}. {api.get('info', {}).get('description') or ''}"
    methods = [method for item in (api.get("paths") or {}).values() if isinstance(item, dict) for method in item.values()]
    operations = [method for method in methods if isinstance(method, dict) and method.get("summary")]
    random.Random(name).shuffle(operations)
    for at, operation in enumerate(operations[:OPERATIONS]):
        yield "d", f"{name}. {operation['summary']}. {operation.get('description') or ''}"
        if at < AS_REQUESTS:
            yield "q", operation.get("description") or operation["summary"]


def of_appstream(path):
    for app in filter(None, yaml.load_all(gzip.open(path), getattr(yaml, "CSafeLoader", yaml.SafeLoader))):
        name, motto, about = (re.sub(r"<[^>]+>", " ", (app.get(key) or {}).get("C", "")) for key in ("Name", "Summary", "Description"))
        if name and motto:
            yield "q", motto
            yield "d", f"{name}. {motto}. {about[:260]}"


def plain(text):
    return re.sub(r"\W+", " ", text.lower()).strip()


def measured(folders):
    """What the sets in these folders ask and say, which nothing may be learnt from."""
    found = set()
    for folder in folders:
        for path in pathlib.Path(folder).rglob("*.jsonl"):
            if path.name in ("tools.jsonl", "queries.jsonl"):
                lines = map(json.loads, path.read_text().splitlines())
                found.update(plain(line.get("text") or line.get("description") or "") for line in lines)
    return found - {""}


class Bags:
    """The pieces of texts."""

    def __init__(self, tokenizer, texts):
        ids = [encoded.ids or [100] for encoded in tokenizer.encode_batch(texts, add_special_tokens=False)]
        self.lengths = np.array([len(some) for some in ids])
        self.starts = np.cumsum(self.lengths) - self.lengths
        self.flat = np.concatenate([np.array(some) for some in ids])

    def of(self, some):
        """The pieces of some of the texts, and for each which of these texts it is of."""
        lengths = self.lengths[some]
        at = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return self.flat[np.repeat(self.starts[some], lengths) + at], np.repeat(np.arange(len(some)), lengths)


def without_some(pieces, rows, share, chance):
    """Pieces of which a share is left out, but never all of a text."""
    stays = chance.rand(len(pieces)) >= share
    stays |= np.bincount(rows[stays], minlength=rows.max() + 1)[rows] == 0
    return pieces[stays], rows[stays]


def opened(pieces, rows, count, openings, share, chance):
    """Pieces of requests of which a share begins as people begin."""
    which = np.flatnonzero(chance.rand(count) < share)
    if len(which) == 0:
        return pieces, rows
    more, of = openings.of(chance.randint(len(openings.lengths), size=len(which)))
    return np.concatenate([pieces, more]), np.concatenate([rows, which[of]])


class Rows(torch.nn.Module):
    """Rows as they were, changed by what a network makes of what is known of a piece, and by what is the row's own."""

    def __init__(self, old, known, hidden):
        super().__init__()
        self.old, self.known, self.own = old, known, torch.zeros_like(old)
        self.net = torch.nn.Sequential(torch.nn.Linear(known.shape[1], hidden), torch.nn.GELU(), torch.nn.Linear(hidden, train.WIDTH + 1))
        for weight in self.net[2].parameters():
            weight.data.zero_()
        self.seen, self.sizes, self.usual = torch.zeros(len(old)), torch.zeros(len(old)), None

    def forward(self, pieces, own):
        made = self.net(self.known[pieces])
        return (self.old[pieces] + made[:, :-1]) * made[:, -1:].clamp(-1.5, 1.5).exp() + own

    @torch.no_grad()
    def follow(self, pieces, gradient, rate):
        """Moves what is the rows' own. A row that moves much is slowed down, but only by half of what Adam would."""
        size = gradient.square().mean(1)
        self.seen[pieces] += 1
        share = (1 / self.seen[pieces]).clamp(min=0.01)
        self.sizes[pieces] += (size - self.sizes[pieces]) * share
        self.usual = float(size.median()) if self.usual is None else 0.99 * self.usual + 0.01 * float(size.median())
        step = gradient / (self.sizes[pieces].clamp(min=0.01 * self.usual) * self.usual).pow(0.25)[:, None]
        step *= 8 / step.square().mean(1, keepdim=True).sqrt().clamp(min=8)
        self.own[pieces] -= rate * step

    @torch.no_grad()
    def all(self):
        return torch.cat([self(some, self.own[some]) for some in torch.arange(len(self.old)).split(4096)])


def known_of_pieces(teacher, old):
    """What is known of each piece: its row, what the teacher says of it alone, the teacher's own row, how long and how common it is."""
    size = teacher.tokenizer.get_vocab_size()
    begin, end = teacher.tokenizer.token_to_id("[CLS]"), teacher.tokenizer.token_to_id("[SEP]")
    alone = torch.from_numpy(teacher.of_ids([[begin, piece, end] for piece in range(size)], 2048).astype(np.float32))
    own = teacher.w["embeddings.word_embeddings.weight"]
    known = torch.cat([F.normalize(old, dim=-1), alone, F.normalize(own, dim=-1)], 1)
    # The first thousand of the vocabulary are not words.
    known = known - known[1000:].mean(0)
    known = known @ torch.linalg.eigh(known[1000:].T @ known[1000:])[1][:, -KNOWN:]
    common = torch.log1p(torch.arange(size).float())[:, None] - 9
    return torch.cat([known / known[1000:].std(), 3 * old.norm(dim=1, keepdim=True) - 3, common], 1) / 4


def neighbourhoods(vectors, chance, rounds=6):
    centres = vectors[chance.permutation(len(vectors))[:NEIGHBOURHOODS]].clone()
    for _ in range(rounds):
        nearest = torch.cat([(some @ centres.T).argmax(1) for some in vectors.split(8192)])
        sums = torch.zeros_like(centres).index_add_(0, nearest, vectors)
        full = torch.bincount(nearest, minlength=NEIGHBOURHOODS) > 0
        centres = torch.where(full[:, None], F.normalize(sums, dim=-1), centres)
    return nearest.numpy()


def sums(rows, pieces, of, count):
    """The sums of the rows of the pieces of each text."""
    order = np.argsort(of, kind="stable")
    counts = np.bincount(of, minlength=count)
    return F.embedding_bag(torch.from_numpy(pieces[order]), rows, torch.from_numpy(np.cumsum(counts) - counts), mode="sum")


def order(ours, theirs, heat, within=False):
    """How far the order differs; a text is not held against itself, or nothing else would count."""
    if within:
        itself = torch.eye(len(ours), dtype=torch.bool)
        ours, theirs = ours.masked_fill(itself, -1e4), theirs.masked_fill(itself, -1e4)
    return F.kl_div(F.log_softmax(ours / heat, -1), F.softmax(theirs / heat, -1), reduction="batchmean")


def taught(q_sums, d_sums, q, d, heat):
    loss, (qd, qq, dd) = 0.0, (q @ d.T, q @ q.T, d @ d.T)
    for width, weight in WIDTHS:
        own_q, own_d = F.normalize(q_sums[:, :width], dim=-1), F.normalize(d_sums[:, :width], dim=-1)
        own_qd, own_qq, own_dd = own_q @ own_d.T, own_q @ own_q.T, own_d @ own_d.T
        across = order(own_qd, qd, heat) + order(own_qd.T, qd.T, heat)
        within = order(own_qq, qq, heat, True) + order(own_dd, dd, heat, True)
        cosine = 2 * F.mse_loss(own_qd, qd) + F.mse_loss(own_qq, qq) + F.mse_loss(own_dd, dd)
        loss = loss + weight * (across + WITHIN * within + COSINE * cosine)
    return loss


def told_apart(q, d, keys, heat):
    same = (keys[:, None] == keys[None, :]) & ~torch.eye(len(keys), dtype=torch.bool)
    scores = (F.normalize(q, dim=-1) @ F.normalize(d, dim=-1).T / heat).masked_fill(same, -1e4)
    own = torch.arange(len(keys))
    return 0.5 * (F.cross_entropy(scores, own) + F.cross_entropy(scores.T, own))


class Side:
    """The texts of one side that the teacher knows."""

    def __init__(self, texts, kept, tokenizer, chance):
        self.bags = Bags(tokenizer, texts)
        self.vectors = torch.from_numpy(kept.matrix(texts).astype(np.float32))
        mixed = chance.permutation(len(texts))
        self.held_back, self.all = mixed[:HELD_BACK], mixed[HELD_BACK:]

    def pick(self, near, size, hard, chance):
        """Texts, a share of them of the neighbourhoods that are near."""
        some = self.all[np.isin(self.where[self.all], near)]
        some = chance.choice(some, min(int(size * hard), len(some)), replace=False)
        return np.concatenate([some, chance.choice(self.all, size - len(some), replace=False)])


@torch.no_grad()
def held_back(table, sides, heat):
    own = [F.normalize(sums(table, *side.bags.of(side.held_back), len(side.held_back)), dim=-1) for side in sides]
    theirs = [side.vectors[side.held_back] for side in sides]
    return float(order(own[0] @ own[1].T, theirs[0] @ theirs[1].T, heat))


def learn(old, known, sides, pairs, tokenizer, options):
    chance = np.random.RandomState(options.seed)
    torch.manual_seed(options.seed)
    sides = [Side(texts, options.kept, tokenizer, chance) for texts in sides]
    where = neighbourhoods(torch.cat([side.vectors for side in sides]), chance)
    sides[0].where, sides[1].where = where[: len(sides[0].vectors)], where[len(sides[0].vectors) :]
    sizes = np.bincount(where, minlength=NEIGHBOURHOODS) / len(where)
    pair_bags = [Bags(tokenizer, [pair[side] for pair in pairs]) for side in "qd"]
    numbers = {key: at for at, key in enumerate({pair["k"] for pair in pairs})}
    keys = torch.tensor([numbers[pair["k"]] for pair in pairs])
    openings = Bags(tokenizer, OPENINGS)
    rows = Rows(old, known, options.hidden)
    optimizer = torch.optim.AdamW(rows.net.parameters(), lr=options.net_rate, weight_decay=0.01)
    average, total = old.clone(), 0.0
    print(f"{len(sides[0].all)} requests, {len(sides[1].all)} documents, {len(pairs)} pairs, held back {held_back(old, sides, options.heat):.4f}")
    batches = train.batches_of(list(range(len(pairs))), pairs, PAIRS, random.Random(options.seed))
    for step, some in zip(range(options.steps), batches):
        pace = min(1, (step + 1) / 50) * max(0.02, 0.5 * (1 + np.cos(np.pi * step / options.steps)))
        near = chance.choice(NEIGHBOURHOODS, NEAR, replace=False, p=sizes)
        q, d = (side.pick(near, options.batch, options.hard, chance) for side in sides)
        parts = [without_some(*side.bags.of(which), options.drop, chance) for side, which in zip(sides, (q, d))]
        parts += [bags.of(np.array(some)) for bags in pair_bags]
        parts[0] = opened(*parts[0], len(q), openings, OPENED, chance)
        parts[2] = opened(*parts[2], PAIRS, openings, OPENED, chance)
        pieces, places = np.unique(np.concatenate([part[0] for part in parts]), return_inverse=True)
        pieces = torch.from_numpy(pieces)
        own = rows.own[pieces].requires_grad_()
        made = rows(pieces, own)
        counts = [len(q), len(d), PAIRS, PAIRS]
        places = np.split(places, np.cumsum([len(part[0]) for part in parts])[:-1])
        q_sums, d_sums, *pair_sums = (sums(made, place, part[1], count) for place, part, count in zip(places, parts, counts))
        loss = taught(q_sums, d_sums, sides[0].vectors[q], sides[1].vectors[d], options.heat)
        loss = loss + options.apart * told_apart(*pair_sums, keys[some], options.pair_heat)
        optimizer.zero_grad()
        loss.backward()
        optimizer.param_groups[0]["lr"] = pace * options.net_rate
        optimizer.step()
        rows.follow(pieces, own.grad, pace * options.rate)
        total += loss.item()
        if (step + 1) % LOOK == 0:
            share = min(AVERAGE**LOOK, (step + 1) / (step + 51))
            average.mul_(share).add_(rows.all(), alpha=1 - share)
        if (step + 1) % 100 == 0:
            print(f"step {step + 1}: loss {total / 100:.3f}, held back {held_back(average, sides, options.heat):.4f}", flush=True)
            total = 0.0
    return average


def mixed(tables):
    """The sum of tables by their shares, all made as long as the first: the length of a row says how telling a word is."""
    length = lambda table: table[1000:20000].norm(dim=1).mean()
    first = length(tables[0][0])
    sum_of_all = sum(share * table * (first / length(table)) for table, share in tables)
    return sum_of_all * (first / length(sum_of_all))


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--table", required=True)
    options.add_argument("--pairs", nargs="+", required=True)
    options.add_argument("--texts", nargs="*", default=[], help="files and folders with more texts")
    options.add_argument("--never", nargs="*", default=[], help="folders with sets to measure with")
    options.add_argument("--teacher", required=True, help="file that keeps what the teacher said")
    options.add_argument("--teach-most", type=int, help="ask the teacher about so many new texts at most")
    options.add_argument("--out", required=True)
    options.add_argument("--keep", type=float, default=0.0)
    options.add_argument("--steps", type=int, default=1200)
    options.add_argument("--batch", type=int, default=384)
    options.add_argument("--hard", type=float, default=0.3, help="share of a batch that is of a few neighbourhoods")
    options.add_argument("--drop", type=float, default=0.1, help="share of the pieces that are left out")
    options.add_argument("--rate", type=float, default=0.0003)
    options.add_argument("--net-rate", type=float, default=0.003)
    options.add_argument("--hidden", type=int, default=320)
    options.add_argument("--heat", type=float, default=0.05)
    options.add_argument("--apart", type=float, default=0.6)
    options.add_argument("--pair-heat", type=float, default=0.07)
    options.add_argument("--seed", type=int, default=5)
    options.add_argument("--threads", type=int, default=1)
    options = options.parse_args()
    torch.set_num_threads(options.threads)
    teacher = train.Teacher(train.model_folder())
    never = measured(options.never)
    pairs = [pair for pair in train.read_pairs(options.pairs) if not never & {plain(pair["q"]), plain(pair["d"])}]
    more = {re.sub(r"\s+", " ", text).strip()[:400]: side for path in options.texts for side, text in texts_of(path)}
    more = {text: side for text, side in more.items() if len(text) >= 8 and plain(text) not in never}
    kept = options.kept = train.Kept(options.teacher, teacher, options.teach_most)
    kept.of([text for pair in pairs for text in (pair["q"], pair["d"])] + list(more))
    of_side = lambda side: {pair[side] for pair in pairs} | {text for text, own in more.items() if own == side}
    sides = [sorted(filter(kept.has, of_side(side))) for side in "qd"]
    old = read(options.table, teacher.tokenizer)
    new = learn(old, known_of_pieces(teacher, old), sides, pairs, teacher.tokenizer, options)
    train.write(options.out, mixed([(old, options.keep), (new, 1 - options.keep)]), teacher.tokenizer)


if __name__ == "__main__":
    main()
