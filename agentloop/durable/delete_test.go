package durable

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/snapshot"
)

// overtaken has something happen right before an erasure.
type overtaken struct {
	eventlog.Log
	by func()
}

func (l *overtaken) Erase(ctx context.Context, session string) (eventlog.Erasure, error) {
	if by := l.by; by != nil {
		l.by = nil
		by()
	}
	return l.Log.Erase(ctx, session)
}

// A node that erases a stream which has expired, or whose last fork is gone, can be slow.
// Meanwhile another one erases it, and a client creates a stream with its name, which stays.
func TestALateErasureLeavesTheNextStream(t *testing.T) {
	for name, source := range map[string]bool{"of an expired stream": false, "of a source that remained for a fork": true} {
		t.Run(name, func(t *testing.T) {
			log, now := memory.New(), time.Now()
			node := func(log eventlog.Log) *Streams {
				s := New(log, snapshot.New(log, nil), nil)
				s.now = func() time.Time { return now }
				return s
			}
			late := &overtaken{Log: log}
			slow, quick := node(late), node(log)
			id, fork, ttl := eventlog.DurableLogID("s"), eventlog.DurableLogID("f"), int64(1)
			create := func() {
				_, created, err := quick.Create(t.Context(), id, Owner{}, Create{TTL: &ttl, Data: []byte("old")})
				require.NoError(t, err)
				require.True(t, created)
			}
			create()
			if source {
				_, _, err := quick.Create(t.Context(), fork, Owner{}, Create{Fork: &Fork{Source: id}})
				require.NoError(t, err)
				require.NoError(t, quick.Delete(t.Context(), id, Owner{}))
			}
			now = now.Add(time.Hour)
			again := func() {
				create()
				a := Append{ContentType: DefaultContentType, Data: []byte(" and new")}
				require.NoError(t, a.Parse())
				_, err := quick.Append(t.Context(), id, Owner{}, a)
				require.NoError(t, err)
			}
			late.by = again
			if source {
				late.by = func() { late.by = again } // that of the fork comes first
				require.NoError(t, slow.Expire(t.Context(), fork))
			} else {
				require.NoError(t, slow.Expire(t.Context(), id))
			}
			require.Nil(t, late.by)
			v, err := quick.Open(t.Context(), id)
			require.NoError(t, err)
			require.EqualValues(t, len("old and new"), v.Tail.Position)
		})
	}
}
