#!/usr/bin/env bash
# Measure SCENARIO with the checkouts in HEAD and, if given, BASE: `attnbench gate --step measure`.
#
# SCENARIO     a file, or the name of a shipped scenario
# OUT          folder for the results: $OUT/head, $OUT/base
# HEAD BASE    folders; BASE may be empty
# TURNS        how often each is measured; one turn decides nothing
# PYTHON       interpreter; BASE_PYTHON: that of BASE
# CODE         folder below each checkout for PYTHONPATH, or empty
# BACKENDS     folder below each checkout with your own backends, or empty
# ALLOW_IMPORT true: workers may import the modules that the scenario names
# PLAN DEVICE  as the options of attnbench run, or empty
# THREADS      of torch on a CPU, or empty. One thread gives far less noise on a busy machine,
#              because OpenMP's waiting threads spin.
# CALIBRATE    true: run attnbench doctor --deep first, for margins by noise
#
# Values go to attnbench as they are: nothing here evaluates them, as [[ -v, (( )) and eval would.
set -euo pipefail
: "${SCENARIO:?}" "${OUT:?}" "${HEAD:=.}" "${BASE:=}" "${TURNS:=5}" "${PYTHON:=python}"
: "${CODE:=}" "${PLAN:=}" "${DEVICE:=}" "${BACKENDS:=}"
: "${BASE_PYTHON:=$PYTHON}" "${CALIBRATE:=false}" "${THREADS:=}" "${ALLOW_IMPORT:=false}"
flags=(${CODE:+"--code=$CODE"} ${BACKENDS:+"--backend-dir=$BACKENDS"} ${PLAN:+"--plan=$PLAN"}
    ${DEVICE:+"--device=$DEVICE"} ${THREADS:+"--threads=$THREADS"})
if [ "$ALLOW_IMPORT" = true ]; then flags+=(--allow-import); fi
if [ -n "$CODE" ]; then PYTHONPATH="$(CDPATH='' cd -- "$HEAD" && pwd)/$CODE${PYTHONPATH:+:$PYTHONPATH}" && export PYTHONPATH; fi
# Exit code 1: a check is off, or equals were told apart; that is noise too.
if [ "$CALIBRATE" = true ]; then
    OMP_NUM_THREADS="${THREADS:-${OMP_NUM_THREADS:-$(nproc)}}" "$PYTHON" -P -m attnbench doctor --deep \
        "--runs=$OUT" ${DEVICE:+"--device=$DEVICE"} >&2 || [ $? -eq 1 ]
fi
# -P: modules of the current folder, which is a checkout, do not replace those of attnbench.
exec "$PYTHON" -P -m attnbench gate --step measure "--scenario=$SCENARIO" "--out=$OUT" \
    "--turns=$TURNS" "--python=$PYTHON" "--base-python=$BASE_PYTHON" "${flags[@]}" -- "$BASE" "$HEAD"
