#!/usr/bin/env bash
# torchrun.sh RANKS COMMAND...: starts it on that many ranks of this machine by PyTorch's torchrun, which listens at
# MASTER_PORT itself. Shows what the ranks wrote.
set -uo pipefail

ranks=$1
shift
# Two ports in a row that nobody listens at.
while port=$((20000 + RANDOM % 12000)); do
  (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null || (: <"/dev/tcp/127.0.0.1/$((port + 1))") 2>/dev/null || break
done
# Without --redirects and --tee, torchrun of PyTorch 1.13 fails under Python 3.11.
python3 -m torch.distributed.run --nproc_per_node "$ranks" --master_port "$port" --redirects 1 --tee 1 \
  --log_dir "$TEST_TMPDIR" --no_python "$@"
