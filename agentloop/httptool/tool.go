package httptool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/otel/propagation"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model/upstream"
	"github.com/helixd/helixd/eventlog"
)

// maxResponse is how much of an answer is read, in bytes; a longer one is an
// error.
const maxResponse = 8 << 20

// maxUsage is how many kinds of usage an answer may have; a longer one is an error.
const maxUsage = 32

// maxEvents is how many events an answer may have: each is an append. A longer one is an error.
const maxEvents = 1000

// Options configure an endpoint.
type Options struct {
	Headers map[string]string // sent with every call
	Client  *http.Client      // nil: a new one that follows no redirects
}

// request is the body of a call.
type request struct {
	ToolCallID string          `json:"toolCallId"`
	ToolName   string          `json:"toolName"`
	SessionID  string          `json:"sessionId"`
	RunID      string          `json:"runId"`
	AgentType  string          `json:"agentType"`
	Arguments  json.RawMessage `json:"arguments"`
	State      json.RawMessage `json:"state"`
}

// response is the body of an answer.
type response struct {
	Result  json.RawMessage    `json:"result"`
	Patches []eventlog.PatchOp `json:"patches"`
	Events  []struct {
		Name string          `json:"name"`
		Data json.RawMessage `json:"data"`
	} `json:"events"`
	Usage map[string]float64 `json:"usage"`
}

// Execute returns the Execute function of a tool at url.
func Execute(url string, o *Options) func(context.Context, *agentloop.Call, json.RawMessage) (any, error) {
	var opts Options
	if o != nil {
		opts = *o
	}
	if opts.Client == nil {
		opts.Client = upstream.NoRedirects(nil)
	}
	hide := upstream.SecretsOf(opts.Headers)
	return func(ctx context.Context, c *agentloop.Call, args json.RawMessage) (any, error) {
		answer, err := post(ctx, opts, hide, url, c, args, c.State())
		if err != nil {
			return nil, err
		}
		for _, name := range slices.Sorted(maps.Keys(answer.Usage)) {
			if err := c.RecordUsage(ctx, name, answer.Usage[name]); err != nil {
				return nil, err
			}
		}
		for _, e := range answer.Events {
			if err := c.Emit(ctx, e.Name, e.Data); err != nil {
				return nil, fmt.Errorf("event: %w", err)
			}
		}
		if len(answer.Patches) > 0 {
			if err := c.Patch(answer.Patches); err != nil {
				return nil, err
			}
		}
		return answer.Result, nil
	}
}

func post(ctx context.Context, o Options, hide upstream.Secrets, url string, c *agentloop.Call, args, state json.RawMessage) (*response, error) {
	body, err := json.Marshal(request{
		ToolCallID: c.ID, ToolName: c.ToolName, SessionID: c.SessionID, RunID: c.RunID, AgentType: c.AgentType,
		Arguments: args, State: state,
	})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("the tool's URL is unusable")
	}
	for name, value := range o.Headers {
		req.Header.Set(name, value)
	}
	req.Header.Set("Content-Type", "application/json")
	// In lower case: net/http takes a POST with the canonical name for one that it may repeat, even if
	// the endpoint has read it. Without it, only what was never written is sent again.
	req.Header.Del("Idempotency-Key")
	req.Header["idempotency-key"] = []string{headerValue(c.IdempotencyKey)}
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(req.Header))
	resp, err := o.Client.Do(req)
	if err != nil {
		return nil, unreachable(c, url, err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse+1))
	if err != nil {
		return nil, unreachable(c, url, err)
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return nil, refused(c, req.URL.Host, resp.StatusCode, excerpt(raw, hide))
	}
	if len(raw) > maxResponse {
		return nil, fmt.Errorf("the tool's answer has more than %d bytes", maxResponse)
	}
	var answer response
	if err := json.Unmarshal(bytes.ToValidUTF8(raw, []byte(string(utf8.RuneError))), &answer); err != nil {
		return nil, fmt.Errorf("the tool's answer is not of the form {\"result\": …}%s", excerpt(raw, hide))
	}
	if len(answer.Usage) > maxUsage {
		return nil, fmt.Errorf("the tool's answer has more than %d kinds of usage", maxUsage)
	}
	if len(answer.Events) > maxEvents {
		return nil, fmt.Errorf("the tool's answer has more than %d events", maxEvents)
	}
	if answer.Result == nil {
		answer.Result = json.RawMessage("null")
	}
	return &answer, nil
}

// failure is the text for the model, which need not know the tool's address: the log and the
// record's cause have it.
type failure struct {
	text  string
	cause *upstream.Error
}

func (e *failure) Error() string { return e.text }
func (e *failure) Unwrap() error { return e.cause }

func unreachable(c *agentloop.Call, address string, err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	cause := upstream.Explain(address, setting(c, "url"), err)
	if cause.Reason == "" && errors.Is(err, context.DeadlineExceeded) {
		cause.Reason = "no answer in time"
	}
	text := "the tool could not be reached"
	if cause.Reason != "" {
		text += ": " + cause.Reason
	}
	return &failure{text, cause}
}

// refused is an answer that is no success.
func refused(c *agentloop.Call, host string, status int, said string) error {
	check := setting(c, "url")
	if status == http.StatusUnauthorized || status == http.StatusForbidden {
		check = setting(c, "headers")
	}
	return &failure{
		fmt.Sprintf("the tool answered with status %d%s", status, said),
		&upstream.Error{Host: host, Status: status, Check: check},
	}
}

// setting is one of the tool's in the configuration of its agent.
func setting(c *agentloop.Call, name string) string { return "tools." + c.ToolName + ".http." + name }

// maxQuoted is how much of an answer that is an error is looked at, in bytes.
const maxQuoted = 64 << 10

// excerpt returns the beginning of an answer that is an error, without the headers that it may quote.
func excerpt(body []byte, hide upstream.Secrets) string {
	text := strings.TrimSpace(upstream.Cut(hide.Hide(string(body[:min(len(body), maxQuoted)]), "[hidden]"), agentloop.MaxErrorText))
	if text == "" {
		return ""
	}
	return ": " + text
}

// headerValue quotes a key that no header line can hold.
func headerValue(s string) string {
	for i := range len(s) {
		if s[i] < ' ' || s[i] >= 0x7f {
			q := strconv.QuoteToASCII(s)
			return q[1 : len(q)-1]
		}
	}
	return s
}
