package sqlite

import "github.com/helixd/helixd/projector"

// schemaVersion is the version of the tables, of the rows that Derive returns and of the
// words that package words returns; raise it if one of them changes. A file of another
// version is built again.
const schemaVersion = 13

// version is stored in the file.
const version = schemaVersion*1000 + projector.Version

// schema creates the tables. Secure delete in the search index belongs to the pragma of
// the same name: removed bytes are overwritten.
const schema = `
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE positions (partition INTEGER PRIMARY KEY, position INTEGER NOT NULL, digest TEXT NOT NULL);
CREATE TABLE trees (
	root TEXT PRIMARY KEY, head INTEGER NOT NULL, tenant TEXT NOT NULL DEFAULT '', bytes INTEGER NOT NULL DEFAULT 0,
	running INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX trees_tenant ON trees (tenant) WHERE tenant <> '';
CREATE TABLE sessions (
	root TEXT NOT NULL, session TEXT NOT NULL, parent TEXT NOT NULL, agent TEXT NOT NULL, user TEXT NOT NULL,
	status TEXT NOT NULL, forked TEXT NOT NULL, expires INTEGER, doc TEXT NOT NULL, PRIMARY KEY (root, session)
) WITHOUT ROWID;
CREATE INDEX sessions_parent ON sessions (parent, session, root);
CREATE INDEX sessions_updated ON sessions (parent, doc ->> '$.updatedAt', session, root);
CREATE INDEX sessions_created ON sessions (parent, doc ->> '$.createdAt', session, root);
CREATE INDEX sessions_user ON sessions (user, parent, session, root);
CREATE INDEX sessions_agent ON sessions (agent, parent, session, root);
CREATE INDEX sessions_status ON sessions (status, parent, session, root, doc ->> '$.streamStatus');
CREATE INDEX sessions_forked ON sessions (forked, session, root) WHERE forked <> '';
CREATE INDEX sessions_expires ON sessions (expires, root) WHERE expires IS NOT NULL;
CREATE INDEX sessions_waiting ON sessions (doc ->> '$.currentRun.status') WHERE ` + waiting + `;
CREATE INDEX sessions_paused ON sessions (doc ->> '$.streamStatus') WHERE ` + paused + `;
CREATE TABLE tags (tag TEXT NOT NULL, root TEXT NOT NULL, session TEXT NOT NULL, PRIMARY KEY (tag, root, session)) WITHOUT ROWID;
CREATE INDEX tags_root ON tags (root);
CREATE TABLE metadata (
	name TEXT NOT NULL, value TEXT NOT NULL, root TEXT NOT NULL, session TEXT NOT NULL, PRIMARY KEY (name, value, root, session)
) WITHOUT ROWID;
CREATE INDEX metadata_root ON metadata (root);
CREATE TABLE runs (
	root TEXT NOT NULL, session TEXT NOT NULL, n INTEGER NOT NULL, agent TEXT NOT NULL, user TEXT NOT NULL,
	status TEXT NOT NULL, started INTEGER NOT NULL, doc TEXT NOT NULL, PRIMARY KEY (root, session, n)
) WITHOUT ROWID;
CREATE INDEX runs_started ON runs (started);
CREATE TABLE usage (
	root TEXT NOT NULL, session TEXT NOT NULL, run TEXT NOT NULL, model TEXT NOT NULL,
	agent TEXT NOT NULL, user TEXT NOT NULL, at INTEGER NOT NULL, day TEXT NOT NULL, calls INTEGER NOT NULL,
	prompt INTEGER NOT NULL, completion INTEGER NOT NULL, reasoning INTEGER NOT NULL, cached INTEGER NOT NULL,
	cache_write INTEGER NOT NULL, total INTEGER NOT NULL, tools INTEGER NOT NULL, failed INTEGER NOT NULL,
	PRIMARY KEY (root, session, run, model)
) WITHOUT ROWID;
CREATE INDEX usage_at ON usage (at);
CREATE TABLE messages (
	root TEXT NOT NULL, session TEXT NOT NULL, n INTEGER NOT NULL, sequence INTEGER NOT NULL, PRIMARY KEY (root, session, n)
) WITHOUT ROWID;
CREATE TABLE texts (
	id INTEGER PRIMARY KEY, root TEXT NOT NULL, session TEXT NOT NULL, n INTEGER NOT NULL, kind TEXT NOT NULL,
	role TEXT NOT NULL, tool TEXT NOT NULL, call TEXT NOT NULL, sequence INTEGER NOT NULL, at INTEGER NOT NULL
);
CREATE INDEX texts_place ON texts (root, session, n);
CREATE VIRTUAL TABLE words USING fts5(text, tokenize = "unicode61 remove_diacritics 2");
INSERT INTO words(words, rank) VALUES ('secure-delete', 1);
CREATE TABLE parked (
	root TEXT NOT NULL, sequence INTEGER NOT NULL, stuck INTEGER NOT NULL, type TEXT NOT NULL, reason TEXT NOT NULL,
	PRIMARY KEY (root, sequence, stuck)
) WITHOUT ROWID;
` + tenantSchema + memorySchema

// tenantSchema keeps the sums of each tenant's trees with triggers, so that every change
// of a row counts.
const tenantSchema = `
CREATE TABLE tenants (
	tenant TEXT PRIMARY KEY, sessions INTEGER NOT NULL, bytes INTEGER NOT NULL, runs INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TRIGGER trees_added AFTER INSERT ON trees WHEN new.tenant <> '' BEGIN
	INSERT INTO tenants (tenant, sessions, bytes, runs) VALUES (new.tenant, 1, new.bytes, new.running)
		ON CONFLICT (tenant) DO UPDATE SET sessions = sessions + 1, bytes = bytes + excluded.bytes, runs = runs + excluded.runs;
END;
CREATE TRIGGER trees_removed AFTER DELETE ON trees WHEN old.tenant <> '' BEGIN
	UPDATE tenants SET sessions = sessions - 1, bytes = bytes - old.bytes, runs = runs - old.running WHERE tenant = old.tenant;
	DELETE FROM tenants WHERE tenant = old.tenant AND sessions = 0;
END;
CREATE TRIGGER trees_grown AFTER UPDATE ON trees WHEN old.tenant = new.tenant AND new.tenant <> '' BEGIN
	UPDATE tenants SET bytes = bytes + new.bytes - old.bytes, runs = runs + new.running - old.running WHERE tenant = new.tenant;
END;
`

// memorySchema has the memories of scopes, each of which has a log. Terms are words with
// their scope's number before them, so that neither a search nor its ranking sees another
// scope. Numbers are not used again, so a number that was kept never refers to another
// row. Of an erased scope only the number is kept, until all rows that have it are
// overwritten.
const memorySchema = `
CREATE TABLE scopes (
	id INTEGER PRIMARY KEY AUTOINCREMENT, log TEXT NOT NULL UNIQUE, first INTEGER NOT NULL, memories INTEGER NOT NULL,
	length INTEGER NOT NULL
);
CREATE TABLE erased (scope INTEGER PRIMARY KEY);
CREATE TABLE memories (
	id INTEGER PRIMARY KEY AUTOINCREMENT, scope INTEGER NOT NULL, memory TEXT NOT NULL, content TEXT NOT NULL, tags TEXT,
	metadata TEXT, source TEXT, at INTEGER NOT NULL, sequence INTEGER NOT NULL, UNIQUE (scope, memory)
);
CREATE INDEX memories_sequence ON memories (scope, sequence);
CREATE TABLE forgotten (scope INTEGER NOT NULL, memory TEXT NOT NULL, PRIMARY KEY (scope, memory)) WITHOUT ROWID;
CREATE TABLE terms (scope INTEGER NOT NULL, term TEXT NOT NULL, memories INTEGER NOT NULL, PRIMARY KEY (scope, term)) WITHOUT ROWID;
CREATE VIRTUAL TABLE memory_terms USING fts5(terms, tokenize = "ascii", detail = none, columnsize = 0);
INSERT INTO memory_terms(memory_terms, rank) VALUES ('secure-delete', 1);
CREATE TABLE vectors (
	id INTEGER PRIMARY KEY AUTOINCREMENT, scope INTEGER NOT NULL, memory INTEGER NOT NULL, model TEXT NOT NULL, vector BLOB NOT NULL,
	UNIQUE (memory, model)
);
CREATE INDEX vectors_scope ON vectors (scope, model);
CREATE TABLE models (
	scope INTEGER NOT NULL, model TEXT NOT NULL, vectors INTEGER NOT NULL, removed INTEGER NOT NULL, PRIMARY KEY (scope, model)
) WITHOUT ROWID;
`

// ofTree are the tables that have rows of a tree, in a column root, except for the index
// of the texts' words.
var ofTree = []string{"trees", "sessions", "tags", "metadata", "runs", "usage", "messages", "parked"}
