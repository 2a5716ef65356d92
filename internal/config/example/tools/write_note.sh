#!/bin/sh
# Writes the arguments, byte for byte, to notes/CALL_ID.json and prints where.
set -eu

case "${PLACET_CALL_ID:?is not set}" in
*[!A-Za-z0-9_-]*)
	echo "the call id is not fit for a file name" >&2
	exit 1
	;;
esac

mkdir -p notes
file="notes/$PLACET_CALL_ID.json"
# Renaming makes the note appear whole or not at all.
cat >"$file.part"
mv "$file.part" "$file"
printf '{"file":"%s"}\n' "$file"
