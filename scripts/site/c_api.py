# SPDX-License-Identifier: Apache-2.0
"""The C API's pages, from the headers: each comment is the text of the declaration under it."""
import re

import tree_sitter, tree_sitter_c

HEADERS = (("gdrx.h", "Communicators, calls, memory"), ("gdrx_calls.h", "Options of a call"),
           ("gdrx_look.h", "Looking at a communicator"), ("gdrx_types.h", "Types, operators, results"),
           ("gdrx_mpi.h", "Communicators of MPI"), ("mpi_enqueue.h", "Calls of MPI in a CUDA stream"))
NAME = r"(?:gdrx|MPIX_)\w+"
KINDS = {"declaration", "type_definition", "preproc_def"}


def nodes(source):
    """Comments and declarations in their order, also of those inside `extern "C"` and `#if`."""
    def walk(node):
        for child in node.named_children:
            if child.type in KINDS or child.type == "comment":
                yield child
            elif child.type not in ("preproc_include", "preproc_if", "preproc_else"):
                yield from walk(child)
    return walk(tree_sitter.Parser(tree_sitter.Language(tree_sitter_c.language())).parse(source).root_node)


def text_of(comment):
    """A comment's words, its paragraphs and lists kept, as Markdown."""
    lines = [re.sub(r"^\s*\*? ?", "", line, count=1) for line in comment.strip().removeprefix("/*").removesuffix("*/").splitlines()]
    text = "\n".join(lines).strip()
    text = re.sub(r"SPDX-License-Identifier: \S+\s*", "", text)
    parts = []
    for paragraph in re.split(r"\n\s*\n", text):
        if re.search(r"^ {2,}\S.*\S {2,}\S", paragraph, re.M) and not re.search(r"^ *- ", paragraph, re.M):  # a table: a line a row
            paragraph = re.sub(r"(?:^ {2,}.*\S\n?)+", lambda rows: f"\n```text\n{rows.group().rstrip()}\n```\n\n", paragraph, flags=re.M)
        else:
            paragraph = re.sub(r"\n {2,}(?!-)", "\n    ", paragraph)
            paragraph = re.sub(r"^( *- .*(?:\n    .*)*)\n(?=[^\s-])", r"\1\n\n", paragraph, flags=re.M)
            paragraph = re.sub(r"^ *- ", "- ", paragraph, flags=re.M)
            paragraph = re.sub(r"(\A|\n)(?!- |    )([^\n]*)\n(?=- )", r"\1\2\n\n", paragraph)
            paragraph = re.sub(r"(?<!`)\b(gdrx[A-Z]\w*|GDRX_\w+|[a-z]+_[a-z_]+|\w+\(\))(?:\(\))?(?!`)", r"`\g<0>`", paragraph)
            paragraph = re.sub(r"``+", "`", paragraph)
            paragraph = re.sub(r"(?<![\w*`])\*(?=\w)", r"\\*", paragraph)
        parts.append(paragraph)
    return "\n\n".join(parts)


def names_of(code):
    """What a declaration declares."""
    code = re.sub(r"/\*.*?\*/", "", code, flags=re.S)
    if code.startswith("#define"):
        return [code.split()[1].split("(")[0]]
    if code.startswith("typedef"):
        pointer = re.search(r"\(\*(\w+)\)", code)
        return [pointer.group(1) if pointer else re.search(r"(\w+)\s*;\s*$", code).group(1)]
    return re.findall(rf"\b({NAME})\s*\(", code)[:1]


def entries(source):
    """(comment, [declarations]) in order: a comment holds for what stands under it without an empty line between."""
    held, codes, end = "", [], -1
    for node in nodes(source):
        code = source[node.start_byte:node.end_byte].decode().rstrip()
        line = node.start_point.row
        if node.type == "comment":
            if line == end and codes:  # behind a declaration, in its line
                codes[-1] += "  " + code
                continue
            if held or codes:
                yield held, codes
            held, codes = code, []
        elif not re.match(r"#define \w+_H\b|#define GDRX_API\b", code):
            if codes and line > end + 1:
                yield held, codes
                held, codes = "", []
            codes.append(code)
        end = node.start_point.row + code.count("\n")
    if held or codes:
        yield held, codes


def page(header, title, source):
    lines = [f"# {header}: {title[0].lower() + title[1:]}", "",
             f"From [include/gdrx/{header}](../../include/gdrx/{header}), which has the same text.", ""]
    for number, (comment, codes) in enumerate(entries(source)):
        names = sum((names_of(code) for code in codes), [])
        if names:
            lines += ["## " + ", ".join(f"`{name}`" for name in names), "", "```c", *codes, "```", ""]
        elif number:
            lines += ["---", ""]
        lines += [text_of(comment), ""] if comment else []
    return "\n".join(lines)


def pages(root):
    """Name and text of each page, and of their index."""
    index = ["# C API", "", "`#include <gdrx/gdrx.h>` includes all of these but `gdrx_mpi.h` and `mpi_enqueue.h`. "
             "[Use gdrx in a program](../how-to/embed.md) begins with an example.", ""]
    for header, title in HEADERS:
        source = (root / "include/gdrx" / header).read_bytes().replace(b"GDRX_API ", b"")  # a macro that is no C
        name = f"api-{header.removesuffix('.h').replace('_', '-')}.md"
        yield name, page(header, title, source)
        index += [f"**[{title}]({name})**, `{header}`", ""]
        for _, codes in entries(source):
            index += [f"- [`{one}`]({name}#{anchor(codes)})" for code in codes for one in names_of(code)
                      if re.match(NAME, one) and "(" in code and not code.startswith("#")]
        index.append("")
    yield "c-api.md", "\n".join(index)


def anchor(codes):
    """Of the heading of an entry."""
    return "-".join(name.lower() for code in codes for name in names_of(code))
