"""What torch.backends lets a process set, found by walking its modules."""

import inspect
import re
from contextlib import suppress
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple

import torch

ROOT = "torch.backends"
# Values to try in place of a text, until one is taken.
TEXTS = ("ieee", "tf32", "bf16", "onednn", "qnnpack", "none", "optimal", "native", "cudnn")


class Settable(NamedTuple):
    read: Any
    write: Any

    def change(self):
        """Whether another value was taken."""
        before = self.read()
        for value in _others(before):
            with suppress(Exception):
                self.write(value)
                if self.read() != before:
                    return True
        return False


@cache
def settable():
    """By names, without `torch.backends.`. After some settings torch refuses to read others."""
    found, waiting, seen = {}, [("", torch.backends)], set()
    while waiting:
        path, owner = waiting.pop()
        if id(owner) in seen:
            continue
        seen.add(id(owner))
        for name in _attributes(owner):
            found[path + name] = Settable(
                lambda owner=owner, name=name: getattr(owner, name),
                lambda value, owner=owner, name=name: setattr(owner, name, value),
            )
        waiting += [(f"{path}{name}.", inner) for name, inner in _parts(owner)]
        if isinstance(owner, ModuleType):
            found |= {path + name: pair for name, pair in _functions(owner)}
    return {name: one for name, one in sorted(found.items()) if _is_readable(one)}


def _parts(owner):
    """Modules and objects of torch.backends in a module."""
    if isinstance(owner, ModuleType):
        for name in {*dir(owner), *dir(type(owner)), *dir(vars(owner).get("m"))} - {"m"}:
            inner = getattr(owner, name, None)
            is_module = isinstance(inner, ModuleType)
            home = inner.__name__ if is_module else type(inner).__module__
            if home.startswith(ROOT) and not name.startswith("__"):
                yield name, inner


def _attributes(owner):
    """Those that are set by a function: descriptors, and what __setattr__ compares names with."""
    kind = type(owner)
    for name in dir(kind):
        descriptor = inspect.getattr_static(kind, name)
        can_set = getattr(descriptor, "fset", hasattr(type(descriptor), "__set__"))
        if can_set and not name.startswith("_"):
            yield name
    if kind.__setattr__ is not object.__setattr__ and not isinstance(owner, ModuleType):
        yield from re.findall(r'name == "(\w+)"', inspect.getsource(kind.__setattr__))


def _functions(module):
    known = vars(getattr(module, "m", module))
    for name, function in known.items():
        if not inspect.isfunction(function) or function.__module__ != module.__name__:
            continue
        verb, _, what = name.partition("_")
        reader = {"enable": f"{what}_enabled", "allow": f"{what}_allowed", "set": f"get_{what}"}
        if reader.get(verb) in known:
            yield what, Settable(known[reader[verb]], function)
        given = [*inspect.signature(function).parameters.values()]
        if len(given) == 1 and given[0].default is None and verb != "set":
            yield name, Settable(function, function)
        if name == "set_flags" and len(given) == 1 and given[0].default is inspect.Parameter.empty:
            flag = f"_get_{module.__name__.rpartition('.')[2]}{given[0].name}"
            yield given[0].name.strip("_"), Settable(getattr(torch._C, flag), function)


def _is_readable(one):
    with suppress(Exception):
        return one.read() is not None
    return False


def _others(value):
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, str):
        return [text for text in TEXTS if text != value]
    kind = type(value)
    named = getattr(kind, "__members__", {}).values()
    return [one for one in named if one != value]
