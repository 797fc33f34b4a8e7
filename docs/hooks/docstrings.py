"""What griffe, which reads the source for the API reference, cannot know by itself."""

import importlib
import inspect
import re
from typing import Any

import equinox as eqx
import griffe


class ExampleSections(griffe.Extension):
    """Let docstrings head a doctest with ``Example:`` too; griffe knows only ``Examples:``."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rename the heading of one object before its docstring is parsed."""
        if obj.docstring:
            obj.docstring.value = re.sub(r"^Example:$", "Examples:", obj.docstring.value, flags=re.MULTILINE)


class ModuleSignatures(griffe.Extension):
    """Show the constructors that equinox writes for its modules."""

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        """Add ``__init__`` to one class that inherits it from equinox."""
        runtime = getattr(importlib.import_module(cls.module.path), cls.name, None)
        if "__init__" in cls.members or not (isinstance(runtime, type) and issubclass(runtime, eqx.Module)):
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
