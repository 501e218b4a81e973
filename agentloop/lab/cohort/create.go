package cohort

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"regexp"
	"slices"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/snapshot"
	"github.com/helixd/helixd/snapshot/backup"
)

// Source is a session that may become part of a cohort.
type Source struct {
	ID string
	// Records yields all records of the session, truncated ones too.
	Records func(context.Context) iter.Seq2[eventlog.Record, error]
	// Trimmed: retention has removed the session's beginning, so that it can't be run again.
	Trimmed bool
}

// Options of [Create].
type Options struct {
	Filter Filter
	// Limit is how many sessions are taken at most; 0: all. If the filter takes more, Seed chooses:
	// the same sessions for the same seed, in whichever order they come.
	Limit int
	Seed  uint64
	Rules *Rules // nil: nothing is redacted
}

// Create makes a cohort of sessions. Sessions without an agent, those of outside producers and of
// memories, are left out, and a lab's own unless the filter names their agent. All of the cohort is held in memory. Errors: those of sessions, a [*RuleError],
// and one that says that the filter took none.
func Create(ctx context.Context, sessions iter.Seq2[Source, error], o Options) (*Cohort, error) {
	c := &Cohort{Header: Header{Filter: o.Filter, Limit: o.Limit, Seed: o.Seed}}
	var chosen []ranked // with a limit, sorted by rank
	for source, err := range sessions {
		if err != nil {
			return nil, err
		}
		rank := rankOf(o.Seed, source.ID)
		s, skipped, err := read(ctx, source, o.Filter)
		switch {
		case err != nil:
			return nil, err
		case skipped != "":
			if c.Header.Skipped == nil {
				c.Header.Skipped = map[string]int{}
			}
			c.Header.Skipped[skipped]++
		case s != nil:
			c.Header.Found++
			at := len(chosen)
			if o.Limit > 0 {
				at, _ = slices.BinarySearchFunc(chosen, rank, func(r ranked, rank uint64) int { return cmp.Compare(r.rank, rank) })
			}
			chosen = slices.Insert(chosen, at, ranked{rank, *s})
			if o.Limit > 0 && len(chosen) > o.Limit {
				chosen = slices.Delete(chosen, o.Limit, len(chosen))
			}
		}
	}
	if len(chosen) == 0 {
		return nil, errors.New("cohort: there is no session that the filter takes")
	}
	for _, r := range chosen {
		c.Sessions = append(c.Sessions, r.session)
	}
	if o.Rules != nil {
		if err := o.Rules.redact(c); err != nil {
			return nil, err
		}
	}
	return c, c.Write(io.Discard) // which sorts and counts
}

// read returns a session if the filter takes it, or why it can't be run again.
func read(ctx context.Context, source Source, f Filter) (s *Session, skipped string, err error) {
	if source.Trimmed {
		return nil, "trimmed", nil
	}
	s = &Session{Summary: Summary{ID: source.ID}}
	look := newLook(f)
	for r, err := range source.Records(ctx) {
		if errors.Is(err, eventlog.ErrSessionNotFound) { // it was erased meanwhile
			return nil, "erased", nil
		}
		if _, trimmed := errors.AsType[*eventlog.TrimmedError](err); trimmed {
			return nil, "trimmed", nil
		}
		if err != nil {
			return nil, "", err
		}
		if r.Kind == "" || pieces[r.Type] || !json.Valid(r.Payload) {
			continue
		}
		look.see(r)
		s.Log = append(s.Log, r)
	}
	t := &look.tree
	if t.AgentType == "" {
		return nil, "", nil
	}
	if len(t.Parked) > 0 {
		return nil, "damaged", nil
	}
	s.Agent, s.Status, s.Tags = t.AgentType, string(t.Status), t.Tags
	if OfLab(source.ID, s.Agent) && f.Agent == "" || !f.takes(look) {
		return nil, "", nil
	}
	return s, "", nil
}

// The agent types of a lab's own sessions.
const (
	LabType    = "lab"        // docs/reference/lab.md#a-labs-sessions describes its records
	LaneType   = "lab-lane"   // no node has such an agent, so none continues lanes
	LabelsType = "lab-labels" // people's labels of the sessions of a cohort
)

var labIDs = regexp.MustCompile(`^lab-[0-9a-f]{12}-[0-9]+$`)

// OfLab reports whether a session is a lab's own: agents did not have it with users. An agent may have
// the name of a lab's type.
func OfLab(id, agentType string) bool {
	return agentType == LaneType || agentType == LabelsType || agentType == LabType && labIDs.MatchString(id)
}

// pieces are the types of records in which an answer streams. The complete answer has a record of
// its own.
var pieces = typesOf(
	new(eventlog.TextDelta), new(eventlog.Thinking), new(eventlog.ToolArgStreamStart), new(eventlog.ToolArgStreamDelta),
	new(eventlog.ToolArgStreamEnd), new(eventlog.SourceURL), new(eventlog.SourceDocument), new(eventlog.File),
)

func typesOf(chunks ...eventlog.Chunk) map[string]bool {
	types := map[string]bool{}
	for _, c := range chunks {
		types[c.Type()] = true
	}
	return types
}

// FromBackup yields the sessions of a backup. They must be read in their order, each before the next.
// Errors: those of backup.Read.
func FromBackup(ctx context.Context, in io.Reader) iter.Seq2[Source, error] {
	return func(yield func(Source, error) bool) {
		enough := errors.New("enough")
		_, _, err := backup.Read(ctx, in, backup.Visitor{
			Fold: func(string, snapshot.Saved) error { return nil },
			Session: func(id string, floor uint64, records iter.Seq2[eventlog.Copied, error]) error {
				source := Source{ID: id, Trimmed: floor > 0, Records: func(context.Context) iter.Seq2[eventlog.Record, error] {
					return backup.Plain(records)
				}}
				if !yield(source, nil) {
					return enough
				}
				return nil
			},
		})
		if err != nil && !errors.Is(err, enough) {
			yield(Source{}, err)
		}
	}
}

// rankOf is a session's place in the order of a seed.
func rankOf(seed uint64, id string) uint64 {
	sum := sha256.Sum256(append(binary.BigEndian.AppendUint64(nil, seed), id...))
	return binary.BigEndian.Uint64(sum[:])
}

type ranked struct {
	rank    uint64
	session Session
}
