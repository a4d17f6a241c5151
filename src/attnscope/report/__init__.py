"""The page that answers first: what the model said, which tokens carried it, and how far that can be trusted."""

from .mistakes import write_mistakes as write_mistakes
from .page import report_html as report_html
from .page import write_report as write_report
