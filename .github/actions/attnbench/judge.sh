#!/usr/bin/env bash
# Compare the runs that measure.sh left in OUT. Writes comparison and report as Markdown for the
# job's summary, and the HTML page; exits with the gate's exit code.
#
# GATE               margins, as for compare --gate
# FAIL_ON_UNDECIDED  true: exit 3 also if a case is undecided
# BASELINE           the run to compare with if no BASE was measured
# GITHUB_STEP_SUMMARY GITHUB_OUTPUT  a job's files; without them the results go to the terminal
# The others as in measure.sh.
#
# Exit codes: 0 passed, 1 a case failed and nothing was compared, 2 bad input, 3 regression,
# 4 other devices.
set -euo pipefail
: "${OUT:?}" "${HEAD:=.}" "${PYTHON:=python}" "${CODE:=}" "${GATE:=latency: 5%, peak_bytes: 0%}"
: "${FAIL_ON_UNDECIDED:=false}" "${BASELINE:=}"
: "${MOST_BYTES:=1000000}" # GitHub discards a summary of more than 1024 KiB

attnbench() {
    env ${CODE:+PYTHONPATH="$(cd "$HEAD" && pwd)/$CODE${PYTHONPATH:+:$PYTHONPATH}"} "$PYTHON" -m attnbench "$@"
}

run=$OUT/head/latest
code=0
compared=()
if [ -e "$OUT/base" ]; then
    compared=("$OUT/base" "$OUT/head" --turns)
elif [ -n "$BASELINE" ]; then
    compared=("$BASELINE" "$run")
fi
: >"$OUT/summary.md"
rm -f "$OUT/compare.json"
if [ ${#compared[@]} -gt 0 ]; then
    gate=(--gate "$GATE")
    if [ "$FAIL_ON_UNDECIDED" = true ]; then gate+=(--fail-on-undecided); fi
    attnbench compare "${compared[@]}" "${gate[@]}" --format md >"$OUT/summary.md" || code=$?
    case $code in 0 | 3) attnbench compare "${compared[@]}" "${gate[@]}" --format json >"$OUT/compare.json" || true ;; esac
else
    code=$(<"$OUT/head.code") # nothing to compare with: failed cases decide
fi
attnbench report "$run" --output "$OUT/report.html" >/dev/null
attnbench report "$run" --format md --output "$OUT/report.md" >/dev/null

summary=$OUT/summary.md
if [ $(($(wc -c <"$summary") + $(wc -c <"$OUT/report.md"))) -le "$MOST_BYTES" ]; then
    { echo && cat "$OUT/report.md"; } >>"$summary"
else
    printf '\nThe report is too long for a summary; the page has it.\n' >>"$summary"
fi
if [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then
    cat "$summary" >>"$GITHUB_STEP_SUMMARY"
else # in a terminal
    if [ -e "$OUT/compare.json" ]; then attnbench compare "${compared[@]}" "${gate[@]}" || true; fi
    echo "$summary $OUT/report.html"
fi
case $code in 0) verdict=passed ;; 3) verdict=failed ;; *) verdict=none ;; esac
printf 'code=%s\nverdict=%s\nreport=%s\n' "$code" "$verdict" "$OUT/report.html" >>"${GITHUB_OUTPUT:-/dev/null}"
if [ "$code" -eq 3 ]; then
    title=${GITHUB_ACTIONS:+::error title=attnbench::}
    echo "${title}slower, or more memory, by more than $GATE; see the summary" >&2
fi
exit "$code"
