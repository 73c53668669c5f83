"""What a page has of its own: settings that travel in the link, and examples to try.

A page says so in its folder, ``kvviz/ui/pages.py`` lists all pages, and the shell knows them from that list alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from kvviz.choices.words import attempt

PASTE, UPLOAD = "paste", "upload"  # what a menu of texts or models offers beside its own entries
S = TypeVar("S", bound="PageSettings")


@dataclass(frozen=True)
class Example:
    """An experiment to try: a button, what to watch then, and the URL parameters that change."""

    label: str
    watch: str
    change: Mapping[str, str]


@dataclass(frozen=True)
class Link:
    """How one setting stands in a URL; its word there is the key of its widget too."""

    name: str  # of the field
    word: str
    default: Any
    parse: Callable[[str], Any]
    is_always: bool


def linked(word: str, default: Any, parse: Callable[[str], Any], *, always: bool = False) -> Any:
    """A dataclass field that travels as ``word=…``: always, or only where it differs from its default.

    ``parse`` refuses a bad word with a ValueError. A value of None is left out of the link in any case.
    """
    return field(default=default, metadata={"word": word, "parse": parse, "always": always})


def links(owner: Any) -> Iterator[Link]:
    """The settings among the fields of a dataclass or of one of its objects."""
    for one in fields(owner):
        if "word" in one.metadata:
            yield Link(one.name, one.metadata["word"], one.default, one.metadata["parse"], one.metadata["always"])


def link_of(owner: Any, name: str) -> Link:
    """The setting of that field."""
    return next(link for link in links(owner) if link.name == name)


def words_of(owner: Any) -> dict[str, str]:
    """The settings of an object as URL parameters."""
    values = {link: getattr(owner, link.name) for link in links(owner)}
    return {
        link.word: str(value)
        for link, value in values.items()
        if value is not None and (link.is_always or value != link.default)
    }


def parsed(owner: type, query: Mapping[str, str], notes: list[str]) -> dict[str, Any]:
    """The values a URL gives, by field; a bad word is left out, with a sentence in ``notes``."""
    values: dict[str, Any] = {}
    for link in links(owner):
        if link.word in query:
            attempt(notes, values, link.name, link.parse, query[link.word])
    return values


@dataclass(frozen=True)
class PageSettings:
    """The settings of one page: a subclass names them as fields, each made by ``linked``."""

    def words(self) -> dict[str, str]:
        """All of them as URL parameters."""
        return words_of(self)

    @classmethod
    def from_widgets(cls: type[S], value_of: Callable[[str, Any], Any]) -> S:
        """Made of what the widgets hold: ``value_of(key, default)``."""
        return cls(**{link.name: whole(value_of(link.word, link.default), link.default) for link in links(cls)})


def whole(value: Any, default: Any) -> Any:
    """A widget's value as the URL holds it: a whole number without its decimal point; an empty field is its default."""
    if value is None:
        return default
    if not isinstance(value, float):
        return value
    return int(value) if value.is_integer() else default


@dataclass(frozen=True)
class PageEntry:
    """One row of the table of pages; the menu shows them in groups."""

    group: str
    path: str
    title: str
    settings: type[PageSettings] | None = None
    examples: tuple[Example, ...] = ()


_pages: list[PageEntry] = []


def register(pages: Iterable[PageEntry]) -> None:
    """Tell the shell which pages there are, in the order of the menu."""
    _pages[:] = pages


def registered() -> tuple[PageEntry, ...]:
    """All pages, in the order of the menu."""
    return tuple(_pages)


def settings_of_pages() -> tuple[type[PageSettings], ...]:
    """The classes of those pages that have settings of their own."""
    return tuple(entry.settings for entry in _pages if entry.settings is not None)


def ordinary() -> tuple[PageSettings, ...]:
    """Every page's settings when nothing is said."""
    return tuple(settings() for settings in settings_of_pages())
