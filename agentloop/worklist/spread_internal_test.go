package worklist

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Two nodes that drive 30 trees each share them with a node that joins, without a word
// of it: 20 for each.
func TestOneOfTwoGivers(t *testing.T) {
	hosts := []string{"x"}
	joined := &peer{agents: hosts, heard: time.Now()}
	l := &Worklist{heard: time.Now(), peers: map[string]*peer{"b": {agents: hosts, heard: time.Now(), driven: 30}, "c": joined}}
	driven := 30
	give := func() (n int) {
		for l.Lighter("x", driven) == "c" {
			driven--
			n++
		}
		return n
	}
	require.Equal(t, 10, give())
	joined.driven = 10 // the other giver's, and half of this one's
	require.Zero(t, give())
	joined.driven = 20
	require.Zero(t, give())
	joined.driven, joined.handed.last = 0, time.Now().Add(-2*beat) // they did not arrive, or are finished
	require.Positive(t, give())
}
