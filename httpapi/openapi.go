package httpapi

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"

	"github.com/goccy/go-yaml"
	"github.com/helixd/helixd/httpapi/internal/web"
)

// openapiYAML describes all routes (OpenAPI 3.1). It is written by hand; tests
// hold it against the routing table, the error table, and what the server
// really takes and answers.
//
//go:embed openapi.yaml
var openapiYAML []byte

// openapiJSON is the same as JSON. It is made for the first request.
var openapiJSON = sync.OnceValues(func() (json.RawMessage, error) { return yaml.YAMLToJSON(openapiYAML) })

// openapi answers GET /openapi.json.
func (s *Server) openapi(w http.ResponseWriter, r *web.Request) error {
	doc, err := openapiJSON()
	if err != nil {
		return fmt.Errorf("httpapi: openapi.yaml: %w", err)
	}
	return r.OK(w, doc)
}
