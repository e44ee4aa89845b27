#!/usr/bin/env bash
# torch_command_test.sh TORCHRUN PROGRAM OTT: `python -m optim_test_tools PROGRAM` of a program of which no line was changed, alone
# and by torchrun, learns what the program does, and leaves a run directory.
set -euo pipefail
torchrun=$PWD/$1 program=$PWD/$2 ott=$PWD/$3
cd "$TEST_TMPDIR"
die() { echo "torch_command_test: $*"; tail -n 40 ./*.log; exit 1; }
learned() { grep -ao 'learned.*' "$1" | sort; }

# ranks LOG COMMAND...: runs it into LOG. Gloo's threads abort now and then as the interpreter is torn down, with and without
# observation (pytorch/pytorch, pull request 179291); what aborted so is run again, up to twice.
ranks() {
  local log=$1
  shift
  for _ in 1 2 3; do
    "$@" > "$log" 2>&1 && return
    grep -q 'terminate called without an active exception' "$log" || return 1
  done
  return 1
}

python3 -P "$program" > plain.log 2>&1 || die "the program failed"
python3 -P -m optim_test_tools "$program" > observed.log 2>&1 || die "the program failed under observation"
[[ $(learned plain.log) == "$(learned observed.log)" ]] || die "observation changed what is learned"
grep -q 'forward' observed.log && [[ -s ott_runs/torch_program_for_test/cluster_stats.json ]] || die "no statistics"

ranks plain2.log "$torchrun" 2 python3 -P "$program" || die "the program failed by torchrun"
ranks observed2.log "$torchrun" 2 env OTT_RUN_DIR=run2 python3 -P -m optim_test_tools "$program" ||
  die "the program failed by torchrun under observation"
[[ $(learned plain2.log | wc -l) == 2 && $(learned plain2.log) == "$(learned observed2.log)" ]] ||
  die "observation changed what two ranks learn"
[[ $(grep -c '2 of 2 ranks, ' observed2.log) == 1 && -s run2/rank_00001/flight ]] || die "not one report of two ranks"
grep -q 'cross-check of replicas: 1 check, all equal bit for bit' observed2.log || die "replicas were not checked"

for method in spawn fork; do
  ranks spawned.log python3 -P "$program" "$method" || die "the program failed by torch.multiprocessing ($method)"
  ranks spawned_observed.log env OTT_RUN_DIR="run_$method" python3 -P -m optim_test_tools "$program" "$method" ||
    die "the program failed by torch.multiprocessing ($method) under observation"
  [[ $(learned spawned.log | wc -l) == 2 && $(learned spawned.log) == "$(learned spawned_observed.log)" ]] ||
    die "observation changed what two ranks learn that torch.multiprocessing started ($method)"
  grep -q '2 of 2 ranks, ' spawned_observed.log && [[ -s run_$method/rank_00001/flight ]] ||
    die "not one report of two ranks that torch.multiprocessing started ($method)"
  grep -q 'cross-check of replicas: 1 check, all equal bit for bit' spawned_observed.log ||
    die "replicas were not checked that torch.multiprocessing started ($method)"
  ! grep 'nothing was observed' spawned_observed.log || die "the process that starts ranks ($method) was said to be none"
done

# Training that is not seen is said to be so, and nobody waits for processes that do not train.
python3 -P -m optim_test_tools "$program" process > process.log 2>&1 || die "the program failed with a Process"
[[ $(learned plain.log) == "$(learned process.log)" ]] || die "observation changed what a Process learns"
[[ $(grep -c 'ott: nothing was observed: no model ran with gradients in this process' process.log) == 1 ]] || die "a Process was observed, or it was not said"
ranks rpc.log "$torchrun" 2 timeout 120 python3 -P -m optim_test_tools "$program" rpc || die "the program failed by torch.distributed.rpc"
[[ $(learned rpc.log) == "$(learned plain.log) 2.0" ]] || die "observation changed what is learned by torch.distributed.rpc"
grep -q 'no longer observed: Error: processes that call each other by torch.distributed.rpc' rpc.log || die "rpc was observed, or it was not said"

# The run lies where the program was started, as its configuration does, and all its ranks are in it.
echo 'stopwatch {}' > config.textproto
ranks moved.log "$torchrun" 2 env OTT_RUN_DIR=run5 python3 -P -m optim_test_tools --config config.textproto "$program" chdir ||
  die "a program that changes its directory failed"
[[ $(learned plain2.log) == "$(learned moved.log)" ]] || die "observation changed what is learned in another directory"
[[ -s run5/rank_00000/stopwatch.pb && -s run5/rank_00001/stopwatch.pb ]] || die "ranks in other directories left nothing"
grep -q 'ott report run5`' moved.log || die "the run is told to lie elsewhere"

# Traces that the program writes by torch.profiler are the run's.
ranks profiled.log "$torchrun" 2 env OTT_RUN_DIR=run4 python3 -P -m optim_test_tools "$program" profile ||
  die "the program failed under torch.profiler and observation"
[[ $(learned plain2.log) == "$(learned profiled.log)" ]] || die "observation changed what is learned under torch.profiler"
rm trace0.json # the run has it still
"$ott" trace run4 -o joined.json --split --collectives 3 > trace.log 2>&1 || true # so few iterations tell of nobody
grep -q 'joined.json: .* events of 2 traces' trace.log && grep -q '^all .* %' trace.log && grep -q '^all_reduce' trace.log ||
  die "the run's trace has no ranks, times or collectives: $(< trace.log)"
"$ott" prof run4 --ranks 1 > prof.log 2>&1 && grep -q 'run4/rank_00001/torch.rank_00001.json' prof.log &&
  grep -q '^op fprop linear ' prof.log || die "no operators of the run: $(< prof.log)"
"$ott" report run4 > report.log 2>&1 || true # so few iterations tell of nobody
grep -q 'Where the time goes (traces of torch.profiler)' report.log ||
  die "no traces in the report: $(< report.log)"

# Other ways of starting: a folder with __main__.py, and standard input.
mkdir folder
echo 'from torch_program_for_test import train; print(train(False))' > folder/__main__.py
cp "$program" folder/
for way in folder/ -; do
  name=${way%/}
  python3 -m optim_test_tools "$way" < <(echo 'import sys; sys.path.insert(0, "folder")' && cat folder/__main__.py) \
    > started.log 2>&1 || die "the program failed as $way"
  [[ $(learned plain.log) == "$(learned started.log)" && -s ott_runs/${name/-/stdin}/rank_00000/stopwatch.pb ]] || die "observation changed what $way learns"
done

! python3 -P -m optim_test_tools "$program" fail > failed.log 2>&1 || die "a failure was lost"
grep -q "KeyError: 'as planned'" failed.log || die "the program's exception was lost"

# A rank that exits with an error waits for nobody, is the one that left first, and keeps what it saw of the rules.
! ranks exited.log env OTT_RUN_DIR=run7 timeout 120 "$torchrun" 2 python3 -P -m optim_test_tools "$program" exit || die "an exit was lost"
"$ott" hang run7 > hang.log || true
grep -Eq '^(not hanging: ranks 0, 1 have left .* rank 1 first|rank 1 .* left training without ending it)' hang.log && [[ -s run7/rank_00001/sound.json ]] ||
  die "an exit is told otherwise: $(< hang.log)"

# Ctrl-C loses no times, and no rank is said to have left the others.
! env OTT_RUN_DIR=run6 python3 -P -m optim_test_tools "$program" interrupt > interrupted.log 2>&1 || die "an interrupt was lost"
"$ott" report run6 > report.log 2>&1 || true # one rank tells of nobody
grep -q 'not hanging: Ctrl-C ended the job at' report.log && grep -q '1 of 1 ranks, [1-9]. measured iterations' report.log ||
  die "an interrupted run tells nothing: $(< report.log)"
