package anthropic

import (
	"encoding/json"
	"maps"
	"slices"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/provider"
	"github.com/helixd/helixd/eventlog/fact"
)

// answer turns a stream's events into the loop's and keeps what they say about
// the whole.
type answer struct {
	caller  provider.Caller
	emit    func(model.Event) error
	name    string // the model's: as asked for, then as the provider says
	blocks  map[int64]*block
	calls   int  // begun so far
	inText  bool // a text grows
	sources provider.Sources
	reason  sdk.StopReason
	usage   counts
}

// Event takes an event. See [provider.Answer].
func (a *answer) Event(kind string, data []byte) (done bool, err error) {
	if kind == "error" {
		return false, a.caller.Reported(0, data)
	}
	var e sdk.MessageStreamEventUnion
	if err := json.Unmarshal(data, &e); err != nil {
		return false, provider.Unreadable(err)
	}
	switch e.Type {
	case "error":
		return false, a.caller.Reported(0, data)
	case "message_stop":
		return true, nil
	}
	return false, a.event(e)
}

// Complete says whether the answer may end: its connection may break after
// the stop_reason.
func (a *answer) Complete() bool { return a.reason != "" }

func (a *answer) event(e sdk.MessageStreamEventUnion) error {
	switch e.Type {
	case "message_start":
		if e.Message.Model != "" {
			a.name = string(e.Message.Model)
		}
		a.usage.start(e.Message.Usage)
	case "content_block_start":
		return a.startBlock(e.Index, e.ContentBlock)
	case "content_block_delta":
		return a.delta(e.Index, e.Delta)
	case "content_block_stop":
		return a.stopBlock(e.Index)
	case "message_delta":
		if e.Delta.StopReason != "" {
			a.reason = e.Delta.StopReason
		}
		a.usage.delta(e.Usage)
	}
	return nil // kinds that this version does not know may come at any time
}

// end closes the answer. A tool call without an end may have come whole at its start.
func (a *answer) end() (model.Answer, error) {
	for _, index := range slices.Sorted(maps.Keys(a.blocks)) {
		if a.blocks[index].kind == "tool_use" {
			if err := a.stopBlock(index); err != nil {
				return model.Answer{}, err
			}
		}
	}
	if err := a.sources.Flush(a.emit); err != nil {
		return model.Answer{}, err
	}
	return model.Answer{Model: a.name, StopReason: a.stopReason(), Usage: a.usage.total()}, nil
}

func (a *answer) stopReason() fact.StopReason {
	switch a.reason {
	case sdk.StopReasonEndTurn:
		return fact.StopEndTurn
	case sdk.StopReasonToolUse:
		return fact.StopToolUse
	case sdk.StopReasonMaxTokens, sdk.StopReasonModelContextWindowExceeded:
		return fact.StopMaxTokens
	case sdk.StopReasonStopSequence:
		return fact.StopSequence
	case sdk.StopReasonRefusal:
		return fact.StopContentFilter
	case "": // but message_stop
		if a.calls > 0 {
			return fact.StopToolUse
		}
	}
	return fact.StopUnknown
}
