package drive

import (
	"errors"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine/internal/tracing"
	"github.com/helixd/helixd/eventlog"
)

func (t *task) traced() tracing.Agent {
	of := tracing.Agent{Session: t.session, Run: t.runID}
	if t.def != nil {
		of.Name = t.def.Name
	}
	return of
}

// brokeOff says that nothing was made of a model's answer.
func brokeOff(span tracing.ModelSpan, err error) {
	switch {
	case errors.Is(err, errUnwanted):
		span.Cancelled()
	case errors.Is(err, agentloop.ErrStopping):
		span.Released(releasedFor(err))
	default:
		span.Fail(agentloop.CodeInternal, agentloop.CodeInternal)
	}
}

func releasedFor(err error) string {
	switch {
	case err == nil:
		return "at_rest"
	case errors.Is(err, ErrHandedOver):
		return "handed_over"
	case errors.Is(err, agentloop.ErrStopping):
		return "stopping"
	case errors.Is(err, eventlog.ErrSuperseded):
		return "superseded"
	case errors.Is(err, eventlog.ErrSessionNotFound):
		return "erased"
	}
	return "broken_off"
}
