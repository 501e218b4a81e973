package chat

import (
	"net/http"

	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/internal/web"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/uimessage"
	"github.com/helixd/helixd/snapshot"
)

// Snapshot answers GET /chat/{id}/snapshot.
// includePartialContent is on by default at a pause and if content replay is off.
func (s *Routes) Snapshot(w http.ResponseWriter, r *web.Request) error {
	partial := r.Query.Flag("includePartialContent", s.options().NoContentReplay)
	if *r.Query.Err != nil {
		return *r.Query.Err
	}
	snap, err := s.takeSnapshot(r, partial, r.Query.Values.Has("includePartialContent") && !partial)
	if err != nil {
		return err
	}
	return r.OK(w, api.Snapshot[uimessage.Message](*snap))
}

func (s *Routes) takeSnapshot(r *web.Request, partial, excludeAtPause bool) (*snapshot.Snapshot, error) {
	return s.states.Take(r.Context(), r.Session, snapshot.Options{
		IncludePartialContent: partial, ExcludeAtPause: excludeAtPause, MessageID: s.options().MessageID,
		Before: func(t *projector.Tree) error { return r.LargeAnswer(t.Bytes) },
	})
}

// Messages answers GET /chat/{id}/messages?offset&limit&includeReasoning&
// includeToolResults: a page of the messages that a snapshot has.
// includeReasoning=false leaves reasoning out; includeToolResults=false leaves the results
// of calls out.
func (s *Routes) Messages(w http.ResponseWriter, r *web.Request) error {
	p := r.Query.Page()
	reasoning, results := r.Query.Flag("includeReasoning", true), r.Query.Flag("includeToolResults", true)
	if *r.Query.Err != nil {
		return *r.Query.Err
	}
	snap, err := s.takeSnapshot(r, s.options().NoContentReplay, false)
	if err != nil {
		return err
	}
	page := web.PageOf(snap.Messages, p)
	for i := range page.Items {
		page.Items[i].Parts = wantedParts(page.Items[i].Parts, reasoning, results)
	}
	return r.OK(w, api.History[uimessage.Message]{Messages: page.Items, HasMore: page.HasMore})
}

func wantedParts(parts []uimessage.Part, reasoning, results bool) []uimessage.Part {
	wanted := []uimessage.Part{}
	for _, p := range parts {
		switch q := p.(type) {
		case uimessage.Reasoning:
			if !reasoning {
				continue
			}
		case uimessage.ToolOutputAvailable:
			if !results {
				p = withoutResult(q.Tool, q)
			}
		case uimessage.ToolOutputError:
			if !results {
				p = withoutResult(q.Tool, uimessage.ToolOutputAvailable{Input: q.Input})
			}
		}
		wanted = append(wanted, p)
	}
	return wanted
}

func withoutResult(tool uimessage.Tool, q uimessage.ToolOutputAvailable) uimessage.Part {
	tool.State = "input-available"
	return uimessage.ToolInputAvailable{Tool: tool, Input: q.Input}
}
