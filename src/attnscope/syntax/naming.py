"""The name of a data set, with the part of it that is meant: NAME:SPLIT, NAME:CONFIGURATION:SPLIT, and #COLUMN."""

import re
from dataclasses import dataclass
from pathlib import Path

PARTS = re.compile(r"(?P<name>[^:#]+)(:(?P<configuration>[\w.-]+)(?=:))?(:(?P<split>[\w.-]+))?(#(?P<column>[^#]+))?")
HUB_NAME = re.compile(r"\w[\w.-]*(/[\w.-]+)?")
"""A data set of the hub, perhaps with its owner."""


@dataclass(frozen=True)
class DatasetName:
    """What the name of a data set says.

    >>> DatasetName.parsed("stanfordnlp/imdb:test#review")
    DatasetName(name='stanfordnlp/imdb', configuration=None, split='test', column='review')
    >>> DatasetName.parsed("Salesforce/wikitext:wikitext-2-raw-v1:test").configuration
    'wikitext-2-raw-v1'
    """

    name: str
    configuration: str | None = None
    split: str | None = None
    column: str | None = None

    @classmethod
    def parsed(cls, text: str) -> "DatasetName":
        """The parts of a name; a folder of just this name is taken as it is."""
        found = None if Path(text).is_dir() else PARTS.fullmatch(text)
        return cls(text) if found is None else cls(**found.groupdict())

    @property
    def is_possible(self) -> bool:
        """Whether this is a folder, or may be a data set of the hub."""
        return Path(self.name).is_dir() or HUB_NAME.fullmatch(self.name) is not None

    def __str__(self) -> str:
        """What is read, in words, without the place where a folder lies: results tell no paths."""
        name = Path(self.name).resolve().name if Path(self.name).is_dir() else self.name
        name = name if self.configuration is None else f"{name}:{self.configuration}"
        name = name if self.split is None else f"{name}, {self.split}"
        return name if self.column is None else f"{name} ({self.column})"
