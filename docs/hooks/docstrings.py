"""What griffe, which reads the source for the API reference, cannot know by itself."""

import ast
import importlib
import inspect
import re
import textwrap
from typing import Any

import equinox as eqx
import griffe


class ExampleSections(griffe.Extension):
    """Let docstrings head a doctest with ``Example:`` too, or not at all; griffe knows only ``Examples:``."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Write the heading of one object before its docstring is parsed."""
        if obj.docstring:
            text = re.sub(r"^Example:$", "Examples:", obj.docstring.value, flags=re.MULTILINE)
            obj.docstring.value = re.sub(r"^>>> .*(?:\n.+)*", _headed, text, flags=re.MULTILINE)


def _headed(doctest: re.Match[str]) -> str:
    return "Examples:\n" + textwrap.indent(doctest[0], "    ")


class Constants(griffe.Extension):
    """Show the constants and types of a module: the comment above one is its docstring."""

    def on_module_members(self, *, node: ast.AST | griffe.ObjectNode, mod: griffe.Module, **_: Any) -> None:
        """Describe the public assignments of one module that have no docstring."""
        for name, line in _unpacked(node):
            mod.set_member(name, griffe.Attribute(name, lineno=line, endlineno=line))
        for name, member in mod.members.items():
            if isinstance(member, griffe.Attribute) and not name.startswith("_") and not member.docstring:
                member.docstring = griffe.Docstring(_comment_above(member) or "A constant.", parent=member)


def _unpacked(node: ast.AST | griffe.ObjectNode) -> list[tuple[str, int]]:
    """Return the names that a module assigns as a tuple, which griffe passes over."""
    assignments = [each for each in getattr(node, "body", ()) if isinstance(each, ast.Assign)]
    targets = [target for each in assignments for target in each.targets if isinstance(target, ast.Tuple)]
    return [(name.id, target.lineno) for target in targets for name in target.elts if isinstance(name, ast.Name)]


class ModuleSignatures(griffe.Extension):
    """Show the constructors that equinox writes for its modules, and Python for named tuples."""

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        """Add ``__init__`` to one class that inherits it from equinox or from a named tuple."""
        runtime = getattr(importlib.import_module(cls.module.path), cls.name, None)
        if "__init__" in cls.members or not (isinstance(runtime, type) and issubclass(runtime, eqx.Module | tuple)):
            return
        parameters = [
            griffe.Parameter(
                field.name,
                annotation=_annotation(cls, field.name),
                kind=griffe.ParameterKind.positional_or_keyword,
                default=None if field.default is field.empty else repr(field.default),
            )
            for field in inspect.signature(runtime).parameters.values()
        ]
        if parameters:
            this = griffe.Parameter("self", kind=griffe.ParameterKind.positional_or_keyword)
            signature = griffe.Parameters(this, *parameters)
            cls.set_member("__init__", griffe.Function("__init__", parameters=signature))


def _annotation(cls: griffe.Class, field: str) -> Any:
    """Return the annotation as written, if the field stands in the class itself."""
    member = cls.members.get(field)
    return member.annotation if isinstance(member, griffe.Attribute) else None


def _comment_above(member: griffe.Attribute) -> str:
    """Return the text of the comment lines right above an assignment."""
    lines, last = member.lines_collection[member.filepath], (member.lineno or 1) - 1
    first = last
    while first > 0 and lines[first - 1].startswith("#"):
        first -= 1
    return " ".join(line.lstrip("# ") for line in lines[first:last])
