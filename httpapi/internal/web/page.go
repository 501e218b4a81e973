package web

import (
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/projector/readmodel"
)

// Ask queries read models about the sessions that the caller may see. Others are not
// counted either.
func Ask[T any](r *Request, ask func(readmodel.Visible) (readmodel.Answer[T], error)) (readmodel.Answer[T], error) {
	var undecided error
	var visible readmodel.Visible // nil: all, which takes no look at each
	if r.Authenticated {
		visible = func(root string) bool {
			yes, err := r.Visible(root)
			if err != nil && undecided == nil {
				undecided = err
			}
			return yes && undecided == nil
		}
	}
	found, err := ask(visible)
	if undecided != nil {
		return readmodel.Answer[T]{}, undecided
	}
	found.Fresh = Shown(found.Fresh)
	return found, err
}

// Shown returns what callers learn about the read models: the problem itself is only in
// the log.
func Shown(f readmodel.Fresh) readmodel.Fresh {
	if f.Problem != "" {
		f.Problem = "the read models do not get on; the server's log says why"
	}
	return f
}

// PageOf returns a page of a list.
func PageOf[T any](all []T, p readmodel.Paging) api.Page[T] {
	from := min(p.Offset, len(all))
	to := min(from+p.Limit, len(all))
	return api.Page[T]{Items: append([]T{}, all[from:to]...), Total: len(all), Offset: p.Offset, Limit: p.Limit, HasMore: to < len(all)}
}

// MapPage returns a page of other items.
func MapPage[A, B any](p readmodel.Page[A], each func(A) B) api.Page[B] {
	out := api.Page[B]{Items: make([]B, len(p.Items)), Total: p.Total, Offset: p.Offset, Limit: p.Limit, HasMore: p.HasMore}
	for i, item := range p.Items {
		out.Items[i] = each(item)
	}
	return out
}
