package eventlog

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"iter"
	"time"

	"github.com/helixd/helixd/eventlog/fact"
)

const (
	// importBatchBytes is the size of payloads beyond which an import's batch
	// takes no further record.
	importBatchBytes = 8 << 20
	// importKeyedBytes is the same for records of one append with a key.
	importKeyedBytes = 64 << 20
	// importBatchTimeout is how long one batch may take.
	importBatchTimeout = 30 * time.Second
)

// ImportOptions are options of [Import].
type ImportOptions struct {
	// Restore translates what rollbacks carry; see projector.TranslateRestore.
	// nil: it stays as it is, and a fold of the import parks them.
	Restore TranslateRestore
}

// Imported says how far an import has come.
type Imported struct {
	SessionID string `json:"sessionId"`
	Records   int    `json:"records"`  // of the source that are in the log now
	Appended  int    `json:"appended"` // of those, by this call
	// FirstSequence and LastSequence are those of the records in this log.
	FirstSequence uint64 `json:"firstSequence"`
	LastSequence  uint64 `json:"lastSequence"`
	// SHA256 is of all records as they are in this log, but for their
	// sequences and times. It is set when the import is complete and was
	// read back.
	SHA256 string `json:"sha256,omitempty"`
}

// Import appends all records of another log's session to a new session of the
// same id, in order, truncated ones included: a session tree with its states,
// its effective stream, its time travel. Each record's [Origin] has its
// sequence and time in the log where it was first stored. Payloads stay byte
// for byte, except that the sequences in markers are translated (the ranges and cursors
// of truncated, what a rollback restores, stream_resync).
// Records of types that this version does not know stay as they are,
// sequences in them too.
//
// A record keeps its writer: the attempts of a later claim count on from imported claims, and
// a client that repeats an append with an idempotency key gets the
// sequences that its records have here. Expected sequences and cursors of
// clients are of the other log and mean nothing here.
//
// Records are appended in batches of at most [MaxAppendRecords], all or none
// each; those of an append with a key stay together. If an import breaks, the same
// import can be made again: it continues after the records that are there. At the end all
// records are read back and compared. Until then readers see the session as far as the
// import has come. If ctx has an actor, see fact.WithActor, a [fact.SessionImported] after the records
// names it, once however often the import is repeated. No more than one batch is held,
// and [Sequences].
//
// Errors: those that records yields; *ValidationError about the record that
// was taken from records last; ErrSessionExists if the session has other
// records; *ConflictError if another writer appends to it meanwhile; ErrErasing;
// ErrOutcomeUnknown; ErrTooLarge; ErrDamaged if the records that are read back are
// not those that were sent. With an error, Imported says what is there.
func Import(ctx context.Context, log Log, session string, records iter.Seq2[Record, error], o ImportOptions) (Imported, error) {
	if err := ValidateSessionID(session); err != nil {
		return Imported{}, err
	}
	im := &importer{ctx: ctx, log: log, session: session, opts: o, sum: sha256.New(), done: Imported{SessionID: session}}
	next, stop := iter.Pull2(log.Read(ctx, session, 0, 0))
	defer stop()
	im.there = next
	err := im.run(records)
	return im.done, err
}

// importer is an import that is under way.
type importer struct {
	ctx     context.Context
	log     Log
	session string
	opts    ImportOptions

	// there yields what the session had at the start, until it is nil.
	there     func() (Record, error, bool)
	sequences Sequences
	head      uint64 // up to where the session in this log is known
	last      uint64 // sequence of the last record that was taken
	rooted    bool   // one of the session's own was taken

	pending []Entry  // that are not in the log yet
	olds    []uint64 // their sequences in the other log
	bytes   int      // of their payloads
	keyed   int      // where those of the last append with a key begin

	sum  hash.Hash
	done Imported
}

func (im *importer) run(records iter.Seq2[Record, error]) error {
	for r, err := range records {
		if err != nil {
			return err
		}
		if err := im.take(r); err != nil {
			return err
		}
	}
	if im.last == 0 {
		return &ValidationError{Reason: "there are no records"}
	}
	if err := im.flush(len(im.pending)); err != nil {
		return err
	}
	if err := im.verify(); err != nil {
		return err
	}
	return im.sign()
}

// sign appends a record with the caller that made the import, if ctx has an actor and the log
// has no such record yet.
func (im *importer) sign() error {
	f := &fact.SessionImported{
		Records: im.done.Records, Base: fact.Base{SessionID: im.session, Timestamp: time.Now().UnixMilli()},
	}
	if fact.SetActor(im.ctx, f); f.By == nil {
		return nil
	}
	signed := false
	_, err := Update(im.ctx, im.log, im.session, UpdateOptions{
		Writer: randomID("import:"),
		CatchUp: reading(im.log, im.session, im.done.LastSequence, true, func(r Record) error {
			signed = signed || isSignature(r)
			return nil
		}),
	}, func(uint64) ([]Entry, error) {
		if signed {
			return nil, nil
		}
		return entriesOf(im.session, f)
	})
	return err
}

// take puts a record into the log, or into what goes there next.
func (im *importer) take(r Record) error {
	if err := validateRecord(r); err != nil {
		return err
	}
	switch {
	case !im.rooted && !isForeign(r.Envelope) && r.Agent != im.session:
		return &ValidationError{Field: "agent", Reason: fmt.Sprintf(
			"is %q: a session is imported under its own id only, since its records contain it too", r.Agent)}
	case r.Sequence <= im.last:
		return &ValidationError{Field: "sequence", Reason: fmt.Sprintf("must rise: %d comes after %d", r.Sequence, im.last)}
	}
	im.last, im.rooted = r.Sequence, im.rooted || !isForeign(r.Envelope)
	if refers(r.Envelope) { // to records whose new sequences must be known
		if err := im.flush(len(im.pending)); err != nil {
			return err
		}
		payload, err := translated(r.Entry, &im.sequences, im.opts.Restore)
		if err != nil {
			return err
		}
		r.Payload = payload
	}
	if r.Origin == (Origin{}) { // else it was imported before
		r.Origin = Origin{Sequence: r.Sequence, Time: r.Time}
	}
	r.Origin.Time = r.Origin.Time.UTC() // as logs keep it
	if im.there != nil {
		found, err := im.find(r)
		if found || err != nil {
			return err
		}
	}
	return im.put(r)
}

// find reports whether the session had the record at the start.
func (im *importer) find(r Record) (bool, error) {
	got, err, more := im.there()
	for more && err == nil && isSignature(got) { // of this import, when it had fewer records
		im.head = got.Sequence
		got, err, more = im.there()
	}
	if !more || im.done.Records == 0 && errors.Is(err, ErrSessionNotFound) {
		im.there = nil
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if got.Envelope != r.Envelope || !bytes.Equal(got.Payload, r.Payload) {
		return false, fmt.Errorf("%w: its record %d is not the import's %d", ErrSessionExists, got.Sequence, r.Sequence)
	}
	im.added(r.Sequence, got.Sequence, r.Entry)
	return true, nil
}

// isSignature reports whether a record names the caller that made an import into this log.
// An imported signature is a record like others.
func isSignature(r Record) bool {
	return r.Kind == KindFact && r.Type == (*fact.SessionImported)(nil).Type() && r.Origin == (Origin{})
}

// put makes r pending. Records of one append with a key have no gaps between them: they
// stay in one append.
func (im *importer) put(r Record) error {
	if n := len(im.pending); n > 0 && (n == MaxAppendRecords || im.bytes+len(r.Payload) > importBatchBytes) {
		fits := n < MaxAppendRecords && im.bytes+len(r.Payload) <= importKeyedBytes
		if im.continues(r) && (fits || im.keyed > 0) {
			n = im.keyed
		}
		if err := im.flush(n); err != nil {
			return err
		}
	}
	if !im.continues(r) {
		im.keyed = len(im.pending)
	}
	im.pending, im.olds = append(im.pending, r.Entry), append(im.olds, r.Sequence)
	im.bytes += len(r.Payload)
	return nil
}

// continues reports whether r is of the same append with a key as the last
// record that is pending.
func (im *importer) continues(r Record) bool {
	_, _, keyed := ParseKeyedWriter(r.Writer)
	n := len(im.pending)
	return keyed && n > 0 && im.pending[n-1].Writer == r.Writer && im.pending[n-1].Ordinal+1 == r.Ordinal
}

// flush appends the first n records that are pending.
func (im *importer) flush(n int) error {
	if n == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(im.ctx, importBatchTimeout)
	defer cancel()
	last, _, err := appendOrFind(ctx, im.log, im.session, im.head, im.pending[:n])
	if err != nil {
		return err
	}
	first := last + 1 - uint64(n)
	for i, e := range im.pending[:n] {
		im.added(im.olds[i], first+uint64(i), e)
		im.bytes -= len(e.Payload)
	}
	im.done.Appended += n
	im.pending, im.olds = append([]Entry(nil), im.pending[n:]...), append([]uint64(nil), im.olds[n:]...)
	im.keyed = max(im.keyed-n, 0)
	return nil
}

func (im *importer) added(old, new uint64, e Entry) {
	im.sequences.add(old, new)
	if im.done.Records == 0 {
		im.done.FirstSequence = new
	}
	im.done.Records++
	im.done.LastSequence, im.head = new, new
	addEntry(im.sum, e)
}

// verify reads everything back.
func (im *importer) verify() error {
	sum, n := sha256.New(), 0
	for r, err := range im.log.Read(im.ctx, im.session, 0, im.done.LastSequence) {
		if err != nil {
			return err
		}
		if isSignature(r) {
			continue
		}
		addEntry(sum, r.Entry)
		n++
	}
	want, got := im.sum.Sum(nil), sum.Sum(nil)
	if n != im.done.Records || !bytes.Equal(want, got) {
		return fmt.Errorf("%w: of %d imported records %d are read back, with SHA-256 %x, not %x", ErrDamaged, im.done.Records, n, got, want)
	}
	im.done.SHA256 = hex.EncodeToString(want)
	return nil
}

// addEntry adds an entry's envelope and payload to a sum.
func addEntry(sum hash.Hash, e Entry) {
	envelope, _ := Marshal(e.Envelope) // of strings and numbers
	sum.Write(binary.BigEndian.AppendUint64(nil, uint64(len(envelope))))
	sum.Write(envelope)
	sum.Write(binary.BigEndian.AppendUint64(nil, uint64(len(e.Payload))))
	sum.Write(e.Payload)
}
