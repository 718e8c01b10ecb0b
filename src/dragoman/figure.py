"""The picture of a value, for notebooks and for `rich`.

A value that is `Drawable` describes itself as a `Figure`: a tree of titles, texts, folded pieces and
images. Two functions draw any figure, as HTML without scripts (`draw_html`) and as a tree of lines
(`draw_tree`). All text is escaped there, and long texts, many pieces and large images are cut, so
that a value of any size may be shown.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator
from html import escape as escape_html
from typing import TYPE_CHECKING, Literal

import msgspec

from dragoman.visible_text import STEERING, escape, shorten

if TYPE_CHECKING:
    from rich.text import Text
    from rich.tree import Tree

__all__ = ["Drawable", "Figure", "DrawingLimits", "draw_figures", "draw_html", "draw_tree"]

_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_LONGEST_TITLE = 300
_LONGEST_SUMMARY = 90
"""Characters of what is folded that its line shows."""
_TREE_TEXT = 2000
"""Most characters of a text in a terminal."""
_TREE_ROWS = 200
"""Most labels of a tree, the last of those that stand side by side."""
_STYLE = """<style>
.dragoman { font: 14px/1.5 system-ui, sans-serif; max-width: 760px; overflow-wrap: anywhere }
.dragoman .mute, .dragoman summary { opacity: .72; font-size: 13px; margin: 4px 0 }
.dragoman .user { margin: 10px 0 6px; padding: 6px 12px; border-radius: 10px; background: rgb(128 128 128 / .16) }
.dragoman .text { margin: 6px 0; white-space: pre-wrap }
.dragoman details { margin: 4px 0; padding: 2px 10px; border: 1px solid rgb(128 128 128 / .4); border-radius: 8px }
.dragoman summary { cursor: pointer }
.dragoman pre { white-space: pre-wrap; font-size: 12px; margin: 4px 0; background: none; color: inherit }
.dragoman .bad { color: #d33 }
.dragoman img { max-width: 100%; max-height: 320px; border-radius: 8px }
</style>"""


class Figure(msgspec.Struct, frozen=True):
    """A picture, or a piece of one."""

    form: Literal["group", "user", "text", "fold", "note", "image"] = "group"
    """What it looks like. `user`: a bubble. `fold`: a title that opens text and figures. `note`:
    small print."""
    title: str = ""
    """One line."""
    text: str = ""
    """Text below the title."""
    is_bad: bool = False
    """True if it tells of a failure."""
    image: bytes = b""
    """Of an image: its bytes."""
    mime_type: str = ""
    """Of an image: their MIME type."""
    figures: tuple[Figure, ...] = ()
    """What it consists of."""


class DrawingLimits(msgspec.Struct, frozen=True):
    """How much of a figure is drawn."""

    characters: int | None = 200_000
    """Most characters of all texts together."""
    text: int | None = 20_000
    """Most characters of one text."""
    figures: int | None = 200
    """Most figures within another, the last of them."""
    image: int | None = 256 * 1024
    """Most bytes of an image."""
    images: int | None = 2 * 1024 * 1024
    """Most bytes of all images together."""


_NOTEBOOK = DrawingLimits()


class Drawable:
    """A value that notebooks and `rich` show as a picture."""

    __slots__ = ()

    def __figure__(self) -> Figure:
        """Returns the picture of the value."""
        # Each class has its own. An abstract method would need a metaclass, which messages have not.
        raise NotImplementedError

    def _repr_html_(self) -> str:
        """Returns the picture as HTML, as notebooks ask for it."""
        return draw_html(self.__figure__())

    def __rich_console__(self, _console: object, _options: object) -> Iterator[Tree]:
        """Yields the picture as a tree, as `rich.print` asks for it."""
        yield draw_tree(self.__figure__())


def draw_html(figure: Figure) -> str:
    """Returns a figure as HTML that stands anywhere in a page, with its style."""
    return f'{_STYLE}<div class="dragoman">{draw_figures([figure], _NOTEBOOK)}</div>'


def draw_figures(figures: Iterable[Figure], limits: DrawingLimits) -> str:
    """Returns figures as HTML without a style."""
    return "".join(_HtmlWriter(limits).write(figures))


class _HtmlWriter:
    """Writes figures as HTML, and counts what may still be written."""

    def __init__(self, limits: DrawingLimits) -> None:
        self._limits = limits
        self._characters = limits.characters
        self._bytes = limits.images

    def write(self, figures: Iterable[Figure]) -> Iterator[str]:
        """Yields the HTML of figures that stand side by side."""
        figures, most = [*figures], self._limits.figures
        if most is not None and len(figures) > most:
            yield f'<p class="mute">… {len(figures) - most:,} more before</p>'
            figures = figures[-most:]
        for figure in figures:
            yield from self._write_figure(figure)

    def _write_figure(self, figure: Figure) -> Iterator[str]:
        title = self._safe(shorten(figure.title, _LONGEST_TITLE))
        bad = " bad" if figure.is_bad else ""
        if figure.form == "fold":
            # A reader sees what is folded without opening it.
            first_line = self._safe(shorten(figure.text, _LONGEST_SUMMARY))
            yield f'<details class="fold{bad}"><summary><b>{title}</b> {first_line}</summary>'
            if figure.text:
                yield f"<pre>{self._safe(figure.text)}</pre>"
            yield from self.write(figure.figures)
            yield "</details>"
        elif figure.form == "image":
            yield self._write_image(figure, title)
        elif figure.form in ("text", "note"):
            name = "text" if figure.form == "text" else "mute"
            yield f'<div class="{name}{bad}">{title}{self._safe(figure.text)}</div>'
        else:
            yield f'<section class="{figure.form}{bad}">'
            if title:
                yield f'<div class="mute">{title}</div>'
            yield from self.write(figure.figures)
            yield "</section>"

    def _write_image(self, figure: Figure, title: str) -> str:
        # SVG is no picture here: it may hold scripts.
        size = len(figure.image)
        fits = _fits(size, self._limits.image) and _fits(size, self._bytes)
        if figure.mime_type not in _PICTURES or not fits:
            kind = self._safe(shorten(figure.mime_type))
            return f'<div class="mute">{title} {kind}, {size:,} bytes</div>'
        if self._bytes is not None:
            self._bytes -= size
        source = f"data:{figure.mime_type};base64,{b64encode(figure.image).decode()}"
        return f'<p><img alt="{title or figure.mime_type}" src="{source}"></p>'

    def _safe(self, text: str) -> str:
        """Returns as much of a text as may be written, for HTML. Signs that turn the direction of
        text are shown as escapes."""
        bounds = [bound for bound in (self._limits.text, self._characters) if bound is not None]
        most = min([len(text), *bounds])
        # Counted before escapes, which make a text up to six times as long.
        if self._characters is not None:
            self._characters -= most
        more = len(text) - most
        end = f"… {more:,} more characters" if more else ""
        return escape_html(text[:most].translate(STEERING)) + end


def _fits(size: int, most: int | None) -> bool:
    return most is None or size <= most


def draw_tree(figure: Figure) -> Tree:
    """Returns a figure as a tree of `rich`. Of what is folded in HTML it shows the first line."""
    from rich.tree import Tree

    tree = Tree(_draw_label(figure), guide_style="dim")
    # Without recursion, and the last branches first: they keep their rows if there are too many.
    waiting, rows_left = [(tree, figure)], _TREE_ROWS
    while waiting:
        branch, whole = waiting.pop()
        pieces = whole.figures[-rows_left:] if rows_left else ()
        rows_left -= len(pieces)
        if hidden := len(whole.figures) - len(pieces):
            branch.add(_draw_label(Figure("note", f"… {hidden:,} more before")))
        waiting += [(branch.add(_draw_label(piece)), piece) for piece in pieces]
    return tree


def _draw_label(figure: Figure) -> Text:
    """Returns title and text of a figure as one label of a tree."""
    from rich.text import Text

    text = figure.text
    if figure.form == "image":
        text = f"{shorten(figure.mime_type)}, {len(figure.image):,} bytes"
    elif figure.form == "fold":
        text = shorten(text)
    elif len(text) > _TREE_TEXT:
        text = f"{text[:_TREE_TEXT]}… {len(text) - _TREE_TEXT:,} more characters"
    pieces = [shorten(figure.title, _LONGEST_TITLE), escape(text)]
    # A `Text`, since a string would be read as markup.
    style = "red" if figure.is_bad else _TREE_STYLES.get(figure.form, "")
    return Text(" ".join(filter(None, pieces)), style)


_TREE_STYLES = {"fold": "dim", "note": "dim", "user": "bold"}
"""Form of a figure → style of its label in a tree."""
