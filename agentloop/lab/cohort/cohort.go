package cohort

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/version"
)

// Version is the version of the format that [Cohort.Write] writes.
const Version = 1

// maxLine is the longest line, in bytes: a record of the largest payload, whatever its bytes are.
const maxLine = 128 << 20

// ErrDamaged is the error of a file that is no cohort, is cut or has been changed.
var ErrDamaged = errors.New("cohort: the file is cut, changed or no cohort")

// Header is the first line of a file.
type Header struct {
	Version int    `json:"version"`
	Helixd  string `json:"helixd,omitempty"` // the version of the program that wrote it
	// Hash is the SHA-256 of all bytes after the header's line, in hexadecimal digits.
	Hash     string `json:"hash"`
	Sessions int    `json:"sessions"`
	Records  int    `json:"records"`
	// Filter, Limit and Seed are how the sessions were chosen. Found is how many the filter took.
	Filter Filter `json:"filter,omitzero"`
	Limit  int    `json:"limit,omitempty"`
	Seed   uint64 `json:"seed,omitempty"`
	Found  int    `json:"found"`
	// Skipped counts sessions that can't be run again, by the reason.
	Skipped map[string]int `json:"skipped,omitempty"`
	// Redacted is how many values were replaced.
	Redacted int `json:"redacted,omitempty"`
}

// Summary describes a session.
type Summary struct {
	ID      string   `json:"id"`
	Agent   string   `json:"agent"`
	Status  string   `json:"status"`
	Tags    []string `json:"tags,omitempty"`
	Records int      `json:"records"`
}

// Session is a recorded session.
type Session struct {
	Summary
	Log []eventlog.Record // in their order
}

// Cohort is the content of a file.
type Cohort struct {
	Header   Header
	Sessions []Session // sorted by id
}

// line is a line of the file; it has one of the members.
type line struct {
	Cohort  *Header          `json:"cohort,omitempty"`
	Session *Summary         `json:"session,omitempty"`
	Record  *eventlog.Record `json:"record,omitempty"`
}

// Write writes the file, and sets the header's hash and counts. The same sessions and header give
// the same bytes.
func (c *Cohort) Write(w io.Writer) error {
	slices.SortFunc(c.Sessions, func(a, b Session) int { return cmp.Compare(a.ID, b.ID) })
	var body bytes.Buffer
	c.Header.Version, c.Header.Helixd = Version, version.Current()
	c.Header.Sessions, c.Header.Records = len(c.Sessions), 0
	for i := range c.Sessions {
		s := &c.Sessions[i]
		s.Records = len(s.Log)
		c.Header.Records += len(s.Log)
		if err := add(&body, line{Session: &s.Summary}); err != nil {
			return err
		}
		for _, r := range s.Log {
			if err := add(&body, line{Record: &r}); err != nil {
				return fmt.Errorf("cohort: session %s: record %d: %w", s.ID, r.Sequence, err)
			}
		}
	}
	sum := sha256.Sum256(body.Bytes())
	c.Header.Hash = hex.EncodeToString(sum[:])
	var head bytes.Buffer
	if err := add(&head, line{Cohort: &c.Header}); err != nil {
		return err
	}
	_, err := io.Copy(w, io.MultiReader(&head, &body))
	return err
}

func add(b *bytes.Buffer, l line) error {
	raw, err := eventlog.Marshal(l)
	if err != nil {
		return err
	}
	b.Write(raw)
	return b.WriteByte('\n')
}

// Read reads a file to its end, and checks its hash. Errors: ErrDamaged, a *version.NewerError, those of in.
func Read(in io.Reader) (*Cohort, error) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	c, sum := &Cohort{}, sha256.New()
	for n := 1; lines.Scan(); n++ {
		var l line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return nil, fmt.Errorf("%w: line %d is no JSON: %w", ErrDamaged, n, err)
		}
		if n == 1 {
			if l.Cohort == nil || l.Cohort.Version < 1 {
				return nil, fmt.Errorf("%w: it does not begin with a header", ErrDamaged)
			}
			if l.Cohort.Version > Version {
				return nil, fmt.Errorf("cohort: %w", &version.NewerError{Of: "the cohort", Format: l.Cohort.Version, Reads: Version, Helixd: l.Cohort.Helixd})
			}
			c.Header = *l.Cohort
			continue
		}
		sum.Write(lines.Bytes())
		sum.Write([]byte{'\n'})
		switch last := len(c.Sessions) - 1; {
		case l.Session != nil:
			c.Sessions = append(c.Sessions, Session{Summary: *l.Session})
		case l.Record != nil && last >= 0:
			c.Sessions[last].Log = append(c.Sessions[last].Log, *l.Record)
		default:
			return nil, fmt.Errorf("%w: line %d is neither a session nor a record of one", ErrDamaged, n)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("cohort: %w", err)
	}
	return c, c.check(hex.EncodeToString(sum.Sum(nil)))
}

func (c *Cohort) check(hash string) error {
	if c.Header.Version == 0 {
		return fmt.Errorf("%w: it is empty", ErrDamaged)
	}
	if hash != c.Header.Hash {
		return fmt.Errorf("%w: its hash is %s, not %s as it says", ErrDamaged, hash, c.Header.Hash)
	}
	return nil
}
