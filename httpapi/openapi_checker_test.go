package httpapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/helixd/helixd/snapshot/backup"
)

// apiChecker holds what clients send and get against the document.
type apiChecker struct {
	t    *testing.T
	doc  *apiDocument
	next http.RoundTripper

	mu   *sync.Mutex
	seen map[string]bool // see saw
}

// newChecker returns a checker of no server's.
func newChecker(t *testing.T) *apiChecker {
	t.Helper()
	return &apiChecker{t: t, doc: readOpenAPI(t), mu: new(sync.Mutex), seen: map[string]bool{}}
}

// watch has the checker see what the tests send to a server.
func (c *apiChecker) watch(a *testAPI) *testAPI {
	own := *c
	own.t, own.next = a.t, a.http.Client().Transport
	a.http.Client().Transport = &own
	return a
}

// RoundTrip implements http.RoundTripper. An answer is judged when it was read
// or is closed.
func (c *apiChecker) RoundTrip(r *http.Request) (*http.Response, error) {
	var sent []byte
	if r.GetBody != nil {
		body, err := r.GetBody()
		if err != nil {
			return nil, err
		}
		if sent, err = io.ReadAll(body); err != nil {
			return nil, err
		}
	}
	resp, err := c.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	resp.Body = &judged{ReadCloser: resp.Body, judge: func(got []byte, whole bool) {
		c.check(r.Method, r.URL, r.Header, sent, answer{resp.StatusCode, resp.Header, string(got)}, whole)
	}}
	return resp, nil
}

// judged is the body of an answer.
type judged struct {
	io.ReadCloser
	judge func(got []byte, whole bool)
	got   bytes.Buffer
	once  sync.Once
}

func (j *judged) Read(p []byte) (int, error) {
	n, err := j.ReadCloser.Read(p)
	j.got.Write(p[:n])
	if err == io.EOF {
		j.once.Do(func() { j.judge(j.got.Bytes(), true) })
	}
	return n, err
}

func (j *judged) Close() error {
	err := j.ReadCloser.Close()
	j.once.Do(func() { j.judge(j.got.Bytes(), false) })
	return err
}

// saw remembers that something of the document was seen.
func (c *apiChecker) saw(what ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen[strings.Join(what, " ")] = true
}

// find returns the operation that a request is for; none if no path or, then
// known, no method of it is the request's.
func (c *apiChecker) find(method string, u *url.URL) (op *apiOperation, known bool) {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	given := strings.Split(u.EscapedPath(), "/")
	if path.Clean(u.EscapedPath()) != u.EscapedPath() {
		return nil, false
	}
	for candidate := range c.doc.operations() {
		segments := strings.Split(candidate.path, "/")
		matches := len(segments) == len(given)
		for i := 0; matches && i < len(given); i++ {
			segment, err := url.PathUnescape(given[i])
			matches = err == nil && (strings.HasPrefix(segments[i], "{") || segments[i] == segment)
		}
		if matches && candidate.method == method {
			return candidate, true
		}
		known = known || matches
	}
	return nil, known
}

// check judges a request and its answer. What is not whole, as of a client that
// has left a stream, is judged as far as it goes.
func (c *apiChecker) check(method string, u *url.URL, h http.Header, sent []byte, got answer, whole bool) {
	op, known := c.find(method, u)
	complain := func(format string, args ...any) {
		c.t.Helper()
		c.t.Errorf("%s %s: %d: %s", method, u, got.status, fmt.Sprintf(format, args...))
	}
	if got.header.Get("X-Request-Id") == "" {
		complain("has no X-Request-Id")
	}
	if op == nil {
		op = &apiOperation{Responses: map[string]*apiResponse{"404": c.doc.Components.Responses["NotFound"]}}
		if known {
			op.Responses = map[string]*apiResponse{"405": c.doc.Components.Responses["MethodNotAllowed"]}
		}
	}
	for _, problem := range c.answerProblems(op, method, got, whole) {
		complain("the answer: %v", problem)
	}
	if got.status < 300 {
		for _, problem := range c.requestProblems(op, u, h, sent) {
			complain("the request: %v", problem)
		}
	}
}

// answerProblems says what the document does not say of an answer.
func (c *apiChecker) answerProblems(op *apiOperation, method string, got answer, whole bool) (problems []error) {
	status := strconv.Itoa(got.status)
	response := op.Responses[status]
	if response == nil {
		switch got.status {
		case 401, 403, 429, 500, 503:
			response = op.Responses["default"]
		}
	}
	if response == nil {
		return []error{fmt.Errorf("the status is not described: %.300s", got.body)}
	}
	c.saw(op.ID, status)
	for name, described := range response.Headers {
		if v := got.header.Get(name); v != "" {
			c.saw(op.ID, status, name)
			if err := c.validText(described.Schema, v); err != nil {
				problems = append(problems, fmt.Errorf("%s: %w", name, err))
			}
		}
	}
	contentType := got.header.Get("Content-Type")
	media := response.Content[contentType]
	switch {
	case media == nil && len(response.Content) == 0 && got.body == "":
		return problems
	case media == nil:
		return append(problems, fmt.Errorf("has the content type %q", contentType))
	case method == http.MethodHead:
		return problems
	case contentType == "application/zstd":
		if _, _, err := backup.Read(c.t.Context(), strings.NewReader(got.body), backup.Visitor{}); whole && err != nil {
			problems = append(problems, err)
		}
	case media.Items != nil:
		items, err := itemsOf(contentType, got.body)
		if err != nil {
			problems = append(problems, err)
		}
		for _, item := range items {
			if err := c.valid(op.ID+" "+status, media.Items, item); err != nil {
				problems = append(problems, err)
			}
			c.saw("item", keyOf(media.Items), typeOf(item))
		}
	case strings.HasPrefix(contentType, "text/"), contentType == "image/svg+xml":
		if err := c.validText(media.Schema, got.body); err != nil {
			problems = append(problems, err)
		}
	case whole:
		if err := c.valid(op.ID+" "+status, media.Schema, []byte(got.body)); err != nil {
			problems = append(problems, err)
		}
		var failure struct{ Code string }
		if got.status >= 400 && json.Unmarshal([]byte(got.body), &failure) == nil {
			c.saw(op.ID, status, failure.Code)
		}
	}
	return problems
}

// valid holds a value against a schema, and remembers the members that it has.
func (c *apiChecker) valid(where string, s apiSchema, raw []byte) error {
	value, err := c.doc.validate(s, raw)
	if err == nil {
		c.doc.eachMember(where, s, value, func(name string) { c.saw("member", name) })
	}
	return err
}

// typeOf returns the type of an event or a record.
func typeOf(item []byte) string {
	var data struct{ Type string }
	_ = json.Unmarshal(item, &data)
	if strings.HasPrefix(data.Type, dataPart) {
		return dataPart
	}
	return data.Type
}

// dataPart stands for all types that begin so.
const dataPart = "data-"

// itemsOf returns the data of a stream's events, or lines; what is cut off in
// the end is left out.
func itemsOf(contentType, body string) (items [][]byte, err error) {
	if contentType == "application/x-ndjson" {
		for line := range strings.Lines(body) {
			if strings.HasSuffix(line, "\n") && line != "\n" {
				items = append(items, []byte(line))
			}
		}
		return items, nil
	}
	for {
		frame, rest, ok := strings.Cut(body, "\n\n")
		if !ok {
			return items, err
		}
		body = rest
		var name, data string
		for line := range strings.SplitSeq(frame, "\n") {
			switch field, value, _ := strings.Cut(line, ": "); field {
			case "event":
				name = value
			case "data":
				data = value
			case "id", "": // or a comment
			default:
				err = fmt.Errorf("the line %q", line)
			}
		}
		if data == "" || data == "[DONE]" && rest == "" {
			continue
		}
		if name != "" && name != typeOf([]byte(data)) {
			err = fmt.Errorf("the event %q is not named after its type", name)
		}
		items = append(items, []byte(data))
	}
}
