package web

import (
	"net/http"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/httpapi/api"
)

// slowClient takes each write just before the longest time that a piece may take.
type slowClient struct {
	http.ResponseWriter
	deadline time.Time
}

func (c *slowClient) SetWriteDeadline(t time.Time) error {
	c.deadline = t
	return nil
}

func (c *slowClient) Write(p []byte) (int, error) {
	time.Sleep(api.WriteTimeout - time.Second)
	if time.Now().After(c.deadline) {
		return 0, os.ErrDeadlineExceeded
	}
	return len(p), nil
}

// A client that takes each piece of a large answer just in time does not hold the
// answer for hours.
func TestALargeAnswerHasALastMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, w, began := &Gate{WriteTimeout: api.WriteTimeout}, new(slowClient), time.Now()
		require.ErrorIs(t, g.WriteAll(w, http.NewResponseController(w), make([]byte, 16<<20)), os.ErrDeadlineExceeded)
		require.Less(t, time.Since(began), 6*time.Minute)
		require.NoError(t, g.WriteAll(w, http.NewResponseController(w), make([]byte, pieceBytes)))
	})
}

// An id that no header can hold is left out, and nothing is sent in its place.
func TestNameSession(t *testing.T) {
	for id, named := range map[string]bool{"s/1": true, "a b~": true, "größe": false, "tab\tid": false, "日": false} {
		h := http.Header{}
		NameSession(h, id)
		require.Equal(t, named, h.Values(api.HeaderSession) != nil, id)
	}
}
