"""What watches a training while it goes on; later papers put their probes here."""

from .probe import Probe as Probe
