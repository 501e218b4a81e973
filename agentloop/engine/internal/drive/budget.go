package drive

import (
	"context"
	"fmt"
	"strconv"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine/internal/retrying"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/quota"
	"github.com/helixd/helixd/eventlog/fact"
)

// What a model call may use is estimated, since only its provider can count it.
const (
	bytesPerToken  = 3    // of text; most languages have more
	tokensPerFile  = 1600 // of a message
	likelyAnswer   = 4096 // tokens, of a model without a bound
	likelyMessage  = 8    // tokens of a message beside its text
	likelyToolSpec = 16   // tokens of a tool beside its schema
)

// reserve reserves what a call may use of its tenant's day. Errors:
// *quota.Exceeded; what quota.Days returns.
func (t *task) reserve(ctx context.Context, req model.Request) (*quota.Reservation, error) {
	q, tenant := t.host.Quota, t.tenant()
	if !q.Daily(tenant) {
		return nil, nil
	}
	answer := model.MaxOutputTokensOf(t.def.Model)
	if answer <= 0 {
		answer = likelyAnswer
	}
	estimate := fact.TokenUsage{Prompt: promptTokens(req), Completion: answer}
	return q.Reserve(ctx, tenant, t.session, t.host.NewID(), model.NameOf(t.def.Model), estimate)
}

// settleBudget replaces a call's reservation with what it has used. What can't be
// settled counts as it was reserved.
func (t *task) settleBudget(ctx context.Context, held *quota.Reservation, used fact.TokenUsage, name string) {
	if held == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), retrying.AppendTimeout)
	defer cancel()
	if err := held.Settle(ctx, name, used); err != nil {
		t.logger().Error("can't settle what a model call has spent: it counts as estimated", "error", err)
	}
}

func (t *task) tenant() string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.tree.Tenant
}

// overBudget is why a call is not made.
func overBudget(e *quota.Exceeded) *model.Error {
	most := strconv.FormatFloat(e.Most, 'f', -1, 64)
	text := fmt.Sprintf("the tenant's budget of the day is spent: %s is %s; it is renewed at midnight UTC", e.Limit, most)
	if e.InFlight {
		text = fmt.Sprintf("other calls of the tenant may use all that is left of the day's budget: %s is %s", e.Limit, most)
	}
	return &model.Error{Code: agentloop.CodeQuotaExceeded, Message: text, Retryable: e.InFlight, Cause: e}
}

// spent is what a call that has ended with err has used: what the provider says or,
// if it says nothing, an estimate. A call that has failed without an answer has used
// nothing.
func (a *modelAnswer) spent(ctx context.Context, req model.Request, done model.Answer, err error) fact.TokenUsage {
	text := 0
	for _, p := range a.parts {
		text += p.text.Len()
		if p.call != nil {
			text += p.call.args.Len()
		}
	}
	switch {
	case err == nil && done.Usage.Prompt+done.Usage.Completion > 0:
		return done.Usage
	case err != nil && ctx.Err() == nil && len(a.parts) == 0:
		return fact.TokenUsage{}
	}
	return fact.TokenUsage{Prompt: promptTokens(req), Completion: tokens(text)}
}

func tokens(bytes int) int64 { return int64((bytes + bytesPerToken - 1) / bytesPerToken) }

// promptTokens estimates a request's tokens.
func promptTokens(req model.Request) int64 {
	bytes, n := len(req.System), int64(0)
	for _, m := range req.Messages {
		bytes += len(m.Content)
		n += likelyMessage + int64(len(m.Files))*tokensPerFile
		for _, p := range m.Parts {
			bytes += len(p.Text)
			if p.ToolCall != nil {
				bytes += len(p.ToolCall.Name) + len(p.ToolCall.Arguments)
			}
		}
	}
	for _, tool := range req.Tools {
		bytes += len(tool.Name) + len(tool.Description) + len(tool.InputSchema)
		n += likelyToolSpec
	}
	return n + tokens(bytes)
}
