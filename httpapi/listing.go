package httpapi

import (
	"errors"
	"net/http"

	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/projector/readmodel"
)

// serveListing answers with a page of the read models.
func serveListing[T any](s *inspectRoutes, w http.ResponseWriter, r *request, ask func(readmodel.Visible) (readmodel.Answer[api.Page[T]], error)) error {
	found, err := asked(s, r, ask)
	if err != nil {
		return err
	}
	return r.ok(w, api.Listing[T]{Page: found.Value, Fresh: found.Fresh})
}

// asked asks the read models about the sessions that the caller may see: what
// it may not is not counted either.
func asked[T any](s *inspectRoutes, r *request, ask func(readmodel.Visible) (readmodel.Answer[T], error)) (readmodel.Answer[T], error) {
	if s.readModels == nil {
		return readmodel.Answer[T]{}, errNoReadModels
	}
	var undecided error
	var visible readmodel.Visible // nil: all, which takes no look at each
	if r.authenticated {
		visible = func(root string) bool {
			yes, err := r.visible(root)
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

// errNoReadModels refuses what folds can't tell.
var errNoReadModels = errors.New("httpapi: no read models here")
