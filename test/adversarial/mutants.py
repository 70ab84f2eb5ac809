#!/usr/bin/env python3
"""Deliberately broken builds, and the hostile tests that must notice.

  mutants.py check BUILD TEST ...   each row's text occurs once, and its tests exist in what BUILD has of test programs (seconds)
  mutants.py run TREE [WORD ...]    breaks, builds and tests each mutant whose name contains a word, those of a file (scheduler),
                                    or all (some ten seconds each); TREE is a scratch folder, kept between runs

A row of *.toml: name, file, find (exact text, once in the file), replace, test (one of test/, sched_exhaustion for sched/exhaustion,
built as test_NAME), filter (of its test cases), breaks (what is wrong then). A mutant is killed when a test case fails, the program dies, or it takes longer than a minute.
"""
import fnmatch
import os
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
AREAS = ("scheduler", "cache", "session", "parser", "speculation", "images", "revisions")  # files
PATIENCE_S = 60
KEYS = {"name", "file", "find", "replace", "test", "filter", "breaks"}


def rows():
    for area in AREAS:
        with open(Path(__file__).parent / f"{area}.toml", "rb") as file:
            yield from ((area, row) for row in tomllib.load(file)["mutant"])


def program(build, test):
    return Path(build) / "test" / test.replace("_", "/") / f"test_{test}"


# SUITE.CASE of all that a test program has.
def cases(program):
    found, suite = [], ""
    for line in subprocess.run([program, "--gtest_list_tests"], capture_output=True, text=True, check=True).stdout.splitlines():
        name = line.split("#")[0].strip()
        if not line.startswith(" "):
            suite = name
        else:
            found.append(suite + name)
    return found


# Whether GoogleTest would run the case with this filter: patterns, and after a minus those that leave out.
def chosen(filter, case):
    wanted, _, unwanted = filter.partition("-")
    among = lambda patterns: any(fnmatch.fnmatchcase(case, pattern) for pattern in patterns.split(":"))
    return among(wanted or "*") and not among(unwanted)


def check(build, built):
    faults, counts, names, listed = [], dict.fromkeys(AREAS, 0), set(), {}
    for area, row in rows():
        name = row.get("name", "a row without a name")
        counts[area] += 1
        if set(row) != KEYS:
            faults.append(f"{name}: its keys are {sorted(row)}")
            continue
        if name in names:
            faults.append(f"{name}: the name is taken")
        names.add(name)
        found = (ROOT / row["file"]).read_text().count(row["find"])
        if found != 1 or row["find"] == row["replace"]:
            faults.append(f"{name}: its text occurs {found} times in {row['file']}")
        if not (ROOT / "test" / row["test"].replace("_", "/") / "CMakeLists.txt").is_file():
            faults.append(f"{name}: there is no test program {row['test']}")
        if row["test"] not in built:
            continue  # another preset's
        if row["test"] not in listed:
            listed[row["test"]] = cases(program(build, row["test"]))
        if not any(chosen(row["filter"], case) for case in listed[row["test"]]):
            faults.append(f"{name}: {row['test']} has no test case {row['filter']}")
    print("\n".join(faults) if faults else f"{sum(counts.values())} mutants: {counts}")
    return 1 if faults else 0


# Copies what git knows or would add; equal files keep their time, so that only what differs is built anew.
def copy_tree(tree):
    listing = ["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.run(listing, capture_output=True, text=True, check=True).stdout.split("\0"):
        source, target = ROOT / name, tree / name
        if not name or not source.is_file():
            continue
        if target.is_file() and target.read_bytes() == source.read_bytes():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        target.chmod(source.stat().st_mode)


def build_target(tree, test):
    command = ["cmake", "--build", tree / "build/ci", "--target", f"test_{test}"]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


# How the tests ended: nothing when all passed.
def verdict(tree, row):
    command = [program(tree / "build/ci", row["test"]), f"--gtest_filter={row['filter']}", "--gtest_brief=1"]
    environment = {**os.environ, "GTEST_FAIL_FAST": "1", "GTEST_DEATH_TEST_STYLE": "threadsafe"}
    try:
        ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE_S, env=environment, errors="replace")
    except subprocess.TimeoutExpired:
        return "hangs"
    if ended.returncode < 0:
        return f"dies of signal {-ended.returncode}"
    failed = [line.split()[3].rstrip(",") for line in ended.stdout.splitlines() if line.startswith("[  FAILED  ]") and "." in line]
    return f"fails {failed[0]}" if ended.returncode != 0 and failed else "dies" if ended.returncode != 0 else ""


def run(tree, words):
    chosen = [row for area, row in rows() if not words or area in words or any(word in row["name"] for word in words)]
    chosen.sort(key=lambda row: (row["test"], row["file"]))
    tree.mkdir(parents=True, exist_ok=True)
    copy_tree(tree)
    subprocess.run(["cmake", "--preset", "ci", "--log-level=WARNING"], cwd=tree, check=True, stdout=subprocess.DEVNULL)
    for test in sorted({row["test"] for row in chosen}):
        built = build_target(tree, test)
        if built.returncode != 0:
            sys.exit(f"test_{test} does not build:\n{built.stdout[-4000:]}")
    sound = [row["filter"] for row in chosen if verdict(tree, row)]
    if sound:
        sys.exit(f"these fail without any mutant: {sound}")
    survivors = []
    for row in chosen:
        begin = time.monotonic()
        original = (ROOT / row["file"]).read_text()
        place = tree / row["file"]
        place.write_text(original.replace(row["find"], row["replace"]))
        built = build_target(tree, row["test"])
        told = verdict(tree, row) if built.returncode == 0 else ""
        place.write_text(original)
        if built.returncode != 0:
            errors = [line for line in built.stdout.splitlines() if "error:" in line]
            told = f"DOES NOT BUILD: {errors[0] if errors else built.stdout[-300:]}"
        if built.returncode != 0 or not told:
            survivors.append(row["name"])
        print(f"{row['name']:40} {told or 'SURVIVES ' + row['filter']}  ({time.monotonic() - begin:.0f} s)", flush=True)
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} mutants are killed; left: {survivors or 'none'}")
    return 1 if survivors else 0


if __name__ == "__main__":
    if len(sys.argv) > 2 and sys.argv[1] == "check":
        sys.exit(check(sys.argv[2], sys.argv[3:]))
    if len(sys.argv) > 2 and sys.argv[1] == "run":
        sys.exit(run(Path(sys.argv[2]).resolve(), sys.argv[3:]))
    sys.exit(__doc__)
