package httpapi_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/debugger"
	"github.com/helixd/helixd/snapshot/backup"
)

// codes are the values of the constants of type Code.
var codes = sync.OnceValues(func() (map[api.Code]bool, error) {
	file, err := parser.ParseFile(token.NewFileSet(), "api/errors.go", nil, 0)
	if err != nil {
		return nil, err
	}
	all := map[api.Code]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if name, ok := spec.Type.(*ast.Ident); ok && name.Name == "Code" {
			for _, v := range spec.Values {
				code, _ := strconv.Unquote(v.(*ast.BasicLit).Value)
				all[api.Code(code)] = true
			}
		}
		return false
	})
	return all, nil
})

// check checks what holds for every answer: it is no internal error, and it is
// well formed.
func (w *fuzzWorld) check(target string, got fuzzAnswer) {
	t := w.t
	require.Empty(t, w.logs.String(), "errors are logged that are none of the client's")
	if got.broken && got.Header().Get("Content-Type") == "application/zstd" {
		return // a slow backup's end is not waited for
	}
	if got.broken {
		// The client's patience ended before an answer began.
		require.Empty(t, got.Body.String())
		return
	}
	require.NotEmpty(t, got.Header().Get("X-Request-Id"))
	body, kind := got.Body.String(), got.Header().Get("Content-Type")
	if n := got.Header().Get("Content-Length"); n != "" {
		require.Equal(t, n, strconv.Itoa(len(body)))
	}
	switch {
	case got.Code >= 400:
		checkError(t, target, got)
	case got.Code == http.StatusNoContent || got.method == http.MethodHead:
		if got.Code == http.StatusNoContent {
			require.Empty(t, body)
		}
	case got.Code >= 300:
		require.Fail(t, "nothing is elsewhere", "%d %s", got.Code, got.Header().Get("Location"))
	case got.Header().Get("Content-Security-Policy") != "":
		require.Equal(t, debugger.Policy, got.Header().Get("Content-Security-Policy"))
		require.NotEmpty(t, body)
	case kind == "application/json":
		require.True(t, json.Valid([]byte(body)), body)
	case kind == "application/x-ndjson":
		for line := range strings.Lines(body) {
			require.True(t, line == "\n" || strings.HasSuffix(line, "\n") && json.Valid([]byte(line)), line) // or a heartbeat
		}
	case kind == "application/zstd":
		_, _, err := backup.Read(t.Context(), strings.NewReader(body), backup.Visitor{})
		require.NoError(t, err)
	case kind == "text/event-stream":
		checkEvents(t, body)
	case strings.HasPrefix(kind, "text/html"), strings.HasPrefix(kind, "text/css"), strings.HasPrefix(kind, "text/javascript"):
		require.NotEmpty(t, got.Header().Get("Content-Security-Policy"), "a part of the debugger's page")
	case strings.HasPrefix(kind, "text/plain; version=0.0.4"):
		parser := expfmt.NewTextParser(model.UTF8Validation)
		_, err := parser.TextToMetricFamilies(strings.NewReader(body))
		require.NoError(t, err)
	default:
		require.Fail(t, "an answer of an unknown kind", "%d %s: %s", got.Code, kind, body)
	}
}

func checkError(t *testing.T, target string, got fuzzAnswer) {
	if got.Code >= 500 {
		// The only one that a healthy server with a chat has: a run that does
		// not stop in time.
		require.Equal(t, http.StatusGatewayTimeout, got.Code, got.Body.String())
		require.True(t, strings.Contains(target, "/interrupt") || strings.Contains(target, "/abort"), target)
	}
	if got.method == http.MethodHead {
		return
	}
	known, err := codes()
	require.NoError(t, err)
	require.NotEmpty(t, known)
	require.Equal(t, "application/json", got.Header().Get("Content-Type"))
	var body api.ErrorBody
	require.NoError(t, json.Unmarshal(got.Body.Bytes(), &body), got.Body.String())
	require.True(t, known[body.Code], "code %q", body.Code)
	require.NotEmpty(t, body.Error)
	require.Equal(t, got.Header().Get("X-Request-Id"), body.RequestID)
	require.Equal(t, got.Code == http.StatusGatewayTimeout, body.Code == api.CodeInterruptDeadline)
	if got.Code == http.StatusMethodNotAllowed {
		require.NotEmpty(t, got.Header().Get("Allow"))
	}
}

// checkEvents reads a stream that was cut between two events.
func checkEvents(t *testing.T, body string) {
	require.True(t, body == "" || strings.HasSuffix(body, "\n\n"), "cut within an event: %q", body)
	last := uint64(0)
	for event := range strings.SplitSeq(strings.TrimSuffix(body, "\n\n"), "\n\n") {
		if event == "" || strings.HasPrefix(event, ": ") {
			continue
		}
		fields := map[string]string{}
		for line := range strings.SplitSeq(event, "\n") {
			name, value, found := strings.Cut(line, ": ")
			require.True(t, found && (name == "id" || name == "event" || name == "data"), "line %q", line)
			require.NotContains(t, fields, name)
			require.NotContains(t, value, "\r")
			fields[name] = value
		}
		if id, ok := fields["id"]; ok {
			whole, _, _ := strings.Cut(id, ".") // of chat streams; see requireRising
			n, err := strconv.ParseUint(whole, 10, 64)
			require.NoError(t, err)
			require.GreaterOrEqual(t, n, last, "ids rise")
			last = n
		}
		data := fields["data"]
		require.True(t, data == "[DONE]" || json.Valid([]byte(data)), "data %q", data)
	}
}
