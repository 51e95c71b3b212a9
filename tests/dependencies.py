#!/usr/bin/env python3
"""Checks licences, duplicates, bans and sources of dependencies by deny.toml, from what `cargo metadata` says.

It is what `cargo deny check licenses bans sources` does, for machines without cargo-deny, whose build takes longer than most of the tests.
"""

import collections
import json
import re
import subprocess
import sys

try:
    import tomllib
except ImportError:
    sys.exit("error: needs Python 3.11, or cargo-deny")

CRATES_IO = "registry+https://github.com/rust-lang/crates.io-index"


def metadata(target):
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", target]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def is_allowed(expression, allowed):
    """Whether a licence expression can be met with these licences: `or` binds less than `and`, and `/` is an old `or`."""
    tokens = re.findall(r"\(|\)|[^\s()]+", expression.replace("/", " OR "))

    def any_of():
        met = all_of()
        while tokens and tokens[0] == "OR":
            tokens.pop(0)
            met = all_of() or met
        return met

    def all_of():
        met = one()
        while tokens and tokens[0] == "AND":
            tokens.pop(0)
            met = one() and met
        return met

    def one():
        name = tokens.pop(0)
        if name == "(":
            met = any_of()
            tokens.pop(0)
            return met
        if tokens and tokens[0] == "WITH":
            name = " ".join([name, tokens.pop(0), tokens.pop(0)])
        return name in allowed

    return any_of()


def is_meant(package, entry):
    """Whether an entry such as `syn@2` or `openssl-sys` means this package."""
    name, _, version = entry["crate"].partition("@")
    return package["name"] == name and (not version or (package["version"] + ".").startswith(version + "."))


def problems(rules, packages):
    foreign = [package for package in packages if package["source"]]
    allowed = set(rules["licenses"]["allow"])
    for package in foreign:
        named = f"{package['name']} {package['version']}"
        if not is_allowed(package["license"] or "none", allowed):
            yield f"{named} has the licence `{package['license']}`; allow it in deny.toml, or do without the crate"
        if package["source"] != CRATES_IO:
            yield f"{named} does not come from crates.io but from {package['source']}"
        for entry in rules["bans"]["deny"]:
            if is_meant(package, entry):
                yield f"{named} is banned: {entry['reason']}"
    versions = collections.defaultdict(set)
    for package in foreign:
        if not any(is_meant(package, entry) for entry in rules["bans"]["skip"]):
            versions[package["name"]].add(package["version"])
    for name, several in sorted(versions.items()):
        if len(several) > 1:
            yield f"{name} is there in the versions {', '.join(sorted(several))}; have one, or skip it in deny.toml with the reason"
    for entry in rules["bans"]["skip"]:
        if not any(is_meant(package, entry) for package in foreign):
            yield f"{entry['crate']} is skipped in deny.toml, but is not there any more"


def main():
    with open("deny.toml", "rb") as file:
        rules = tomllib.load(file)
    packages = {}
    for target in rules["graph"]["targets"]:
        found = metadata(target)
        used = {node["id"] for node in found["resolve"]["nodes"]}
        packages.update((package["id"], package) for package in found["packages"] if package["id"] in used)
    told = list(problems(rules, packages.values()))
    for problem in told:
        print(f"error: {problem}", file=sys.stderr)
    sys.exit(1 if told else 0)


if __name__ == "__main__":
    main()
