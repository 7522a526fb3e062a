#!/usr/bin/env bash
# Compare the runs that measure.sh left in OUT: `attnbench gate --step judge`. Writes comparison and
# report as Markdown for the job's summary, and the HTML page; exits with the gate's exit code.
#
# GATE               margins, as for compare --gate
# FAIL_ON_UNDECIDED  true: exit 3 also if a case is undecided
# BASELINE           the run to compare with if no BASE was measured
# GITHUB_STEP_SUMMARY GITHUB_OUTPUT  a job's files; without them the results go to the terminal
# The others as in measure.sh.
#
# Exit codes: 0 passed, 1 a case failed and nothing was compared, 2 bad input, 3 regression,
# 4 other devices, 6 nothing decided.
set -euo pipefail
: "${OUT:?}" "${HEAD:=.}" "${PYTHON:=python}" "${CODE:=}" "${GATE:=latency: 5%, peak_bytes: 0%}"
: "${FAIL_ON_UNDECIDED:=false}" "${BASELINE:=}"
flags=(${BASELINE:+"--baseline=$BASELINE"})
if [ "$FAIL_ON_UNDECIDED" = true ]; then flags+=(--fail-on-undecided); fi
if [ -n "$CODE" ]; then PYTHONPATH="$(CDPATH='' cd -- "$HEAD" && pwd)/$CODE${PYTHONPATH:+:$PYTHONPATH}" && export PYTHONPATH; fi
# -P: modules of the current folder, which is a checkout, do not replace those of attnbench.
exec "$PYTHON" -P -m attnbench gate --step judge "--out=$OUT" "--gate=$GATE" "${flags[@]}" -- "" "$HEAD"
