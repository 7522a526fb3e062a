"""PTX text as instructions; the scope of each, so that names can be resolved."""

import re
from dataclasses import dataclass, field
from typing import TypeVar

BYTES = {"pred": 0, "b8": 1, "u8": 1, "s8": 1, "b16": 2, "u16": 2, "s16": 2, "f16": 2, "b32": 4,
         "u32": 4, "s32": 4, "f32": 4, "b64": 8, "u64": 8, "s64": 8, "f64": 8}  # fmt: skip
Name = tuple[int, str]
"""A name and the scope that declares it, 0 for the whole function."""
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Address:
    """[base + offset], or [base, {coordinates}] of a tensor map."""

    base: str
    offset: int = 0
    coordinates: tuple[str, ...] = ()


Operand = str | tuple[str, ...] | Address


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """`name` has all modifiers; `line` is that of the PTX, `source` the one in Python."""

    name: str
    operands: tuple[Operand, ...]
    guard: str | None
    negated: bool
    line: int
    source: str
    scope: int

    @property
    def parts(self) -> list[str]:
        return self.name.split(".")


@dataclass
class Program:
    """One kernel. `parameters` are name, type and bytes; `registers` and `ranges` bytes by name or
    by prefix; `outer` the scope around each scope; `maxnreg` 0 if PTX names none.
    """

    name: str
    threads: int = 0
    maxnreg: int = 0
    parameters: list[tuple[str, str, int]] = field(default_factory=list)
    code: list[Instruction] = field(default_factory=list)
    labels: dict[Name, int] = field(default_factory=dict)
    targets: dict[str, list[str]] = field(default_factory=dict)
    registers: dict[Name, int] = field(default_factory=dict)
    ranges: dict[str, int] = field(default_factory=dict)
    outer: dict[int, int] = field(default_factory=dict)

    def label(self, scope: int, name: str) -> int:
        """Index of the instruction behind it; KeyError if there is none."""
        return self.labels[self._declared(self.labels, scope, name), name]

    def register(self, scope: int, name: str) -> Name:
        return self._declared(self.registers, scope, name), name

    def bytes_of(self, register: Name) -> int:
        found = re.match(r"%[a-z]+", register[1])
        return self.registers.get(register) or (self.ranges[found[0]] if found else 4)

    def _declared(self, table: dict[Name, Found], scope: int, name: str) -> int:
        while scope and (scope, name) not in table:
            scope = self.outer[scope]
        return scope


def parse(text: str) -> Program:
    """The first kernel in the text."""
    head = re.search(r"\.entry\s+(\w+)\s*\((.*?)\)(.*?)\{", text, re.DOTALL)
    if head is None:
        raise ValueError("no kernel in this text")
    program = Program(head[1])
    for kind, name, count in re.findall(
        r"\.param[^,]*?\.([busf]\d+)\b[^,]*?(\w+)(?:\[(\d+)\])?\s*(?:,|$)", head[2]
    ):
        program.parameters.append((name, kind, BYTES[kind] * int(count or 1)))
    limits = dict(re.findall(r"\.(reqntid|maxnreg)\s+(\d+)", head[3]))
    program.threads, program.maxnreg = int(limits["reqntid"]), int(limits.get("maxnreg", 0))
    _read_body(program, text[head.end() :], first=text.count("\n", 0, head.end()) + 1)
    return program


def _read_body(program: Program, text: str, *, first: int) -> None:
    scope, scopes, source, label, pending = 0, 0, "?", "", ""
    for number, raw in enumerate(text.split("\n"), first):
        line = raw.split("//")[0].strip()
        if line.startswith((".loc", ".pragma")):
            where = re.search(r"//\s*(\S+?):(\d+):\d+", raw)
            source = f"{where[1].rsplit('/', 1)[-1]}:{where[2]}" if where else source
            continue
        for char in line + " ":
            if char == "{" and not pending.strip():
                scopes += 1
                program.outer[scopes], scope = scope, scopes
            elif char == "}" and not pending.strip():
                if scope == 0:
                    return
                scope = program.outer[scope]
            elif char == ";":
                _read_statement(program, pending.strip(), scope, number, source, label)
                pending = ""
            elif char == ":" and re.fullmatch(r"\s*[$\w]+", pending):
                label, pending = pending.strip(), ""
                program.labels[scope, label] = len(program.code)
            else:
                pending += char


def _read_statement(
    program: Program, text: str, scope: int, line: int, source: str, label: str
) -> None:
    if text.startswith(".reg"):
        _, kind, names = text.split(None, 2)
        for name in re.split(r"\s*,\s*", names):
            if counted := re.fullmatch(r"(%[a-z]+)<\d+>", name):
                program.ranges[counted[1]] = BYTES[kind[1:]]
            else:
                program.registers[scope, name] = BYTES[kind[1:]]
    elif text.startswith(".branchtargets"):
        program.targets[label] = re.split(r"\s*,\s*", text.split(None, 1)[1])
    elif found := re.match(r"(?:@(!?)([%\w]+)\s+)?(\S+)\s*(.*)", text, re.DOTALL):
        negated, guard, name, rest = found.groups()
        program.code.append(
            Instruction(
                name=name,
                operands=tuple(map(_operand, _split(rest))),
                guard=guard,
                negated=negated == "!",
                line=line,
                source=source,
                scope=scope,
            )
        )


def _split(text: str) -> list[str]:
    """At the commas outside of brackets."""
    parts, depth = [""], 0
    for char in text:
        depth += (char in "{[(") - (char in "}])")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts if part.strip()]


def _operand(text: str) -> Operand:
    if text.startswith("{"):
        return tuple(_split(text[1:-1]))
    if text.startswith("["):
        place, *coordinates = _split(text[1:-1])
        base, _, offset = place.replace(" ", "").partition("+")
        inner = tuple(_split(coordinates[0][1:-1])) if coordinates else ()
        return Address(base, int(offset or "0", 0), inner)
    return text
