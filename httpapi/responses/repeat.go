package responses

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/projector"
)

// nameOf names what a request with an idempotency key does. The same tenant, user, key and body have
// the same name, whatever the token, so a repetition finds the run that it would begin; with another body the key is
// another one.
func nameOf(caller auth.Caller, key string, body []byte) string {
	h := sha256.New()
	for _, part := range []string{caller.Tenant, caller.User, key} {
		sum := sha256.Sum256([]byte(part))
		h.Write(sum[:])
	}
	h.Write(body)
	return hex.EncodeToString(h.Sum(nil)[:20])
}

// newSession returns the id of the session that is made for the request, and the run in it if
// the request was carried out before.
func (c *creation) newSession(ctx context.Context) (string, engine.Started, error) {
	session := c.name
	if session == "" {
		session = c.s.newID()
	}
	if err := c.r.AuthorizeAs(session, true); err != nil || c.name == "" {
		return session, engine.Started{}, err
	}
	t, err := c.s.states.Head(ctx, session)
	if errors.Is(err, eventlog.ErrSessionNotFound) {
		return session, engine.Started{}, nil
	}
	if err != nil {
		return session, engine.Started{}, err
	}
	if run := t.RunNamed(c.name); run != nil {
		return session, started(session, run), nil
	}
	return session, engine.Started{}, nil
}

func started(session string, run *projector.Run) engine.Started {
	return engine.Started{SessionID: session, StreamID: session, RunID: run.RunID}
}
