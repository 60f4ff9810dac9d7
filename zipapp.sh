#!/bin/sh
# Builds mm.pyz, the whole of mm in one executable file.
#
#     sh zipapp.sh [OUTPUT]        OUTPUT is mm.pyz in the current folder unless given
#     sh zipapp.sh --pythons       prints the interpreters it compiles with, oldest first
#
# archive/build.py does the work and says how; this script finds a Python for it.
set -eu

fail() {
    printf 'zipapp.sh: %s\n' "$1" >&2
    exit 1
}

case ${1-} in
    --pythons) ;;
    -*) fail "there is no option $1; usage: sh zipapp.sh [OUTPUT]" ;;
esac
[ $# -le 1 ] || fail "more than one OUTPUT; usage: sh zipapp.sh [OUTPUT]"

python=${MM_PYTHONS:-python3}
python=${python%%:*}
command -v "$python" >/dev/null 2>&1 || fail "there is no $python: install Python 3.9 or later"
version=$("$python" -c 'import sys; print("%d %d" % sys.version_info[:2])' 2>/dev/null) ||
    fail "$python does not run: install Python 3.9 or later"
[ "${version% *}" -gt 3 ] || { [ "${version% *}" -eq 3 ] && [ "${version#* }" -ge 9 ]; } ||
    fail "$python is Python ${version% *}.${version#* }: install Python 3.9 or later"

project=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
exec "$python" -I -S -B "$project/archive/build.py" "$project" "${1:-mm.pyz}"
