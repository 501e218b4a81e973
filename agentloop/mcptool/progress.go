package mcptool

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/helixd/helixd/agentloop"
)

// ProgressEvent is the name of the custom events of a call's progress. Their
// data is {id, toolCallId, progress, total?, message?}: id is the call's too,
// so that a UI shows one part that changes.
const ProgressEvent = "mcp-progress"

const (
	progressInterval   = 200 * time.Millisecond
	maxProgressMessage = 1 << 10 // bytes
)

// progressData is the data of a ProgressEvent.
type progressData struct {
	ID         string  `json:"id"`
	ToolCallID string  `json:"toolCallId"`
	Progress   float64 `json:"progress"`
	Total      float64 `json:"total,omitempty"`
	Message    string  `json:"message,omitempty"`
}

// progress holds the newest progress of a call that has not been emitted.
type progress struct{ newest chan progressData }

// watch emits a call's progress until stop, which waits for an event that is being
// emitted. What has come after that one is dropped.
func (c *Client) watch(ctx context.Context, call *agentloop.Call) (token string, stop func()) {
	p := &progress{newest: make(chan progressData, 1)}
	c.mu.Lock()
	c.tokens++
	token = strconv.FormatUint(c.tokens, 10)
	c.watched[token] = p
	c.mu.Unlock()
	quit := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { p.emit(ctx, call, quit) })
	return token, func() {
		c.mu.Lock()
		delete(c.watched, token)
		c.mu.Unlock()
		close(quit)
		wg.Wait()
	}
}

func (p *progress) emit(ctx context.Context, call *agentloop.Call, quit <-chan struct{}) {
	for {
		select {
		case data := <-p.newest:
			data.ID, data.ToolCallID = call.ID, call.ID
			if call.Emit(ctx, ProgressEvent, data) != nil {
				return // it is the call that must succeed
			}
		case <-quit:
			return
		}
		select {
		case <-time.After(progressInterval):
		case <-quit:
			return
		}
	}
}

// onProgress takes a server's notification. It must not wait: the SDK queues
// what comes after it.
func (c *Client) onProgress(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
	token, _ := req.Params.ProgressToken.(string)
	c.mu.Lock()
	p := c.watched[token]
	c.mu.Unlock()
	if p == nil {
		return
	}
	message := req.Params.Message
	message = strings.ToValidUTF8(message[:min(len(message), maxProgressMessage)], "")
	select {
	case <-p.newest: // an older one
	default:
	}
	select {
	case p.newest <- progressData{Progress: req.Params.Progress, Total: req.Params.Total, Message: message}:
	default:
	}
}
