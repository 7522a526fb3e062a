#!/usr/bin/env bash
# Measures SCENARIO with the checkout in HEAD and, where BASE names another one, with both in turns: base, head, head, base, base, head, ...
# The two of a turn run right after each other, so what the machine does more slowly touches both alike.
#
# SCENARIO  a file, or the name of a shipped scenario        OUT        results: $OUT/head, $OUT/base
# HEAD BASE folders; BASE may be empty                       TURNS      how often; with one nothing can be told
# PYTHON    interpreter, BASE_PYTHON that of BASE            CODE       folder below each checkout for PYTHONPATH, or empty
# PLAN DEVICE as the flags of attnbench run, or empty        BACKENDS   folder below each checkout with backends of yours, or empty
# THREADS   of torch on a CPU, or empty: on a busy machine OpenMP's waiting threads spin, and calls with one thread are far steadier
# CALIBRATE true: attnbench selfcheck first, for margins by noise
set -euo pipefail
: "${SCENARIO:?}" "${OUT:?}" "${HEAD:=.}" "${BASE:=}" "${TURNS:=5}" "${PYTHON:=python}" "${CODE:=}" "${PLAN:=}" "${DEVICE:=}" "${BACKENDS:=}"
: "${BASE_PYTHON:=$PYTHON}" "${CALIBRATE:=false}" "${THREADS:=}"
if [ -n "$THREADS" ]; then export OMP_NUM_THREADS="$THREADS"; fi
flags=(--quiet ${PLAN:+--plan "$PLAN"} ${DEVICE:+--device "$DEVICE"})

within() { # within CHECKOUT COMMAND...: with its code and its backends
    local checkout
    checkout=$(cd "$1" && pwd)
    shift
    env ${CODE:+PYTHONPATH="$checkout/$CODE${PYTHONPATH:+:$PYTHONPATH}"} ${BACKENDS:+ATTNBENCH_BACKENDS="$checkout/$BACKENDS"} "$@"
}

measure() { # measure SIDE CHECKOUT INTERPRETER TURN
    local code=0
    within "$2" "$3" -m attnbench run "$SCENARIO" "${flags[@]}" --seed "$4" --out "$OUT/$1" || code=$?
    # 1: a case failed. Its row says so, and whoever compares looks at it.
    if [ "$code" -gt 1 ]; then
        echo "$1 could not be measured in $2 (exit code $code)" >&2
        exit "$code"
    fi
    echo "$code" >"$OUT/$1.code"
}

if [ -e "$OUT/head" ] || [ -e "$OUT/base" ]; then
    echo "$OUT: has runs already, and every run here is a turn; remove it, or name another folder" >&2
    exit 2
fi
if [ "$CALIBRATE" = true ]; then
    # 1: equals were told apart, so the machine is restless; what was found counts all the same.
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
