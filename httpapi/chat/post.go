package chat

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/httpapi/internal/web"
	"github.com/helixd/helixd/projector"
)

var errNothingNew = web.Invalid("messages", "hold nothing new")

// maxLooks is how often a request to chat looks at its session again because
// others have changed it meanwhile.
const maxLooks = 4

// Post answers POST /chat (document 004, facts 4.4): it does what the
// client's messages ask for, which is durable before the first byte, and
// answers with the stream of what comes of it.
func (s *Routes) Post(w http.ResponseWriter, r *web.Request) error {
	parts, err := textParts(r.Query)
	if err != nil {
		return err
	}
	body, err := s.readChat(w, r)
	if err != nil {
		return err
	}
	if err := r.Authorize(body.session); err != nil {
		return err
	}
	caller := auth.CallerOf(r.Context())
	if err := caller.CheckUser(body.labels.UserID); err != nil {
		return err
	}
	body.labels.UserID = cmp.Or(body.labels.UserID, caller.User)
	if err := r.OpenStream(); err != nil { // before anything is changed
		return err
	}
	ctx, cancel := r.Detached()
	defer cancel()
	c := &chat{s: s, r: r, body: body}
	reply, err := c.answer(ctx)
	if err != nil {
		return err
	}
	r.LeaveBody() // the answer may take long
	reply.always, reply.textParts = true, parts
	return s.replyChat(w, r, body.session, reply)
}

// chat is a POST /chat that is being answered.
type chat struct {
	s    *Routes
	r    *web.Request
	body chatBody
	// tree is the session at the last look, empty if there is none.
	tree *projector.Tree
	// first is the head at the first look.
	first uint64
}

// answer takes the path that fits the session's state. The loop judges the
// state once more when it appends: if others were faster, the choice is made
// anew.
func (c *chat) answer(ctx context.Context) (chatReply, error) {
	for look := 1; ; look++ {
		if err := c.look(ctx); err != nil {
			return chatReply{}, err
		}
		if look == 1 {
			c.first = c.tree.Head
		}
		take, err := c.choose()
		if err != nil {
			return chatReply{}, err
		}
		reply, err := take(c, ctx)
		switch {
		case !overtaken(err):
			return reply, err
		case look == maxLooks && errors.Is(err, agentloop.ErrMessageKnown):
			return chatReply{}, errNothingNew
		case look == maxLooks: // such as a session that is about to stop
			return chatReply{}, agentloop.ErrAlreadyRunning
		}
	}
}

func (c *chat) look(ctx context.Context) error {
	t, err := c.s.states.Head(ctx, c.body.session)
	if errors.Is(err, eventlog.ErrSessionNotFound) {
		t, err = new(projector.Tree), nil
	}
	c.tree = t
	if err == nil && !auth.CallerOf(ctx).MayUse(t) { // since it was authorized
		return auth.ErrForbidden
	}
	return err
}

// overtaken reports whether the loop found the session in another state.
func overtaken(err error) bool {
	return slices.ContainsFunc([]error{
		agentloop.ErrAlreadyRunning, agentloop.ErrUseResume, agentloop.ErrAlreadyCompleted, agentloop.ErrNothingToResume,
		agentloop.ErrCallNotFound, agentloop.ErrMessageKnown, agentloop.ErrOtherAgent,
	}, func(target error) bool { return errors.Is(err, target) })
}

// choose returns the first of the paths that fits.
func (c *chat) choose() (func(*chat, context.Context) (chatReply, error), error) {
	if err := c.checkAgent(); err != nil {
		return nil, err
	}
	if c.changes() {
		return nil, web.Invalid("messages", "end with a message that the session has, which can't be changed")
	}
	for _, p := range chatPaths {
		if p.fits(c) {
			return p.take, nil
		}
	}
	if c.speaks() {
		return nil, agentloop.ErrAlreadyRunning
	}
	return nil, errNothingNew
}

// checkAgent refuses to have another agent answer than the session's: it keeps
// the one that began it (config.md).
func (c *chat) checkAgent() error {
	if named := c.namedAgent(); c.tree.AgentType != "" && named != "" && named != c.tree.AgentType {
		return agentloop.ErrOtherAgent
	}
	return nil
}

// namedAgent returns the agent that the request names, or "".
func (c *chat) namedAgent() string {
	if c.body.agentType != "" {
		return c.body.agentType
	}
	return c.r.Header.Get(api.HeaderAgent)
}

// live reports whether the session's run is driven. One whose process has died
// is not: the next request has it go on.
func (c *chat) live() bool { return c.s.loop.Executing(c.r.Context(), c.tree) }
