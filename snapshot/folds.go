package snapshot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/snapshot/pack"
)

// Folds stores saved folds. It is a cache: a lost fold is computed again, except if
// retention has removed its records.
type Folds interface {
	// Nearest returns the session's saved fold with the largest sequence <= n that has
	// one of the forms; of several, in the first of the forms. Without one it returns
	// nil. If the fold or parts of it are lost, its State is empty, which is no error.
	Nearest(ctx context.Context, session string, n uint64, forms ...Form) (*Saved, error)
	// Save stores a fold and returns how many bytes that took. It replaces a fold of the same
	// form and sequence; one of the same version and digest stays as it is, since it may
	// be all that is left of its records. If another node stores another fold there at the
	// same time, that one stays, and Save fails. A fold that is too large is not stored,
	// which is no error.
	Save(ctx context.Context, session string, s Saved) (int, error)
	// Sequences returns the sequences of the session's saved folds that have one of the
	// forms, rising and without repetition.
	Sequences(ctx context.Context, session string, forms ...Form) ([]uint64, error)
	// Erase removes all saved folds of a session, every byte of them.
	Erase(ctx context.Context, session string) error
}

// Form is the encoding of a saved fold.
type Form string

// JSON is a projector.Tree in JSON, which every version can read. Folds that retention
// leaves in place of records are saved in it.
const JSON Form = ""

// packed is the form of other folds. It is read many times faster, but only by programs
// with the same fold and the same types.
var packed = Form(fmt.Sprintf("%d-%s", projector.Version, pack.Schema[projector.Tree]()))

// Saved is the state of a session at a sequence.
type Saved struct {
	Sequence uint64
	// Version is the version of the fold that computed it. If retention has removed its
	// records, that may have continued a state of another version.
	Version int
	// Digest is the digest of the record at Sequence. A log that has lost its end, in a
	// batched fsync mode, assigns its sequences again; then the digests differ.
	Digest string
	Form   Form
	State  []byte
	// Cuts are the places where State can be cut, rising. Most of its pieces are also
	// pieces of the session's other folds, and need to be stored once.
	Cuts []int
	// Own is how many bytes no other fold shares, as returned by Nearest.
	Own int
}

// savedAs encodes a state. It does not set Digest.
func savedAs(form Form, t *projector.Tree) (Saved, error) {
	s := Saved{Sequence: t.Head, Version: projector.Version, Form: form}
	if form == packed {
		s.State, s.Cuts = pack.Encode(t)
		return s, nil
	}
	var err error
	s.State, err = json.Marshal(t)
	return s, err
}

// tree decodes the state.
func (s *Saved) tree() (*projector.Tree, error) {
	t := new(projector.Tree)
	var err error
	if s.Form == JSON {
		err = json.Unmarshal(s.State, t)
	} else {
		err = pack.Decode(s.State, t)
	}
	if err == nil && t.Head != s.Sequence {
		err = fmt.Errorf("snapshot: fold saved at %d is of %d", s.Sequence, t.Head)
	}
	return t, err
}

func digest(r eventlog.Record) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s %d ", r.Writer, r.Ordinal)
	h.Write(r.Payload)
	return hex.EncodeToString(h.Sum(nil)[:16])
}
