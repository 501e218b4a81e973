package checker

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"sync"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/integration/deployment"
	"github.com/helixd/helixd/integration/evidence"
)

// Agents.
const (
	agentWalker = "walker" // thinks, calls tools at once, speaks
	agentBoss   = "boss"   // the same, and approvals, client tools and sub-agents
)

// tools are the HTTP tools that agents call.
type tools struct {
	*deployment.Service
	c     *Checker
	delay time.Duration // between two pieces of what a model says

	mu   sync.Mutex
	keys map[string]string    // by session and call
	last map[string]time.Time // when a call was begun last
	runs int
}

func startTools(c *Checker) (s *tools, err error) {
	s = &tools{c: c, keys: map[string]string{}, last: map[string]time.Time{}}
	// All sessions together say about 600 pieces a second.
	s.delay = max(15*time.Millisecond, time.Duration(c.Sessions/2)*1500*time.Microsecond)
	s.Service, err = deployment.Serve(s)
	return s, err
}

// ServeHTTP works as a tool does, slowly enough to be interrupted. The same call must
// have the same idempotency key, from any node and however often: by it a tool knows that
// it has done the call.
func (s *tools) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var call struct {
		SessionID, ToolCallID string
		Arguments             struct{ City string }
	}
	if err := json.NewDecoder(r.Body).Decode(&call); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	key, name := r.Header.Get("Idempotency-Key"), call.SessionID+" "+call.ToolCallID
	s.mu.Lock()
	old, known := s.keys[name]
	s.keys[name], s.last[name] = key, time.Now()
	s.runs++
	s.mu.Unlock()
	if known && old != key {
		s.c.Violate(call.SessionID, nil, "call %s is made with the idempotency key %q and then with %q", call.ToolCallID, old, key)
	}
	h := fnv.New32a()
	fmt.Fprint(h, name)
	if eventlog.Sleep(r.Context(), time.Duration(10+h.Sum32()%150)*time.Millisecond) != nil {
		return
	}
	fmt.Fprintf(w, `{"result":{"city":%q,"sky":"grey"},"patches":[{"op":"add","path":"/%s","value":"seen"}],"events":[{"name":"looked","data":%q}]}`,
		call.Arguments.City, call.Arguments.City, call.Arguments.City)
}

// again returns an error if a call was begun again after its result was recorded.
// Where a node can continue that the others take for dead, it may be.
func (s *tools) again(records []eventlog.Record) error {
	if !s.c.Once {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range records {
		f, err := r.Fact()
		result, ok := f.(*fact.ToolResult)
		if err != nil || !ok {
			continue
		}
		// A record's time may be some milliseconds early.
		if last := s.last[r.Agent+" "+result.ToolCallID]; last.After(r.Time.Add(100 * time.Millisecond)) {
			return evidence.Wrong([]uint64{r.Sequence}, "call %s was made at %s, after its result was recorded at %s", result.ToolCallID, last, r.Time)
		}
	}
	return nil
}

func (s *tools) count() (calls, runs int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.keys), s.runs
}

// Config is the agents' part of a node's configuration.
func (c *Checker) Config() string { return Agents(c.tools.URL, c.tools.delay) }

// Agents is the agents' part of a node's configuration, with the URL of their tools and the
// time between two pieces of what a model says.
func Agents(tool string, delay time.Duration) string {
	return fmt.Sprintf(`
agents:
  walker:
    model:
      provider: scripted
      scriptDelay: %[2]s
      script:
        - reasoning: I think about it for a while, word by word, and then I look at two places.
          toolCalls:
            - {id: l1, name: look, arguments: {city: Paris}}
            - {id: l2, name: look, arguments: {city: Oslo}}
        - text: Now a third one is missing, so I look at it, too.
          toolCalls:
            - {id: l3, name: look, arguments: {city: Rome}}
        - text: Paris is warm, Oslo is cold and Rome is in between, as it should be, and this is all that there is to be said about it today.
    tools: &tools
      look:
        inputSchema: {type: object, properties: {city: {type: string}}, required: [city]}
        http: {url: %[1]q}
  boss:
    model:
      provider: scripted
      scriptDelay: %[2]s
      script:
        - reasoning: I think about it for a while, word by word.
          toolCalls:
            - {id: l1, name: look, arguments: {city: Paris}}
            - {id: l2, name: look, arguments: {city: Oslo}}
        - text: Now all at once.
          toolCalls:
            - {id: p1, name: go, arguments: {city: Rome}}
            - {id: p2, name: go, arguments: {city: Bonn}}
            - {id: c1, name: ask, arguments: {}}
            - {id: s1, name: subagent__clerk, arguments: {message: file it}}
            - {id: s2, name: subagent__scout, arguments: {message: look there}}
        - toolCalls:
            - {id: b1, name: companion__spawnAgent, arguments: {agent: helper, name: h, initialMessage: help}}
        - text: All of that is done, and nobody is left who could want anything more of it.
    tools:
      look:
        inputSchema: {type: object, properties: {city: {type: string}}, required: [city]}
        http: {url: %[1]q}
      go:
        inputSchema: {type: object, properties: {city: {type: string}}, required: [city]}
        http: {url: %[1]q}
        requireApproval: true
      ask: {client: true}
    subAgents: [clerk, scout]
    persistentAgents: [{agent: helper, mode: blocking}]
  clerk:
    model:
      provider: scripted
      scriptDelay: %[2]s
      script:
        - {text: Which file is it?, toolCalls: [{id: c2, name: file, arguments: {}}]}
        - {text: It is filed., toolCalls: [{id: f1, name: __finish__, arguments: {sum: 1}}]}
    outputSchema: {type: object}
    tools: {file: {client: true}}
  scout:
    model:
      provider: scripted
      scriptDelay: %[2]s
      script:
        - {toolCalls: [{id: l4, name: look, arguments: {city: Lyon}}]}
        - {text: I have looked there., toolCalls: [{id: f2, name: __finish__, arguments: {sum: 2}}]}
    outputSchema: {type: object}
    tools: *tools
  helper:
    model:
      provider: scripted
      scriptDelay: %[2]s
      script:
        - toolCalls: [{id: l5, name: look, arguments: {city: Rome}}]
        - text: I have helped.
    tools: *tools
`, tool, delay)
}
