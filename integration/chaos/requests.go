//go:build unix

package main

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/helixd/helixd/httpapi/client"
	"github.com/helixd/helixd/integration/deployment"
)

// answerWithin is how long a client waits for a node that says nothing before it asks another one.
const answerWithin = 8 * time.Second

// unsure reports whether a request may or may not have been carried out, and is to be
// made again.
func (t *trial) unsure(err error) bool {
	status := deployment.Status(err)
	if status == http.StatusInternalServerError {
		t.note("an answer 500", "%v", err)
	}
	return err != nil && !errors.Is(err, client.ErrMalformed) && (status == 0 || status >= 500)
}

// anyNode returns one node, by the clients' link.
func (t *trial) anyNode(r *rand.Rand) *client.Client { return t.member(r.Int()).api }

func (t *trial) get(c *client.Client, path string) ([]byte, error) {
	return deployment.Get(t.ctx, c, path)
}
