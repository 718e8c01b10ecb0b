"""The changes that mutation testing makes to a module: each breaks one expression or statement."""

import ast
from collections.abc import Iterator
from typing import Any, NamedTuple

__all__ = ["Mutant", "mutants"]

SWAPS: dict[type[ast.AST], type[Any]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip


class Mutant(NamedTuple):
    """One change: the node at `parent.field` (`[place]`, where that is a list) becomes `new`."""

    parent: ast.AST
    field: str
    place: int | None
    old: ast.AST
    new: ast.AST

    def apply(self) -> None:
        """Makes the change, in this process's copy of the tree."""
        ast.fix_missing_locations(ast.copy_location(self.new, self.old))
        if self.place is None:
            setattr(self.parent, self.field, self.new)
        else:
            getattr(self.parent, self.field)[self.place] = self.new

    def __str__(self) -> str:
        old, new = (" ".join(ast.unparse(node).split())[:110] for node in (self.old, self.new))
        return f"{old}  →  {new}"


def replacements(node: ast.AST, field: str) -> Iterator[ast.AST]:
    """What may stand in a node's place."""
    match node:
        case ast.Compare(left, [op], right) if type(op) in SWAPS:
            yield ast.Compare(left, [SWAPS[type(op)]()], right)
        case ast.BoolOp(op, values):
            yield ast.BoolOp(SWAPS[type(op)](), values)
            rests = [values[:i] + values[i + 1 :] for i in range(len(values))]
            yield from (rest[0] if len(rest) == 1 else ast.BoolOp(op, rest) for rest in rests)
        case ast.UnaryOp(ast.Not(), operand):
            yield operand
        case ast.Constant(bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(int(value)):
            yield ast.Constant(value + 1)
        case ast.Constant(str(value)):
            yield ast.Constant("" if value else "mutant")
        case ast.Constant(bytes(value)):
            yield ast.Constant(b"" if value else b"mutant")
        case ast.BinOp(one, _, other) | ast.IfExp(_, one, other):
            yield from (one, other)
        case ast.Slice(lower, upper, step):
            yield from [ast.Slice(None, upper, step)] if lower else []
            yield from [ast.Slice(lower, None, step)] if upper else []
        case ast.Call(func, args, keywords):
            yield from (
                ast.Call(func, args, keywords[:i] + keywords[i + 1 :]) for i in range(len(keywords))
            )
        case ast.Expr(ast.Call()) | ast.AugAssign() | ast.Raise():
            yield ast.Pass()
        case ast.Return(ast.AST() as value) if not (
            isinstance(value, ast.Constant) and value.value is None
        ):
            yield ast.Return(None)
        case ast.Continue():
            yield ast.Break()
        case ast.Break():
            yield ast.Continue()
        case _:
            pass
    if field in ("test", "ifs") and not isinstance(node, (ast.Compare, ast.BoolOp, ast.UnaryOp)):
        yield ast.UnaryOp(ast.Not(), node)


def mutants(parent: ast.AST, *, text: bool = True) -> Iterator[Mutant]:
    """All changes below a node; texts of errors, docstrings, annotations, types of casts and
    `__all__` are left alone."""
    for field, value in ast.iter_fields(parent):
        for place, node in enumerate(value if isinstance(value, list) else [value]):
            match node:
                case (
                    ast.Expr(ast.Constant(str()))
                    | ast.JoinedStr()
                    | ast.Assign([ast.Name("__all__")])
                ):
                    continue
                case ast.AnnAssign(annotation=ast.Name("TypeAlias")):
                    continue
                case ast.Import() | ast.ImportFrom() | ast.If(ast.Name("TYPE_CHECKING")):
                    continue
                case ast.Assign(_, ast.BinOp(_, ast.BitOr(), _)) if isinstance(parent, ast.Module):
                    continue  # a union of types
                case ast.Constant(str()) if not text or _is_typing(parent):
                    continue
                case ast.keyword("gc" | "bound"):
                    continue  # of structs and of type variables: nobody can notice
                case ast.AST() if field not in ("annotation", "returns", "decorator_list"):
                    at = place if isinstance(value, list) else None
                    yield from (
                        Mutant(parent, field, at, node, new) for new in replacements(node, field)
                    )
                    yield from mutants(node, text=text and not isinstance(node, ast.Raise))
                case _:
                    continue


def _is_typing(node: ast.AST) -> bool:
    """Whether a text in it names a type."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("cast", "TypeVar")
    )
