package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	driver "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

const (
	// readers is how many queries run at once; searchers is how many searches may run
	// besides, so that they don't keep listings waiting.
	readers   = 4
	searchers = 2
	counters  = 1
	// busyTimeout is how long one connection waits for another, in ms.
	busyTimeout = 5000
)

// file is an open database: one connection that writes, some that read.
type file struct {
	path  string
	info  fs.FileInfo // of the file that was opened
	write *sql.DB
	conn  *sql.Conn // of write
	read  *sql.DB
	find  *sql.DB // connections for searches
	count *sql.DB // connections for queries of a few rows, which must not wait for listings
	lock  *os.File
	// vectors are the memories' vectors that queries compare.
	vectors *vectorCache
}

// lockSuffix is the suffix of the file that a process locks while it uses a database.
const lockSuffix = ".lock"

// errInUse: two processes would overwrite each other's rows.
var errInUse = errors.New("another process uses the read models' file: each node needs its own file")

// errDiscard: the file can't be used any more and must be built again.
var errDiscard = errors.New("the file is not usable")

// openFile opens the file at path, making it if it is not there. Errors:
// errDiscard.
func openFile(path string) (f *file, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	f = &file{path: path, vectors: newVectorCache(maxVectorBytes)}
	defer func() {
		if err != nil {
			f.close()
			f = nil
		}
	}()
	if f.lock, err = lockFile(path + lockSuffix); err != nil {
		return f, err
	}
	if err := private(path); err != nil {
		return f, err
	}
	if f.write, err = sql.Open("sqlite", dsn(path, false)); err != nil {
		return f, err
	}
	f.write.SetMaxOpenConns(1)
	if f.conn, err = f.write.Conn(context.Background()); err != nil {
		return f, classed(err)
	}
	if err := f.prepare(); err != nil {
		return f, classed(err)
	}
	if f.read, err = openReaders(path, readers); err != nil {
		return f, err
	}
	if f.find, err = openReaders(path, searchers); err != nil {
		return f, err
	}
	if f.count, err = openReaders(path, counters); err != nil {
		return f, err
	}
	f.info, err = os.Stat(path)
	return f, err
}

// openReaders returns at most that many connections, which only read.
func openReaders(path string, most int) (*sql.DB, error) {
	db, err := sql.Open("sqlite", dsn(path, true))
	if err == nil {
		db.SetMaxOpenConns(most)
		db.SetMaxIdleConns(most)
	}
	return db, err
}

// private creates the file if it does not exist, and makes it readable by its owner only:
// it has the contents of conversations. SQLite gives its mode to the files that it
// creates next to it.
func private(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	f.Close()
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Chmod(path+suffix, 0o600); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// prepare creates the tables of a new file, and refuses a file of another version.
func (f *file) prepare() error {
	ctx := context.Background()
	var found int
	if err := f.conn.QueryRowContext(ctx, "PRAGMA user_version").Scan(&found); err != nil {
		return err
	}
	switch found {
	case version:
		return nil
	case 0:
		_, err := f.conn.ExecContext(ctx, fmt.Sprintf("BEGIN IMMEDIATE; %s PRAGMA user_version = %d; COMMIT", schema, version))
		return err
	default:
		return fmt.Errorf("%w: it is of version %d, not %d", errDiscard, found, version)
	}
}

// dsn returns the file's data source name with the settings that each connection needs.
func dsn(path string, readOnly bool) string {
	q := url.Values{"_pragma": {
		fmt.Sprintf("busy_timeout(%d)", busyTimeout), "journal_mode(WAL)", "synchronous(NORMAL)", "secure_delete(ON)",
		"cache_size(-8192)", "temp_store(MEMORY)",
	}}
	if readOnly {
		q["_pragma"] = append(q["_pragma"], "query_only(ON)")
	}
	return (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: q.Encode()}).String()
}

func (f *file) close() {
	f.vectors.sets.DropIf(func(space) bool { return true })
	for _, db := range []*sql.DB{f.read, f.find, f.count} {
		if db != nil {
			db.Close()
		}
	}
	if f.conn != nil {
		f.conn.Close()
	}
	if f.write != nil {
		f.write.Close()
	}
	if f.lock != nil {
		f.lock.Close() // which unlocks it
	}
}

// there reports whether the file that was opened is still the one at its path.
func (f *file) there() bool {
	now, err := os.Stat(f.path)
	return err == nil && os.SameFile(f.info, now)
}

// truncate writes the write-ahead log into the file and empties it, so that no
// overwritten bytes are left. It returns false if a reader blocks it; it does not wait
// for readers, since records must be written meanwhile.
func (f *file) truncate(ctx context.Context) (bool, error) {
	if err := f.patience(ctx, 0); err != nil {
		return false, err
	}
	var busy, pages, moved int
	err := f.conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &pages, &moved)
	return busy == 0, classed(errors.Join(err, f.patience(ctx, busyTimeout)))
}

// patience sets how long the writer waits for other connections, in ms.
func (f *file) patience(ctx context.Context, ms int) error {
	_, err := f.conn.ExecContext(ctx, fmt.Sprintf("PRAGMA busy_timeout = %d", ms))
	return err
}

// removeFile removes a database with what belongs to it.
func removeFile(path string) error {
	var failed error
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// metByReader is classed for a reader's errors. If a reader can't open the file, the
// process may lack descriptors and the file be fine; the writer checks whether the file
// exists.
func metByReader(err error) error {
	if e, ok := errors.AsType[*driver.Error](err); ok && e.Code()&0xff == lib.SQLITE_CANTOPEN {
		return err
	}
	return classed(err)
}

// classed marks errors that a new file fixes.
func classed(err error) error {
	e, ok := errors.AsType[*driver.Error](err)
	if !ok {
		return err
	}
	switch e.Code() & 0xff {
	case lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB, lib.SQLITE_SCHEMA, lib.SQLITE_READONLY, lib.SQLITE_CANTOPEN:
		return fmt.Errorf("%w: %w", errDiscard, err)
	case lib.SQLITE_ERROR: // a table is not there
		return fmt.Errorf("%w: %w", errDiscard, err)
	case lib.SQLITE_IOERR:
		if e.Code() == lib.SQLITE_IOERR_SHORT_READ {
			return fmt.Errorf("%w: %w", errDiscard, err)
		}
	}
	return err
}
