package mcptool

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model/upstream"
)

// Errors for the model about a call that got no answer.
var (
	errClosed      = errors.New("the MCP server is closed")
	errDown        = errors.New("the MCP server is down")
	errUnreachable = errors.New("the MCP server could not be reached")
	errLost        = errors.New("the MCP server gave no valid answer, or its connection ended during the call: whether it was carried out is not known")
)

// codeRejected is the SDK's own code for what its transport did not send.
const codeRejected = -32005

// callError is the error for the model about a failed request: the server's text,
// or ours, without addresses, headers and sessions.
func callError(err error, d *delivery) error {
	if refused, ok := errors.AsType[*jsonrpc.Error](err); ok && refused.Code != codeRejected {
		return errors.New(cut("the MCP server refused the call: " + refused.Message))
	}
	if status := int(d.status.Load()); status >= 300 {
		return fmt.Errorf("the MCP server answered with status %d %s", status, http.StatusText(status))
	}
	if d.sent.Load() {
		return errLost
	}
	return &unreachableError{upstream.Explain("", "mcp.url", err)}
}

// unreachableError is errUnreachable to the model; the log has the address.
type unreachableError struct{ cause *upstream.Error }

func (*unreachableError) Error() string   { return errUnreachable.Error() }
func (e *unreachableError) Unwrap() error { return e.cause }

// reason is why a server can't be opened, for its operator: the cause without
// the URL, which may hold a secret.
func reason(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.New("it did not answer in time")
	}
	return errors.New(cut(err.Error()))
}

// cut shortens a text to agentloop.MaxErrorText.
func cut(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), agentloop.MaxErrorText)], "")
}
