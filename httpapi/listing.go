package httpapi

import (
	"cmp"
	"errors"
	"net/http"

	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/projector/readmodel"
)

// serveListing answers with a page of the read models.
func serveListing[T any](s *Server, w http.ResponseWriter, r *request, ask func(readmodel.Visible) (readmodel.Answer[api.Page[T]], error)) error {
	found, err := asked(s, r, ask)
	if err != nil {
		return err
	}
	return s.ok(w, api.Listing[T]{Page: found.Value, Fresh: found.Fresh})
}

// asked asks the read models about the sessions that the caller may see: what
// it may not is not counted either.
func asked[T any](s *Server, r *request, ask func(readmodel.Visible) (readmodel.Answer[T], error)) (readmodel.Answer[T], error) {
	if s.opts.ReadModels == nil {
		return readmodel.Answer[T]{}, errNoReadModels
	}
	var undecided error
	var visible readmodel.Visible // nil: all, which takes no look at each
	if s.authenticated {
		visible = func(root string) bool {
			yes, err := s.visible(r, root)
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
	found.Fresh = shown(found.Fresh)
	return found, err
}

// shown is what callers are told: what the problem is stands in the log.
func shown(f readmodel.Fresh) readmodel.Fresh {
	if f.Problem != "" {
		f.Problem = "the read models do not get on; the server's log says why"
	}
	return f
}

// visible reports whether the caller may see a session in a listing.
func (s *Server) visible(r *request, id string) (bool, error) {
	err := s.allow(r.Request, r.op, id) // not what the request is about, which authorize notes
	if errors.Is(err, auth.ErrForbidden) || errors.Is(err, auth.ErrUnauthorized) {
		return false, nil
	}
	return err == nil, err
}

// user returns the user whose sessions a listing is about: the one that the query
// names, else the only one that the caller reaches, else "" for all.
func (r *request) user() (string, error) {
	named, err := r.query.word("userId")
	c := auth.CallerOf(r.Context())
	return cmp.Or(named, c.OnlyUser()), cmp.Or(err, c.CheckUser(named))
}

// pageOf is a page of the read models as the server answers with it.
func pageOf[T any](p readmodel.Page[T]) api.Page[T] {
	return mapPage(p, func(item T) T { return item })
}

func mapPage[A, B any](p readmodel.Page[A], each func(A) B) api.Page[B] {
	out := api.Page[B]{Items: make([]B, len(p.Items)), Total: p.Total, Offset: p.Offset, Limit: p.Limit, HasMore: p.HasMore}
	for i, item := range p.Items {
		out.Items[i] = each(item)
	}
	return out
}
