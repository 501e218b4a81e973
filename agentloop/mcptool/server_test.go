package mcptool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
)

// With serverDir the test binary is an MCP server on stdio. The folder is how
// server and test tell each other what has happened.
const (
	serverDir  = "MCPTOOL_TEST_DIR"
	serverMode = "MCPTOOL_TEST_MODE" // empty; stubborn: it ends by SIGKILL only; parent: a child has its pipes, too; flooding: see flood
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(serverDir); dir != "" {
		os.Exit(serveStdio(dir))
	}
	goleak.VerifyTestMain(m)
}

func serveStdio(dir string) int {
	note(dir, "starts", fmt.Sprintln(os.Getpid()))
	fmt.Fprintln(os.Stderr, "a line for stderr")
	if _, err := os.Stat(filepath.Join(dir, "broken")); err == nil {
		return 7
	}
	switch os.Getenv(serverMode) {
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		defer func() { select {} }()
	case "flooding":
		return flood()
	case "parent":
		child := exec.Command("sleep", "600")
		child.Stdin, child.Stdout = os.Stdin, os.Stdout
		if child.Start() != nil {
			return 1
		}
		note(dir, "children", fmt.Sprintln(child.Process.Pid))
	}
	if newServer(dir).Run(context.Background(), &mcp.StdioTransport{}) != nil {
		return 1
	}
	return 0
}

// note appends to a file of the folder.
func note(dir, file, text string) {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		panic(err)
	}
}

var anyObject = json.RawMessage(`{"type":"object"}`)

// newServer returns a server with the tools that the tests call.
func newServer(dir string) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	text := func(lines ...string) *mcp.CallToolResult {
		r := &mcp.CallToolResult{Content: []mcp.Content{}}
		for _, line := range lines {
			r.Content = append(r.Content, &mcp.TextContent{Text: line})
		}
		return r
	}
	add := func(name string, f func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error)) {
		s.AddTool(&mcp.Tool{Name: name, Description: "Does " + name + ".", InputSchema: anyObject}, f)
	}
	s.AddTool(&mcp.Tool{
		Name: "echo", Description: "Says it again.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`),
	}, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		note(dir, "echoes", "x")
		return &mcp.CallToolResult{StructuredContent: map[string]any{
			"arguments": req.Params.Arguments, "meta": req.Params.Meta["helix/idempotencyKey"], "pid": os.Getpid(),
		}}, nil
	})
	add("text", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return text("one", "two"), nil
	})
	add("nothing", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return text(), nil })
	add("picture", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		r := text("look")
		r.Content = append(r.Content, &mcp.ImageContent{Data: []byte("png"), MIMEType: "image/png"})
		return r, nil
	})
	add("digits", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		const n = `{"id":9007199254740993}`
		r := text(n)
		r.StructuredContent = json.RawMessage(n)
		return r, nil
	})
	add("fail", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		r := text("no luck", strings.Repeat("é", 8<<10))
		r.IsError = true
		return r, nil
	})
	add("fail_silently", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{IsError: true}, nil
	})
	add("refuse", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "not like that"}
	})
	add("environment", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return text(os.Environ()...), nil
	})
	add("slow", func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		note(dir, "slow", "started\n")
		waitForFile(ctx, filepath.Join(dir, "go"))
		if ctx.Err() != nil {
			note(dir, "slow", "cancelled\n")
		}
		return nil, errors.New("cancelled")
	})
	add("progress", func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
			ProgressToken: req.Params.GetProgressToken(), Progress: 1, Total: 2, Message: "half",
		})
		waitForFile(ctx, filepath.Join(dir, "go"))
		return text("done"), err
	})
	add("die", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		os.Exit(3)
		return nil, nil
	})
	add("grow", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		s.AddTool(&mcp.Tool{Name: "new", InputSchema: anyObject}, nil)
		return text("grown"), nil
	})
	return s
}
