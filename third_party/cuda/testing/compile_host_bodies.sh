#!/usr/bin/env bash
# compile_host_bodies.sh COMPILER OUTPUT HOST_BODY_H SOURCE... -- FLAG...: CUDA sources as a shared library of their
# kernels' host bodies. What no C++ compiler reads is put into C++ after the preprocessor: launches, and the assembler
# that reads a register of the device.
set -euo pipefail

compiler=$1 output=$2 host_body=$3
shift 3
sources=()
while [[ $1 != -- ]]; do
  sources+=("$1")
  shift
done
shift

objects=()
for source in "${sources[@]}"; do
  stem=$output.$(basename "$source")
  "$compiler" -E -x c++ -std=c++17 -include "$host_body" "$@" "$source" |
    sed -zE \
      -e 's/([A-Za-z_][A-Za-z0-9_:]*(<[^<>;]*>)?)\s*<<<[^;]*>>>\(/::ott_host_body::Kernel<\1>::Launch(/g' \
      -e 's/asm volatile\("mov\.u(32|64) %0, %%([a-z0-9]+);" : "=[lr]"\(([^)]*)\)[^;]*\);/\3 = ottCudaRegister_\2();/g' \
      > "$stem.ii"
  "$compiler" -x c++-cpp-output -std=c++17 -O2 -w -fPIC -ffp-contract=off -c "$stem.ii" -o "$stem.o"
  objects+=("$stem.o")
done
# Its symbols of the runtime come from whoever loads it.
"$compiler" -shared -o "$output" "${objects[@]}" -lstdc++
rm -f "$output".*.ii "$output".*.o
