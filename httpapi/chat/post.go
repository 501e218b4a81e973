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

// maxLooks is how often a POST /chat reads its session again because other requests have
// changed it meanwhile.
const maxLooks = 4

// Post answers POST /chat (see docs/reference/protocol.md#chat-streams): it does what the client's messages
// ask for, and answers with the stream of the assistant's message. The request is durable
// before the first byte of the answer.
func (s *Routes) Post(w http.ResponseWriter, r *web.Request) error {
	parts, err := textParts(r.Query)
	if err != nil {
		return err
	}
	body, err := s.readBody(w, r)
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
	return s.replyWith(w, r, body.session, reply)
}

// chat is a POST /chat that is being answered.
type chat struct {
	s    *Routes
	r    *web.Request
	body postBody
	// tree is the session at the last look, empty if there is none.
	tree *projector.Tree
	// ids are the ids of tree's user messages in histories; nil: not asked for yet. They need
	// the whole conversation, and are asked for one by one.
	ids map[*projector.Message]string
	// open are the calls of tree that the client may answer; nil: not asked for yet. They are
	// asked for by each part of the client's message.
	open map[string]*projector.Call
	// first is the head at the first look.
	first uint64
}

// answer takes the path that fits the session's state. The loop checks the state again
// when it appends: if another request was faster, answer chooses again.
func (c *chat) answer(ctx context.Context) (portion, error) {
	for look := 1; ; look++ {
		if err := c.look(ctx); err != nil {
			return portion{}, err
		}
		if look == 1 {
			c.first = c.tree.Head
		}
		take, err := c.choose()
		if err != nil {
			return portion{}, err
		}
		reply, err := take(c, ctx)
		switch {
		case !overtaken(err):
			return reply, err
		case look == maxLooks && errors.Is(err, agentloop.ErrMessageKnown):
			return portion{}, errNothingNew
		case look == maxLooks: // such as a session that is about to stop
			return portion{}, agentloop.ErrAlreadyRunning
		}
	}
}

func (c *chat) look(ctx context.Context) error {
	t, err := c.s.states.Head(ctx, c.body.session)
	if errors.Is(err, eventlog.ErrSessionNotFound) {
		t, err = new(projector.Tree), nil
	}
	c.tree, c.ids, c.open = t, nil, nil
	if err == nil && !auth.CallerOf(ctx).MayUse(t) { // since it was authorized
		return auth.ErrForbidden
	}
	return err
}

// overtaken reports whether an error means that the session's state has changed.
func overtaken(err error) bool {
	return slices.ContainsFunc([]error{
		agentloop.ErrAlreadyRunning, agentloop.ErrUseResume, agentloop.ErrAlreadyCompleted, agentloop.ErrNothingToResume,
		agentloop.ErrCallNotFound, agentloop.ErrMessageKnown, agentloop.ErrOtherAgent,
	}, func(target error) bool { return errors.Is(err, target) })
}

// choose returns the first of the paths that fits.
func (c *chat) choose() (func(*chat, context.Context) (portion, error), error) {
	if err := c.checkAgent(); err != nil {
		return nil, err
	}
	if c.changes() {
		return nil, web.Invalid("messages", "end with a message that the session has, which can't be changed")
	}
	for _, p := range paths {
		if p.fits(c) {
			return p.take, nil
		}
	}
	if c.speaks() {
		return nil, agentloop.ErrAlreadyRunning
	}
	return nil, errNothingNew
}

// checkAgent returns an error if the request names another agent than the session's: a
// session keeps its agent.
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

// live reports whether a node drives the session's run. If its process has died, no node
// does, and the next request resumes it.
func (c *chat) live() bool { return c.s.loop.Executing(c.r.Context(), c.tree) }
