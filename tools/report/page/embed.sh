#!/usr/bin/env bash
# embed.sh OUT D3 LICENSE NAME FILE... [-- NAME FILE...]...: writes page_files.cc. Each NAME is the files, one after the other;
# kD3 is D3 behind its licence, or empty where D3 was not found.
set -euo pipefail

out=$1 d3=$2 license=$3
shift 3
delimiter=page_file

# define NAME FILE...
define() {
  local name=$1
  shift
  if cat -- "$@" | grep -qF ")$delimiter\""; then echo "embed.sh: $* has )$delimiter\"" >&2; exit 1; fi
  printf 'const std::string_view %s = R"%s(' "$name" "$delimiter"
  cat -- "$@" /dev/null
  printf ')%s";\n' "$delimiter"
}

{
  printf '#include "tools/report/page/page_files.h"\n\nnamespace ott::report {\n\n'
  while (($#)); do
    files=()
    while (($#)) && [[ $1 != -- ]]; do files+=("$1"); shift; done
    (($#)) && shift
    case ${files[0]} in
      kPage) ;;
      *) ! grep -lE '</(script|style)|<!--' "${files[@]:1}" || { echo "embed.sh: would end its element" >&2; exit 1; } ;;
    esac
    define "${files[@]}"
  done
  if [[ -s $d3 ]]; then
    ! grep -lE '</script|<!--' "$d3" || { echo "embed.sh: $d3 would end its element" >&2; exit 1; }
    define kD3 "$license" "$d3"
  else
    define kD3 /dev/null
  fi
  printf '\n}  // namespace ott::report\n'
} > "$out"
