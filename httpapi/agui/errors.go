package agui

import (
	"fmt"
	"net/http"

	"github.com/helixd/helixd/httpapi/api"
)

// Problem is a request that the protocol does not allow.
type Problem struct {
	Status  int
	Message string
	Code    api.Code
}

func (p *Problem) Error() string { return "httpapi: ag-ui: " + p.Message }

// ErrorOf returns an error as the protocol's clients know it: as the event that ends a run which
// has failed. body is the same error as helixd's own routes show it.
func ErrorOf(_ error, _ int, body api.ErrorBody) any { return runError(body.Error, string(body.Code)) }

func runError(message, code string) object {
	e := object{"type": typeRunError, "message": message}
	if code != "" {
		e["code"] = code
	}
	return e
}

func invalid(format string, args ...any) *Problem {
	return &Problem{Status: http.StatusBadRequest, Message: fmt.Sprintf(format, args...), Code: api.CodeInvalidRequest}
}
