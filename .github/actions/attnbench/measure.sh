#!/usr/bin/env bash
# Measure SCENARIO with the checkout in HEAD. If BASE names another checkout, measure both
# interleaved: base, head, head, base, base, head, ... A turn is one run of each. Its two runs
# follow each other directly, so slow drift of the machine affects both equally.
#
# SCENARIO     a file, or the name of a shipped scenario
# OUT          folder for the results: $OUT/head, $OUT/base
# HEAD BASE    folders; BASE may be empty
# TURNS        how often each is measured; one turn decides nothing
# PYTHON       interpreter; BASE_PYTHON: that of BASE
# CODE         folder below each checkout for PYTHONPATH, or empty
# BACKENDS     folder below each checkout with your own backends, or empty
# PLAN DEVICE  as the options of attnbench run, or empty
# THREADS      of torch on a CPU, or empty. One thread gives far less noise on a busy machine,
#              because OpenMP's waiting threads spin.
# CALIBRATE    true: run attnbench selfcheck first, for margins by noise
set -euo pipefail
: "${SCENARIO:?}" "${OUT:?}" "${HEAD:=.}" "${BASE:=}" "${TURNS:=5}" "${PYTHON:=python}"
: "${CODE:=}" "${PLAN:=}" "${DEVICE:=}" "${BACKENDS:=}"
: "${BASE_PYTHON:=$PYTHON}" "${CALIBRATE:=false}" "${THREADS:=}"
if [ -n "$THREADS" ]; then export OMP_NUM_THREADS="$THREADS"; fi
flags=(--quiet ${PLAN:+--plan "$PLAN"} ${DEVICE:+--device "$DEVICE"})

within() { # within CHECKOUT COMMAND...: run it with the checkout's code and backends
    local checkout
    checkout=$(cd "$1" && pwd)
    shift
    env ${CODE:+PYTHONPATH="$checkout/$CODE${PYTHONPATH:+:$PYTHONPATH}"} \
        ${BACKENDS:+ATTNBENCH_BACKENDS="$checkout/$BACKENDS"} "$@"
}

measure() { # measure SIDE CHECKOUT INTERPRETER TURN
    local code=0
    within "$2" "$3" -m attnbench run "$SCENARIO" "${flags[@]}" --seed "$4" --out "$OUT/$1" || code=$?
    # 1: a case failed. Its row says so, and the comparison reads it.
    if [ "$code" -gt 1 ]; then
        echo "$2: $1 could not be measured; see the message above (exit code $code)" >&2
        exit "$code"
    fi
    echo "$code" >"$OUT/$1.code"
}

if [ -e "$OUT/head" ] || [ -e "$OUT/base" ]; then
    echo "$OUT: has runs already, which would count as turns; remove it, or change OUT" >&2
    exit 2
fi
if [ "$CALIBRATE" = true ]; then
    # 1: equal backends were told apart, so the machine is noisy; the noise floor still counts.
    within "$HEAD" "$PYTHON" -m attnbench selfcheck ${DEVICE:+--device "$DEVICE"} --quiet --out "$OUT/head" || [ $? -eq 1 ]
fi
if [ -z "$BASE" ]; then
    measure head "$HEAD" "$PYTHON" 0
    exit
fi
for ((turn = 0; turn < TURNS; turn++)); do
    if ((turn % 2)); then
        measure head "$HEAD" "$PYTHON" "$turn"
        measure base "$BASE" "$BASE_PYTHON" "$turn"
    else
        measure base "$BASE" "$BASE_PYTHON" "$turn"
        measure head "$HEAD" "$PYTHON" "$turn"
    fi
done
