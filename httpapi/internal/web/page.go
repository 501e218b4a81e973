package web

import (
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/projector/readmodel"
)

// Shown returns what callers learn about the read models: the problem itself is only in
// the log.
func Shown(f readmodel.Fresh) readmodel.Fresh {
	if f.Problem != "" {
		f.Problem = "the read models do not get on; the server's log says why"
	}
	return f
}

// MapPage returns a page of other items.
func MapPage[A, B any](p readmodel.Page[A], each func(A) B) api.Page[B] {
	out := api.Page[B]{Items: make([]B, len(p.Items)), Total: p.Total, Offset: p.Offset, Limit: p.Limit, HasMore: p.HasMore}
	for i, item := range p.Items {
		out.Items[i] = each(item)
	}
	return out
}
