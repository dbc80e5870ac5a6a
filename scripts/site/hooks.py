# SPDX-License-Identifier: Apache-2.0
"""MkDocs's hooks. Every *.md of the repository is a page at its own path, so links between them hold as they are. A
source file or folder that a page links to becomes a page of its text. Pages of the C API and of the commands are made
from the headers and the programs' help."""
import os, pathlib, re, subprocess, sys

from mkdocs.structure.files import File, InclusionLevel

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/site"))
import c_api, commands, formats  # noqa: E402

LINK = re.compile(r"(\]\(\s*<?)([^)\s>#]+)(#[^)\s>]*)?(>?[^)]*\))")
FENCE = re.compile(r"^(```|~~~).*?^\1", re.M | re.S)
LANGUAGES = {".h": "c", ".hpp": "cpp", ".cpp": "cpp", ".cuh": "cpp", ".cu": "cpp", ".py": "python", ".sh": "bash",
             ".yml": "yaml", ".yaml": "yaml", ".json": "json", ".cmake": "cmake", ".def": "cpp", "": "bash"}
LARGEST = 200_000
IMAGES = (".svg", ".png")
BUILT = {"build", "dist", ".git", "__pycache__"}


def tracked():
    """The repository's files; of a tree that is no checkout, all but what was built."""
    said = subprocess.run(["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True)
    if said.returncode == 0:
        return [line for line in said.stdout.splitlines() if (ROOT / line).is_file()]
    found = (path.relative_to(ROOT) for path in ROOT.rglob("*") if path.is_file())
    return [str(path) for path in found if not BUILT & set(path.parts)]


def page_of(path):
    """The page that shows a file or a folder which is no page itself."""
    return f"source/{path}.md"


def source_page(path, files):
    target, title = ROOT / path, f"---\ntitle: {path}\nsearch:\n  exclude: true\n---\n\n# {path}\n\n"
    if target.is_dir():
        inside = sorted({name[len(path) + 1:].split("/")[0] for name in files if name.startswith(f"{path}/")})
        return title + "\n".join(f"- `{name}`" for name in inside) + "\n"
    text = target.read_text(errors="replace")
    if len(text) > LARGEST:
        return title + f"A file of {len(text)} characters: see it in the repository.\n"
    return title + f"````{LANGUAGES.get(target.suffix, 'text')}\n{text}\n````\n"


class Links:
    """Leads each link to its page in the site, and remembers the sources that need one."""

    def __init__(self, pages, files):
        self.pages, self.files, self.sources = pages, files, set()

    def lead(self, page, text):
        folder = (ROOT / page).parent

        def one(found):
            before, link, anchor, after = found.groups()
            target = pathlib.Path(os.path.normpath(folder / link))
            if re.match(r"[a-z]+:", link) or not target.exists() or not target.is_relative_to(ROOT):
                return found.group()
            path = str(target.relative_to(ROOT))
            if f"{path}/README.md" in self.pages:
                path += "/README.md"
            if path not in self.pages and not path.endswith(IMAGES):
                self.sources.add(path)
                path, anchor = page_of(path), ""
            return f"{before}{os.path.relpath(path, os.path.dirname(page) or '.')}{anchor or ''}{after}"

        kept, end = [], 0
        for fence in FENCE.finditer(text):
            kept += [LINK.sub(one, text[end:fence.start()]), fence.group()]
            end = fence.end()
        return "".join(kept) + LINK.sub(one, text[end:])


def on_files(files, config):
    names, programs = tracked(), pathlib.Path(os.environ["SITE_BIN"])
    pages = {name: (ROOT / name).read_text() for name in names if name.endswith(".md")}
    for made in (c_api.pages(ROOT), commands.pages(programs), formats.pages(ROOT, programs)):
        pages.update({f"docs/reference/{name}": text for name, text in made})
    links = Links(set(pages), names)
    for name, text in pages.items():
        files.append(File.generated(config, name, content=links.lead(name, text)))
    for path in sorted(links.sources):
        files.append(File.generated(config, page_of(path), content=source_page(path, names),
                                    inclusion=InclusionLevel.NOT_IN_NAV))
    for name in names:
        if name.endswith(IMAGES):
            files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    return files
