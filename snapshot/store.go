package snapshot

import (
	"context"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// Store folds sessions of a log.
type Store struct{ log eventlog.Log }

// New returns a store on log.
func New(log eventlog.Log) *Store { return &Store{log: log} }

// Head returns the state at the session's head. Errors: as eventlog.Log.Read.
func (s *Store) Head(ctx context.Context, session string) (*projector.Tree, error) {
	return s.fold(ctx, session, 0)
}

// At returns the state after all records with sequence <= n. Errors: as
// eventlog.Log.Read; a *eventlog.CursorAheadError if n is beyond the head.
func (s *Store) At(ctx context.Context, session string, n uint64) (*projector.Tree, error) {
	if n == 0 {
		if _, err := s.log.Head(ctx, session); err != nil {
			return nil, err
		}
		return new(projector.Tree), nil
	}
	return s.fold(ctx, session, n)
}

func (s *Store) fold(ctx context.Context, session string, to uint64) (*projector.Tree, error) {
	t := new(projector.Tree)
	for r, err := range s.log.Read(ctx, session, 0, to) {
		if err != nil {
			return nil, err
		}
		projector.Apply(t, r)
	}
	return t, nil
}
