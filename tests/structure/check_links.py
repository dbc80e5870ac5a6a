#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_links.py ROOT [--self-test]: every relative link of every *.md leads to a file, and its anchor to a heading; every
*.md is in the navigation of the site. --self-test: a tree with one link of each wrong kind, each of which must be found."""
import pathlib, re, sys, tempfile, urllib.parse

from check_prose import pages

SITE = "scripts/site/mkdocs.yml"


def prose(text):
    """Without code, in which brackets are no links."""
    text = re.sub(r"^(```|~~~).*?^\1", "", text, flags=re.M | re.S)
    return re.sub(r"`[^`\n]*`", "", text)


def anchors(text):
    """Of the headings, as GitHub makes them."""
    found, seen = set(re.findall(r'<a (?:id|name)="([^"]+)"', text)), {}
    for heading in re.findall(r"^#{1,6} +(.+?)\s*#*$", re.sub(r"^(```|~~~).*?^\1", "", text, flags=re.M | re.S), re.M):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        number = seen[slug] = seen.get(slug, -1) + 1
        found.add(f"{slug}-{number}" if number else slug)
    return found


def broken(root):
    reached = re.findall(r"([\w./-]+\.md)$", (root / SITE).read_text(), re.M)
    for page in pages(root):
        if str(page.relative_to(root)) not in reached:
            yield f"{page.relative_to(root)}: {SITE} does not lead to it"
        text = page.read_text()
        for link in re.findall(r"\]\(\s*<?([^)\s>]+)>?[^)]*\)", prose(text)):
            if re.match(r"[a-z]+:", link):
                continue
            path, _, anchor = link.partition("#")
            target = (page.parent / urllib.parse.unquote(path)).resolve() if path else page
            where = f"{page.relative_to(root)}: {link}"
            if not target.exists():
                yield f"{where}: there is no such file"
            elif not target.is_relative_to(root):
                yield f"{where}: leads out of the tree"
            elif anchor and target.suffix == ".md" and anchor not in anchors(target.read_text()):
                yield f"{where}: there is no such heading"


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder).resolve()
        (root / "a.md").write_text("# One `two`: three\n\n## Twice\n\n## Twice\n\n[1](b.md) [2](b.md#here) [3](#twice-1)\n"
                                   "[4](#one-two-three) [5](#twice-2) [6](none.md) [7](b.md#there) `[8](none)`\n[9](..)\n")
        (root / SITE).parent.mkdir(parents=True)
        (root / SITE).write_text("nav:\n  - One: a.md\n")
        (root / "b.md").write_text("# Here\n\n```\n[10](none)\n# There\n```\n[11](https://example.org/none)\n")
        found = [line.split(": ")[1] for line in broken(root)]
        wanted = ["#twice-2", "none.md", "b.md#there", "..", f"{SITE} does not lead to it"]
        return [] if found == wanted else [f"found {found}, wanted {wanted}"]


errors = self_test() if "--self-test" in sys.argv else list(broken(pathlib.Path(sys.argv[1]).resolve()))
print("\n".join(errors) or "every link leads somewhere")
sys.exit(1 if errors else 0)
