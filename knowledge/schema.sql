-- The truth about documents. Everything else, the vector index included, can be made again from this file.
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE documents (
    id            TEXT PRIMARY KEY,              -- a readable name: "lds-banks"
    source        TEXT NOT NULL UNIQUE,          -- absolute path, or library:NAME
    title         TEXT NOT NULL,
    kind          TEXT NOT NULL CHECK (kind IN ('literature', 'experience')),
    content_hash  TEXT NOT NULL,                 -- SHA-256 of the file and of how it was read
    added_at      TEXT NOT NULL,                 -- ISO 8601, UTC
    tags          TEXT NOT NULL,                 -- JSON array
    architectures TEXT NOT NULL,                 -- JSON array
    bundled       INTEGER NOT NULL,
    authors       TEXT NOT NULL DEFAULT '[]',    -- JSON array
    year          INTEGER,
    origin        TEXT                           -- where it was published, when that is not `source`
);
CREATE INDEX documents_by_content ON documents (content_hash);

-- What could not be added, for `knowledge retry`.
CREATE TABLE failures (
    source TEXT PRIMARY KEY,
    reason TEXT NOT NULL,
    wanted TEXT NOT NULL,                        -- JSON object: how it was to be added
    tried  TEXT NOT NULL                         -- ISO 8601, UTC
) WITHOUT ROWID;

CREATE TABLE chunks (
    number      INTEGER PRIMARY KEY AUTOINCREMENT,
    document_id TEXT NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    position    INTEGER NOT NULL,                -- from 1; the passage's id is "document_id#position"
    section     TEXT NOT NULL,
    page        INTEGER,
    text        TEXT NOT NULL,
    embedded    TEXT NOT NULL,                   -- what the embedding model read
    tokens      INTEGER NOT NULL,
    UNIQUE (document_id, position)
);

CREATE TABLE citations (
    chunk      INTEGER NOT NULL REFERENCES chunks (number) ON DELETE CASCADE,
    position   INTEGER NOT NULL,
    mark       TEXT NOT NULL,
    title      TEXT NOT NULL,
    url        TEXT NOT NULL,
    looked_up  TEXT,
    PRIMARY KEY (chunk, position)
) WITHOUT ROWID;

-- A vector's number is never used twice, so an index that lags behind can only miss, never mistake.
CREATE TABLE vectors (
    number   INTEGER PRIMARY KEY AUTOINCREMENT,
    chunk    INTEGER NOT NULL REFERENCES chunks (number) ON DELETE CASCADE,
    embedder TEXT NOT NULL,
    vector   BLOB NOT NULL,                      -- little-endian float32
    UNIQUE (chunk, embedder)
);
CREATE INDEX vectors_by_embedder ON vectors (embedder, number);

-- Words are stemmed and identifiers split into their parts; identifiers themselves are kept whole next door.
CREATE VIRTUAL TABLE words USING fts5 (heading, body, tokenize = 'porter unicode61 remove_diacritics 2');
CREATE VIRTUAL TABLE identifiers USING fts5 (names, tokenize = "unicode61 tokenchars '_'");
