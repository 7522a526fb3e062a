"""The judge's program: redraws the inputs of a result and says whether it can be right.

It never runs a backend and uses no GPU. It sees numbers at a few places and seeds, nothing else.
"""

from typing import Any

from ..process.child import Parent


def main(parent: Parent) -> None:
    """Until the run has no more requests."""
    from ..cases.case import problem_of
    from ..machine.environment import fix_threads
    from ..measure.judge import Judge

    fix_threads()
    judge = Judge()
    parent.reply("ready", device="cpu", why="", environment=None)
    for request in parent.requests():
        asked: dict[str, Any] = {**request, "problem": problem_of(request["problem"])}
        asked.pop("op")
        parent.reply("judged", **judge.judged(**asked)._asdict())


if __name__ == "__main__":
    main(Parent())
