package responses

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/httpapi/internal/web"
)

// params are the parameters of POST /v1/responses.
type params struct {
	model        string
	session      string // of the conversation; empty: none is named
	previous     string // id of a response, or empty
	instructions string
	tools        []fact.ClientTool
	stream       bool
	kept         kept
	input        input
}

// kept is what the adapter keeps with a run, so that a response shows it: the member Client
// of the run's options.
type kept struct {
	Protocol     string            `json:"protocol"` // always protocolName
	Conversation bool              `json:"conversation,omitempty"`
	Previous     string            `json:"previousResponseId,omitempty"`
	Background   bool              `json:"background,omitempty"`
	Metadata     map[string]string `json:"metadata,omitempty"`
	// Echo are parameters that a response only repeats.
	Echo map[string]json.RawMessage `json:"echo,omitempty"`
}

const protocolName = "responses"

// echoed are the parameters that have no effect, or whose effect is elsewhere, and that a
// response repeats. Sampling is the agent's to decide.
var echoed = []string{
	"temperature", "top_p", "presence_penalty", "frequency_penalty", "top_logprobs", "max_output_tokens", "max_tool_calls",
	"tool_choice", "parallel_tool_calls", "reasoning", "text", "truncation", "service_tier", "safety_identifier", "prompt_cache_key",
	"user",
}

// Limits of metadata: keys and values in characters.
const (
	maxPairs = 16
	maxKey   = 64
	maxValue = 512
)

// paramsOf reads the body of POST /v1/responses.
func paramsOf(o *web.Object) (params, bool, error) {
	o.DropNulls()
	p := params{kept: kept{Protocol: protocolName, Echo: map[string]json.RawMessage{}}}
	p.model, p.previous, p.instructions = o.OptText("model"), o.OptText("previous_response_id"), o.OptText("instructions")
	p.stream = flag(o, "stream", false)
	p.kept.Background = flag(o, "background", false)
	store := flag(o, "store", true)
	p.kept.Previous = p.previous
	var err error
	if p.kept.Metadata, err = metadataOf(o); err != nil {
		return p, store, err
	}
	if p.session, p.kept.Conversation, err = conversationOf(o); err != nil {
		return p, store, err
	}
	for _, name := range echoed {
		if o.Has(name) {
			p.kept.Echo[name] = o.Members[name]
		}
	}
	if *o.Err != nil {
		return p, store, *o.Err
	}
	switch {
	case p.kept.Conversation && p.previous != "":
		return p, store, &Problem{Status: 400, Message: "conversation and previous_response_id exclude each other.", Param: "previous_response_id", Code: "mutually_exclusive_parameters"}
	case p.kept.Background && !store:
		return p, store, unsupported("background", "background needs store: the response could not be retrieved.")
	case p.kept.Conversation && !store:
		return p, store, unsupported("store", "store: false is not possible in a conversation, which keeps its items.")
	case o.Has("prompt"):
		return p, store, unsupported("prompt", "prompt is not supported: an agent has its own.")
	}
	if err := checkText(o); err != nil {
		return p, store, err
	}
	if p.tools, err = toolsOf(o); err != nil {
		return p, store, err
	}
	p.input, err = inputOf(o, "input")
	return p, store, err
}

func flag(o *web.Object, name string, byDefault bool) bool {
	if !o.Has(name) {
		return byDefault
	}
	return o.Flag(name)
}

func metadataOf(o *web.Object) (map[string]string, error) {
	all := o.OptTexts("metadata")
	if len(all) > maxPairs {
		return nil, invalid("metadata", fmt.Sprintf("metadata must have at most %d pairs.", maxPairs))
	}
	for key, value := range all {
		if utf8.RuneCountInString(key) > maxKey || utf8.RuneCountInString(value) > maxValue {
			return nil, invalid("metadata", fmt.Sprintf("metadata must have keys of at most %d and values of at most %d characters.", maxKey, maxValue))
		}
	}
	return all, nil
}

// conversationOf reads the member conversation: an id, or an object with an id.
func conversationOf(o *web.Object) (session string, given bool, err error) {
	raw, given := o.Members["conversation"]
	if !given {
		return "", false, nil
	}
	id := ""
	if raw[0] == '{' {
		id = o.Object("conversation").Text("id")
	} else {
		id = o.Text("conversation")
	}
	if *o.Err != nil {
		return "", true, *o.Err
	}
	session, ok := parseConversationID(id)
	if !ok {
		return "", true, noConversation(id)
	}
	return session, true, nil
}

// checkText refuses formats of the output: an agent has its own.
func checkText(o *web.Object) error {
	format := o.Object("text").Object("format")
	if *o.Err != nil {
		return *o.Err
	}
	if format != nil && format.Loose("type") != "text" {
		return unsupported("text.format", "text.format must be text: an agent defines its output in its outputSchema.")
	}
	return nil
}

// toolsOf returns the function tools that the run gets: none with tool_choice none.
func toolsOf(o *web.Object) (tools []fact.ClientTool, err error) {
	for i, t := range o.Objects("tools") {
		t.DropNulls()
		if kind := t.Text("type"); kind != "function" && *o.Err == nil {
			return nil, unsupported(fmt.Sprintf("tools[%d].type", i), fmt.Sprintf("tools of type '%s' are not supported: an agent has the tools that the server runs.", kind))
		}
		tools = append(tools, fact.ClientTool{
			Name: t.Word("name"), Description: t.OptText("description"), InputSchema: t.OptObject("parameters"), Strict: flag(t, "strict", false),
		})
	}
	if *o.Err != nil {
		return nil, *o.Err
	}
	switch choice := string(o.OrNull("tool_choice")); choice {
	case "null", `"auto"`:
	case `"none"`:
		return nil, nil
	default:
		return nil, unsupported("tool_choice", "tool_choice must be auto or none.")
	}
	return tools, nil
}

// input is what a request brings along: messages in order, and answers to calls that wait.
type input struct {
	messages []agentloop.Input
	answers  []answer
}

// answer is an answer to a call of the session.
type answer struct {
	engine.Submission
	approval string // the id of the item that asked for an approval; empty: it is a result
	param    string // where it is in the request
}

// shownCall returns the engine's id of a call from the one that a client knows: see
// folder.callID.
func shownCall(id string) string {
	base, _, _ := strings.Cut(id, again)
	return base
}
