"""The judge's program: redraws the inputs of a result and says whether it can be right.

It never runs a backend and uses no GPU. It sees numbers at a few places and seeds, nothing else.
"""

from dataclasses import asdict

from ..process.child import Parent


def main() -> None:
    """Until the run has no more requests."""
    parent = Parent()
    from ..cases.case import problem_of
    from ..devices.environment import fix_threads
    from ..measure.judge import Judge, Seeds
    from ..measure.warm_heap import WarmHeap

    fix_threads()
    WarmHeap().keep()  # without it judging takes up to half as long again
    judge = Judge()
    parent.reply("ready")
    for request in parent.requests():
        seeds = Seeds(**request["seeds"])
        problem, results = problem_of(request["problem"]), request["results"]
        found = asdict(judge.judged(problem, seeds, results, request["exactness"]))
        said = ("complaint", "error_ratio", "error_limit_ratio")
        parent.reply("judged", **{name: found[name] for name in said})


if __name__ == "__main__":
    main()
