"""Reading the record of a run: indexed, filtered, searched, and written in other forms."""
