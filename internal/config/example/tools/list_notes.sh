#!/bin/sh
# Prints the files of the notes as JSON.
set -eu

cat >/dev/null # there are no arguments to look at
separator=
printf '{"notes":['
for file in notes/*.json; do
	[ -e "$file" ] || continue
	case "$file" in
	*[!A-Za-z0-9_./-]*) continue ;; # not written by write_note
	esac
	printf '%s"%s"' "$separator" "$file"
	separator=,
done
printf ']}\n'
