# Functions that stories.sh of the examples share: `out` is where each keeps its logs.

tell() { printf '\n=== %s\n' "$*"; }
fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }

# expect LOG PATTERN: the story came out.
expect() {
  grep -qE -- "$2" "$out/$1" || fail "$out/$1 does not say '$2'"
}

# run EXIT_CODE LOG COMMAND...: output shown and kept, exit code checked.
run() {
  local expected=$1 log=$out/$2 code=0
  shift 2
  "$@" 2>&1 | tee "$log" || code=${PIPESTATUS[0]}
  [[ $code == "$expected" ]] || fail "exit code $code instead of $expected: $*"
}
