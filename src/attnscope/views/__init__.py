"""What can be looked at: each view a function that makes its payload, and a script of the same name that draws it."""

from .page import page_html as page_html
from .page import write_page as write_page
from .survey import survey as survey
from .view import View as View

VIEWS = {"survey": survey}
