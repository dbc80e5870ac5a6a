# SPDX-License-Identifier: Apache-2.0
"""Completion for bash. It needs nothing of the package bash-completion."""
import shlex

HEAD = """# Made by scripts/manuals: completion of {name} for bash.
{function}() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}} command="" words=""
  COMPREPLY=()
  # bash divides --option=value at the sign.
  if [[ $word == "=" ]]; then
    word=""
  elif [[ $before == "=" ]]; then
    before=${{COMP_WORDS[COMP_CWORD - 2]}}
  fi
"""


def patterns(names):
    return "|".join(shlex.quote(name) for name in names)


def choices(command):
    """Cases of a command: the values of an option before the cursor, and the options."""
    lines = ["      case $before in"]
    for option in command["options"]:
        if not option["takes_value"] or not option["names"]:
            continue
        if option["values"]:
            lines.append(f"        {patterns(option['names'])}) words={shlex.quote(' '.join(option['values']))} ;;")
        else:
            lines.append(f"        {patterns(option['names'])}) return ;;")
    flags = " ".join(name for option in command["options"] for name in option["names"])
    lines += [f"        *) [[ $word == -* ]] && words={shlex.quote(flags)} ;;", "      esac"]
    return lines


def completion(command):
    function = "_" + command["name"].replace("-", "_")
    lines = [HEAD.format(name=command["name"], function=function).rstrip("\n")]
    subs = command["commands"]
    if subs:
        flags = " ".join(name for option in command["options"] for name in option["names"])
        lines += ["  ((COMP_CWORD > 1)) && command=${COMP_WORDS[1]}", "  case $command in", '    "")',
                  f"      words={shlex.quote(' '.join(sub['name'] for sub in subs))}",
                  f"      [[ $word == -* ]] && words={shlex.quote(flags)}", "      ;;"]
        for sub in subs:
            lines += [f"    {shlex.quote(sub['name'])})", *choices(sub), "      ;;"]
        lines.append("  esac")
    else:
        lines += [text[4:] if text.startswith("      ") else text for text in choices(command)]
    lines += ['  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")', "}",
              # Where there is nothing of ours: files, as without this.
              f"complete -o bashdefault -o default -F {function} {command['name']}", ""]
    return "\n".join(lines)
