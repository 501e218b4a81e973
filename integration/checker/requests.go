package checker

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/helixd/helixd/httpapi/client"
	"github.com/helixd/helixd/integration/deployment"
)

// AnswerWithin is how long a client waits for a node that says nothing before it asks another
// one: see [deployment.Client].
const AnswerWithin = 8 * time.Second

// unsure reports whether a request may or may not have been carried out, and is to be
// made again.
func (c *Checker) unsure(err error) bool {
	status := deployment.Status(err)
	if status == http.StatusInternalServerError {
		c.Note("an answer 500", "%v", err)
	}
	return err != nil && !errors.Is(err, client.ErrMalformed) && (status == 0 || status >= 500)
}

// node is one of the nodes.
func (c *Checker) node(i int) Node {
	all := c.Nodes()
	return all[i%len(all)]
}

// anyNode returns one node, as clients reach it.
func (c *Checker) anyNode(r *rand.Rand) *client.Client { return c.node(r.Int()).Clients }

func (c *Checker) get(at *client.Client, path string) ([]byte, error) {
	return deployment.Get(c.ctx, at, path)
}
