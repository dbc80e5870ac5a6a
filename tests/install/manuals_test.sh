#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# manuals_test.sh BUILD: the man pages, completion and documents that are installed. groff warns of no page, each
# command and each option has its page and line, and bash takes each file. Nothing is left in BUILD/install, which the
# next one who installs could not write. Completion stays in BUILD/completion. 77, a skip, without man.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$1" --prefix "$work" > "$work/install.log"
wrong() { echo "FAILED: $*"; exit 1; }
[ -z "$(find "$1/install" -newer "$work" -type f -not -path "$1/install/debian/*")" ] ||
  wrong "left in $1/install: $(find "$1/install" -newer "$work" -type f)"
rm -rf "$1/completion"
mkdir "$1/completion"
cp -r "$work/share/bash-completion/completions" "$1/completion/bash"
cp -r "$work/share/zsh/vendor-completions" "$1/completion/zsh"
for page in README.md docs/README.md; do [ -s "$work/share/doc/gdrx/$page" ] || wrong "no $page"; done
for file in "$work"/share/bash-completion/completions/*; do bash -n "$file" || wrong "$file"; done
for command in gdrx allreduce_test alltoallv_test; do
  [ -s "$work/share/bash-completion/completions/$command" ] || wrong "no completion of $command for bash"
  [ -s "$work/share/zsh/vendor-completions/_$command" ] || wrong "no completion of $command for zsh"
done
pages=0
command -v man > /dev/null || { echo "man is not installed"; exit 77; }
for page in "$work"/share/man/man1/*.1.gz; do
  said=$(LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=80 man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 > /dev/null)
  [ -z "$said" ] || wrong "$page: $said"
  pages=$((pages + 1))
done
[ "$pages" -ge 22 ] || wrong "$pages pages"
read_page() { LC_ALL=C.UTF-8 MANWIDTH=100 man -l "$work/share/man/man1/$1.1.gz" | col -bx > "$work/page"; }
# has WORD: the page has it, as a word of its own.
has() { grep -qE -- "(^|[^A-Za-z0-9_-])$1([^A-Za-z0-9_-]|$)" "$work/page" || wrong "the page of $command has no $1"; }
options() { grep -oE "^  (-.,)?--[A-Za-z0-9_-]+" | grep -oE -- "--[A-Za-z0-9_-]+"; }
command=gdrx
read_page gdrx
# Every command, and every option that its --help has, is in a page.
for command in $("$1/bin/gdrx" --help | sed -n '/^Subcommands:/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
  read_page gdrx
  has "gdrx-$command\\(1\\)"
  read_page "gdrx-$command"
  read -ra found <<< "$("$1/bin/gdrx" "$command" --help | options | paste -sd ' ')"
  [ ${#found[@]} -gt 0 ] || wrong "gdrx $command --help has no option that is seen"
  for option in "${found[@]}"; do has "$option"; done
done
command=allreduce_test
read_page allreduce_test
for option in --minbytes $("$1/bin/allreduce_test" --help | options); do has "$option"; done
