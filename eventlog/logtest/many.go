package logtest

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
)

// manySessions appends to many sessions at once, as group commit is made for.
// Now and then an append's expectation is wrong: that one fails, and no other.
func manySessions(t *testing.T, log eventlog.Log) {
	const sessions, appends = 40, 8
	ctx := ctxOf(t)
	var wg sync.WaitGroup
	for s := range sessions {
		wg.Go(func() {
			session, head := fmt.Sprint("s", s), uint64(0)
			for i := range appends {
				if (s+i)%5 == 0 {
					var conflict *eventlog.ConflictError
					_, err := put(ctx, log, session, head+1, []eventlog.Entry{Text(session, "wrong"), Text(session, "wrong")})
					if !errors.As(err, &conflict) {
						t.Errorf("%s: a wrong expectation gives %v", session, err)
					}
				}
				batch := []eventlog.Entry{Text(session, fmt.Sprint(i)), Text(session, fmt.Sprint(i, "'"))}[:1+i%2]
				last, err := put(ctx, log, session, head, batch)
				if err != nil {
					t.Errorf("%s: append %d: %v", session, i, err)
					return
				}
				head = last
			}
		})
	}
	wg.Wait()
	var want []string
	for i := range appends {
		want = append(want, fmt.Sprint(i))
		if i%2 == 1 {
			want = append(want, fmt.Sprint(i, "'"))
		}
	}
	for s := range sessions {
		session := fmt.Sprint("s", s)
		require.Equal(t, want, texts(t, collect(t, log.Read(ctx, session, 0, 0))), session)
	}
}
