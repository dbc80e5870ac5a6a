# SPDX-License-Identifier: Apache-2.0
"""Man pages: one for a command, and one for each of its subcommands."""


def escaped(text):
    """Text as it is: no letter of it is one of roff's."""
    return text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga").replace("^", "\\(ha").replace("~", "\\(ti")


def line(text):
    """A line that roff does not take for a request."""
    return "\\&" + escaped(text) if text[:1] in (".", "'") else escaped(text)


def bold(text):
    return f"\\fB{escaped(text)}\\fR"


def usage(name, command):
    words = [bold(name)]
    if command["commands"]:
        words += ["\\fICOMMAND\\fR"]
    if command["options"]:
        words += ["[\\fIOPTIONS\\fR]"]
    for option in command["options"]:
        if option["positional"]:
            word = f"\\fI{escaped(option['positional'])}\\fR"
            words.append(word if option["required"] else f"[{word}]")
    if command["other_words"]:
        words.append("\\fIWORDS\\fR...")
    return " ".join(words)


def option_lines(option):
    names = ", ".join(bold(name) for name in option["names"])
    if option["positional"]:
        names = ", ".join(filter(None, [f"\\fI{escaped(option['positional'])}\\fR", names]))
    elif option["takes_value"]:
        names += " \\fIVALUE\\fR"
    said = [option["text"]]
    if option["values"] and not all(value in option["text"] for value in option["values"]):
        said.append("It takes " + ", ".join(option["values"]) + ".")
    if option["default"] and option["takes_value"]:
        said.append(f"Default: {option['default']}.")
    return [".TP", names, *(line(text) for text in said)]


def footer_lines(footer):
    """A line that begins with a space stands as it is; the others are paragraphs."""
    lines, verbatim, paragraph = [], False, False
    for text in footer.splitlines():
        own = text.startswith(" ")
        if own != verbatim:
            lines.append(".nf" if own else ".fi")
        if text.strip() == "":
            lines.append(".PP")
        elif own:
            lines.append(line(text))
        else:
            lines += ([] if paragraph else [".PP"]) + [line(text)]
        verbatim, paragraph = own, not own and text.strip() != "" and not text.endswith(":")
    return lines + ([".fi"] if verbatim else [])


def page(name, command, also, version):
    title = name.upper().replace("-", "\\-")
    lines = [f'.TH "{title}" 1 "" "gdrx {version}" "gdrx"', ".SH NAME", f"{escaped(name)} \\- {escaped(command['text'])}",
             ".SH SYNOPSIS", usage(name.replace("gdrx-", "gdrx ", 1), command)]
    if command["commands"]:
        lines.append(".SH COMMANDS")
        for sub in command["commands"]:
            lines += [".TP", f".BR {escaped(name)}\\-{escaped(sub['name'])} (1)", line(sub["text"])]
    if command["options"]:
        lines.append(".SH OPTIONS")
        for option in command["options"]:
            lines += option_lines(option)
    if command["footer"].strip():
        lines += [".SH NOTES", *footer_lines(command["footer"])]
    lines += [".SH ENVIRONMENT", line("GDRX_* variables: `gdrx config` prints each with its value and where that came from."),
              ".SH SEE ALSO", ",\n".join(f".BR {escaped(other)} (1)" for other in also if other != name)]
    return "\n".join(lines).replace(" (1),\n", " (1),\n") + "\n"


def pages(command, others, version):
    """Names and pages of a command and its subcommands; `others`: commands that the pages name."""
    subs = [f"{command['name']}-{sub['name']}" for sub in command["commands"]]
    yield command["name"], page(command["name"], command, sorted({*others, "gdrx"}), version)
    for name, sub in zip(subs, command["commands"]):
        yield name, page(name, sub, [command["name"], *subs], version)
