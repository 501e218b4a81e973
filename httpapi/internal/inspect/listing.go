package inspect

import (
	"errors"
	"net/http"

	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/internal/web"
	"github.com/helixd/helixd/projector/readmodel"
)

// serveListing answers with a page of the read models.
func serveListing[T any](s *Routes, w http.ResponseWriter, r *web.Request, ask func(readmodel.Visible) (readmodel.Answer[api.Page[T]], error)) error {
	found, err := asked(s, r, ask)
	if err != nil {
		return err
	}
	if found.Value.Items == nil {
		found.Value.Items = []T{}
	}
	return r.OK(w, api.Listing[T]{Page: found.Value, Fresh: found.Fresh})
}

// asked is web.Ask, if there are read models.
func asked[T any](s *Routes, r *web.Request, ask func(readmodel.Visible) (readmodel.Answer[T], error)) (readmodel.Answer[T], error) {
	if s.readModels == nil {
		return readmodel.Answer[T]{}, ErrNoReadModels
	}
	return web.Ask(r, ask)
}

// ErrNoReadModels: the question can't be answered from folds.
var ErrNoReadModels = errors.New("httpapi: no read models here")
