#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_prose.py ROOT [--table | --self-test]: no sentence of a *.md has over 35 words, the mean of each set of documents
is at most 18, and a measured figure stands on pages of figures alone, and no sentence has "who" or "what" as its subject. Code, tables and headings are no prose; an item of
a list is. --table: each set's sentences and mean. --self-test: a tree with each fault, which must be found."""
import os, pathlib, re, sys, tempfile

SKIPPED = {"build", ".git", "node_modules", "dist"}
LOGS = {"CHANGELOG.md"}  # lists of changes, not read from begin to end
FIGURES = ("docs/performance/", "docs/status.md")
LONGEST, MEAN = 35, 18
MEASURED = re.compile(r"\b\d[\d.,]*(?: ?%|\s?(?:µs|us|ns|microseconds?|nanoseconds?|[KMGT]i?B/s|[MGT]bit/s|GFLOPS?|per ?cent)\b"
                      r"| times (?:faster|slower|as (?:fast|slow|long|much))\b|x (?:faster|slower)\b)")


def blocks(text):
    """Number of the first line, and text, of each paragraph and each item of a list."""
    text = re.sub(r"<!--.*?-->", lambda found: "\n" * found.group().count("\n"), text, flags=re.S)
    fence, held, first, listed = None, [], 0, False
    for number, line in enumerate(text.splitlines() + [""], 1):
        mark = re.match(r"\s*(```|~~~)", line)
        if fence or mark:
            fence = None if fence and mark and mark.group(1) == fence else fence or mark.group(1)
            line = ""
        listed = listed and (not line or line.startswith("  "))
        if not held and not listed and line.startswith("    "):
            continue
        ends = not line.strip() or re.match(r"\s*(#{1,6} |\||<|!\[|---|!!!|\?\?\?)", line)
        item = re.match(r"\s*(?:[-*+]|\d+[.)]) +", line)
        if (ends or item) and held:
            yield first, " ".join(held)
            held = []
        listed = listed or bool(item)
        if not ends:
            first = first if held else number
            held.append(line[item.end():] if item else line.strip())


def sentences(block):
    block = re.sub(r"`[^`]*`", "code", re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", block))
    block = re.sub(r"\b(?:e\.g|i\.e|etc|vs|cf)\.", "abbr", block)
    return [one for one in re.split(r"(?<=[.!?])[\")*_]*\s+|\s·\s", block) if re.search(r"\w", one)]


def words(sentence):
    return len(re.findall(r"[^\s–—-]*\w\S*", sentence))


def set_of(path):
    """The documents that are read together: a folder of docs/, or all READMEs below the top."""
    if path.parts[0] == "docs":
        return "/".join(path.parts[:-1])
    return "folders" if len(path.parts) > 1 else path.name


def pages(root):
    """All documents. Folders that other tests make and remove meanwhile are not entered."""
    found = []
    for folder, below, names in os.walk(root):
        below[:] = [name for name in below if name not in SKIPPED]
        found += [pathlib.Path(folder, name) for name in names if name.endswith(".md")]
    return sorted(found)


def measure(root):
    counts, errors = {}, []
    for page in pages(root):
        path = page.relative_to(root)
        if path.name in LOGS:
            continue
        for line, block in blocks(page.read_text()):
            for sentence in sentences(block):
                if re.match(r"[\"(*_]*(?:Whoever|Whatever|Who|What)\b[^?]*$", sentence):
                    errors.append(f"{path}:{line}: name the subject: {sentence[:70]}")
                counts.setdefault(set_of(path), []).append(words(sentence))
                if words(sentence) > LONGEST:
                    errors.append(f"{path}:{line}: {words(sentence)} words: {sentence[:70]}...")
            figure = MEASURED.search(re.sub(r"`[^`]*`", "", block))
            if figure and not str(path).startswith(FIGURES):
                errors.append(f"{path}:{line}: a figure, {figure.group()}: it belongs on a page of docs/performance")
    for name, lengths in sorted(counts.items()):
        if sum(lengths) > MEAN * len(lengths):
            errors.append(f"{name}: a sentence has {sum(lengths) / len(lengths):.1f} words in the mean, at most {MEAN}")
    return counts, errors


def self_test():
    long = "word " * 36
    faults = {
        "README.md": f"# {long}\n\n| {long} |\n\n```\n{long}\n```\n\n{'It is short. ' * 40}\n- It is {long[:-1]}.\n- Next\n  {long}\n\n    more of the item",
        "docs/how-to/a.md": "Ends here. It takes 3.5 µs of `9 us`.\n\n" + ("W" + " w" * 18 + ". ") * 30 + "\n\n    indented code " + long,
        "docs/status.md": "It takes 12 % of 3 GB/s, within 10 ms.", "a/README.md": "It waits 10 ms for 8 KiB. What is it?\n\n**Who waits** is told."}
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder).resolve()
        for name, text in faults.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        found = [re.match(r"[^ ]*? [an\d]\S* \w+", line).group() for line in measure(root)[1]]
    wanted = ["README.md:10: 38 words", "README.md:11: 37 words", "a/README.md:3: name the", "docs/how-to/a.md:1: a figure",
              "docs/how-to: a sentence"]
    return [] if found == wanted else [f"found {found}, wanted {wanted}"]


def main():
    if "--self-test" in sys.argv:
        errors = self_test()
    else:
        counts, errors = measure(pathlib.Path(sys.argv[1]).resolve())
        if "--table" in sys.argv:
            for name, lengths in sorted(counts.items()):
                print(f"{name:20} {len(lengths):5} sentences, mean {sum(lengths) / len(lengths):5.1f}, longest {max(lengths)}")
    print("\n".join(errors) or "the documents' sentences are short")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
