package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func event(n int, sent time.Time) []byte {
	return fmt.Appendf(nil, `{"type":"chunk","chunk":{"type":"text_delta","delta":%q},"sequence":1}`, text(n, sent.UnixNano()))
}

// What is lost, comes twice or comes out of order is found.
func TestAClientTakesTheNextChunkOnly(t *testing.T) {
	for name, tc := range map[string]struct {
		n  int
		id uint64
		ok bool
	}{
		"the next one":            {3, 25, true},
		"the same one":            {2, 20, false},
		"the same one, renamed":   {2, 25, false},
		"the one after the next":  {4, 30, false},
		"one before":              {1, 25, false},
		"under the same sequence": {3, 20, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := &follower{last: 20, chunks: 2}
			err := c.take(tc.id, event(tc.n, time.Now()))
			require.Equal(t, tc.ok, err == nil, "%v", err)
		})
	}
	require.ErrorContains(t, new(follower).take(1, []byte(`{"type":"end"}`)), "what is this?")
}

// A client is current with the last chunk that it had missed, and that shows
// with the first one that it had not.
func TestAClientIsCurrent(t *testing.T) {
	began := time.Now()
	c := &follower{connected: true, crowd: &crowd{}, in: make(chan struct{}), nodes: []string{"a", "b"}}
	c.mark(began)
	c.left(true)
	c.entered()
	_, _, ok := c.times()
	require.False(t, ok)
	require.NoError(t, c.take(1, event(1, began))) // missed
	_, _, ok = c.times()
	require.False(t, ok)
	require.NoError(t, c.take(2, event(2, time.Now().Add(time.Second))))
	back, current, ok := c.times()
	require.True(t, ok)
	require.GreaterOrEqual(t, current, back)
	require.Equal(t, c.caught.Sub(began), current)
}

// A consumer for a client is a violation.
func TestClientsHaveNoConsumers(t *testing.T) {
	r := newReport(options{}, 0)
	require.NoError(t, r.looked("before", span{least: 2, most: 2, looks: 2}, nil))
	require.NoError(t, r.looked("during", span{least: 2, most: maxConsumers, looks: 2}, nil))
	require.ErrorContains(t, r.looked("during", span{least: 2, most: maxConsumers + 1, looks: 2}, nil), "violation")
	require.Error(t, r.looked("during", span{}, nil), "nobody has counted")
}
