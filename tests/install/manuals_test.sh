#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# manuals_test.sh BUILD: the man pages, completion and documents that are installed. groff warns of no page, each
# command and each option has its page and line, and bash takes each file. 77, a skip, without man.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$1" --prefix "$work" > "$work/install.log"
wrong() { echo "FAILED: $*"; exit 1; }
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
has() { grep -q -- "$1" "$work/page" || wrong "the page has no $1"; }
read_page gdrx
has "gdrx-topo(1)"
# Every option that --help has is in the page.
for command in topo doctor plan perf tune; do
  read_page gdrx-$command
  for option in $("$1/bin/gdrx" $command --help | grep -oE "^  (-.,)?--[a-z_-]+" | grep -oE -- "--[a-z_-]+"); do has "$option"; done
done
read_page allreduce_test
has "--minbytes"
