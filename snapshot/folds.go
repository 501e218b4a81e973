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

// Folds keeps saved folds. It is a cache: everything in it can be lost, and
// is then folded again, but for what retention has removed.
type Folds interface {
	// Nearest returns the session's saved fold with the largest sequence
	// <= n that has one of the forms, the first of them that there is, or nil.
	// One of which parts are missing has no State.
	Nearest(ctx context.Context, session string, n uint64, forms ...Form) (*Saved, error)
	// Save keeps a fold and returns how many bytes that took. One in JSON takes
	// the place of another one in JSON. Folds that are too large for the store
	// are not kept, which is no error.
	Save(ctx context.Context, session string, s Saved) (int, error)
	// Sequences returns the sequences of the session's saved folds that have one
	// of the forms, rising, each once.
	Sequences(ctx context.Context, session string, forms ...Form) ([]uint64, error)
	// Erase removes all saved folds of a session, every byte of them.
	Erase(ctx context.Context, session string) error
}

// Form says how a saved fold is written.
type Form string

// JSON is of a projector.Tree. Any version reads it: so are folds saved that
// retention leaves in place of records.
const JSON Form = ""

// Packed is what other folds are saved in: it is read many times faster, by
// programs with the same fold and the same states.
var Packed = Form(fmt.Sprintf("%d-%s", projector.Version, pack.Schema[projector.Tree]()))

// Saved is the state of a session at a sequence.
type Saved struct {
	Sequence uint64
	// Version is the version of the fold that made it.
	Version int
	// Digest is of the record at Sequence. A log that has lost its end, in a
	// batched fsync mode, gives its sequences again; then it differs.
	Digest string
	Form   Form
	State  []byte
	// Cuts are where State can be cut, rising. Its pieces are mostly those of
	// other folds of the session, and need to be kept once.
	Cuts []int
	// Own is how many bytes no other fold shares, as Nearest returns it.
	Own int
}

// savedAs writes a state. It does not set Digest.
func savedAs(form Form, t *projector.Tree) (Saved, error) {
	s := Saved{Sequence: t.Head, Version: projector.Version, Form: form}
	if form == Packed {
		s.State, s.Cuts = pack.Encode(t)
		return s, nil
	}
	var err error
	s.State, err = json.Marshal(t)
	return s, err
}

// tree reads the state.
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
