package mcptool

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
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
func (c *Client) callError(err error, d *delivery) error {
	if refused, ok := errors.AsType[*jsonrpc.Error](err); ok && refused.Code != codeRejected {
		return errors.New(cut("the MCP server refused the call: " + c.hide.Hide(refused.Message, hidden)))
	}
	status := int(d.status.Load())
	switch {
	case status >= 300:
		text := fmt.Errorf("the MCP server answered with status %d %s", status, http.StatusText(status))
		return &failure{text, c.explain(err, status)}
	case d.sent.Load():
		return &failure{errLost, c.explain(err, 0)}
	}
	return &failure{errUnreachable, c.explain(err, 0)}
}

// failure is the error for the model; the log and the record's cause have the address.
type failure struct {
	error
	cause *upstream.Error
}

func (e *failure) Unwrap() []error { return []error{e.error, e.cause} }

// explain says what the server has done, for operators. status is that of its answer; 0: none.
func (c *Client) explain(err error, status int) *upstream.Error {
	setting := func(name string) string { return "mcp." + name + " of " + c.server.Name }
	if c.server.URL == "" {
		e := &upstream.Error{Program: filepath.Base(c.server.Command[0]), Check: setting("command"), Cause: err}
		if opened, ok := errors.AsType[*openError](err); ok {
			e.Reason = opened.Error()
		}
		return e
	}
	e := upstream.Explain(c.server.URL, setting("url"), err)
	if status >= 300 {
		e.Status = status
	}
	if status == http.StatusUnauthorized || status == http.StatusForbidden {
		e.Check = setting("headers")
	}
	return e
}

// down is the error of a call without a connection to the server.
func (c *Client) down() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.why == nil {
		return errDown
	}
	return &failure{errDown, c.why}
}

// openError is why a server can't be opened. Its text has no secret; its cause may.
type openError struct {
	text, cause error
	status      int // of the last answer over HTTP; 0: none
}

func (e *openError) Error() string { return e.text.Error() }
func (e *openError) Unwrap() error { return e.cause }

// hidden is in place of what a server quotes of its headers and variables.
const hidden = "[hidden]"

// reason is why a server can't be opened, for its operator: the cause without
// the URL and other secrets.
func (c *Client) reason(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.New("it did not answer in time")
	}
	return errors.New(cut(c.hide.Hide(err.Error(), hidden)))
}

// cut shortens a text to agentloop.MaxErrorText.
func cut(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), agentloop.MaxErrorText)], "")
}
