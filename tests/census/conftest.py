"""The census is a script as well as a test: its files import each other by name, and are no tests themselves."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
collect_ignore = ["building.py", "inputs.py", "judging.py", "run.py", "small_sizes.py"]
