"""Opens a Chroma store and asks it one question. Run as a program of its own, since a damaged store can hang.

python check_store.py FOLDER    prints "ok" when the store answers
"""

from __future__ import annotations

import sys


def main(folder: str) -> None:
    import chromadb
    import numpy as np
    from chromadb.config import Settings

    client = chromadb.PersistentClient(path=folder, settings=Settings(anonymized_telemetry=False))
    collection = client.get_collection("passages", embedding_function=None)
    if collection.count():
        some = collection.get(limit=1, include=["embeddings"])["embeddings"]
        assert some is not None
        assert collection.query(query_embeddings=np.asarray(some), n_results=1)["ids"][0]
    print("ok")


if __name__ == "__main__":
    main(sys.argv[1])
