"""Questions with their right passages, the documents they are about, and how answers to them are measured."""
