# SPDX-License-Identifier: Apache-2.0
"""Completion for zsh, by its _arguments."""


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def escaped(text):
    for letter in "\\[]:":
        text = text.replace(letter, "\\" + letter)
    return text


def spec(option):
    """One line of _arguments for each name of an option."""
    text = escaped(option["text"].replace("\n", " "))
    values = "(" + " ".join(option["values"]) + ")" if option["values"] else "_files"
    if not option["names"]:
        return [quoted(f"::{escaped(option['positional'])}:{values}")]
    value = f":value:{values}" if option["takes_value"] else ""
    alike = "(" + " ".join(option["names"]) + ")" if len(option["names"]) > 1 else ""
    equals = {name: "=" if option["takes_value"] and name.startswith("--") else "" for name in option["names"]}
    return [quoted(f"{alike}{name}{equals[name]}[{text}]{value}") for name in option["names"]]


def arguments(command, indent):
    specs = [one for option in command["options"] for one in spec(option)]
    if command["other_words"]:
        return f"{indent}_normal"
    if not any(option["positional"] for option in command["options"]):
        specs.append("'*:file:_files'")
    return f"{indent}_arguments \\\n" + " \\\n".join(f"{indent}  {one}" for one in specs)


def completion(command):
    lines = [f"#compdef {command['name']}", f"# Made by scripts/manuals: completion of {command['name']} for zsh."]
    if not command["commands"]:
        return "\n".join([*lines, arguments(command, ""), ""])
    lines += ["local -a commands", "if ((CURRENT == 2)); then", "  if [[ $words[2] == -* ]]; then", arguments({**command, "commands": []}, "    "),
              "    return", "  fi", "  commands=("]
    lines += [f"    {quoted(sub['name'] + ':' + sub['text'])}" for sub in command["commands"]]
    lines += ["  )", "  _describe command commands", "  return", "fi", "shift words", "((CURRENT--))", "case $words[1] in"]
    for sub in command["commands"]:
        lines += [f"  {sub['name']})", arguments(sub, "    "), "    ;;"]
    return "\n".join([*lines, "  *) _files ;;", "esac", ""])
