package eventlog_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
)

const tail = `"agentId":"s","agentType":"a","timestamp":1,"step":0}`

func TestParseChunkRefuses(t *testing.T) {
	long := strings.Repeat("x", eventlog.MaxID+1)
	for name, tc := range map[string]struct{ in, field, reason string }{
		"nothing":               {``, "", "is not a JSON object"},
		"an array":              {`[]`, "", "is not a JSON object"},
		"a string":              {`"text_delta"`, "", "is not a JSON object"},
		"null":                  {`null`, "", "is not a JSON object"},
		"half":                  {`{"type":"text_delta"`, "", "is not a JSON object"},
		"trailing garbage":      {`{"type":"text_delta","delta":"x",` + tail + `{}`, "", "is not a JSON object"},
		"trailing comma":        {`{"type":"text_delta",}`, "", "is not a JSON object"},
		"invalid UTF-8":         {"{\"type\":\"text_delta\",\"delta\":\"\xff\"," + tail, "", "is not valid UTF-8"},
		"invalid UTF-8 in data": {"{\"type\":\"custom\",\"eventName\":\"e\",\"data\":\"\xff\"," + tail, "", "is not valid UTF-8"},

		"no type":             {`{"delta":"x",` + tail, "type", "must be a string that names a chunk type"},
		"null type":           {`{"type":null,"delta":"x",` + tail, "type", "must be a string that names a chunk type"},
		"type in other case":  {`{"Type":"text_delta","delta":"x",` + tail, "type", "must be a string that names a chunk type"},
		"unknown type":        {`{"type":"text_deltas","delta":"x",` + tail, "type", `"text_deltas" is not a chunk type`},
		"a fact":              {`{"type":"run_claimed"}`, "type", `"run_claimed" is not a chunk type`},
		"the control message": {`{"type":"stream_end","streamId":"s","timestamp":1}`, "type", `"stream_end" is not a chunk type`},

		"missing":                {`{"type":"text_delta",` + tail, "delta", "is required"},
		"missing base":           {`{"type":"text_delta","delta":"x","agentType":"a","timestamp":1,"step":0}`, "agentId", "is required"},
		"missing step":           {`{"type":"text_delta","delta":"x","agentId":"s","agentType":"a","timestamp":1}`, "step", "is required"},
		"missing free value":     {`{"type":"output",` + tail, "output", "is required"},
		"missing nullable":       {`{"type":"run_interrupted","runId":"r",` + tail, "checkpointId", "is required"},
		"unknown field":          {`{"type":"text_delta","delta":"x","more":1,` + tail, "more", "is not a field of this type"},
		"field in other case":    {`{"type":"text_delta","delta":"x","Delta":"x",` + tail, "Delta", "is not a field of this type"},
		"the Go name":            {`{"type":"text_delta","delta":"x","Base":{},` + tail, "Base", "is not a field of this type"},
		"twice":                  {`{"type":"text_delta","delta":"x","delta":"x",` + tail, "delta", "is given twice"},
		"type twice":             {`{"type":"text_delta","type":"text_delta","delta":"x",` + tail, "type", "is given twice"},
		"twice when unescaped":   {`{"type":"text_delta","delta":"x","d\u0065lta":"x",` + tail, "delta", "is given twice"},
		"twice in a free value":  {`{"type":"custom","eventName":"e","data":[1,{"a":{"b":1,"b":1}}],` + tail, "data[1].a.b", "is given twice"},
		"null field":             {`{"type":"text_delta","delta":null,` + tail, "delta", "must not be null"},
		"null optional":          {`{"type":"step_start","stepId":null,` + tail, "stepId", "must not be null"},
		"null object":            {`{"type":"tool_start","toolCallId":"c","toolName":"t","arguments":null,` + tail, "arguments", "must not be null"},
		"null array":             {`{"type":"state_patch","patches":null,` + tail, "patches", "must not be null"},
		"array for object":       {`{"type":"tool_start","toolCallId":"c","toolName":"t","arguments":[],` + tail, "arguments", "must be an object"},
		"number for string":      {`{"type":"text_delta","delta":5,` + tail, "delta", "must be a string, not number"},
		"object for string":      {`{"type":"text_delta","delta":{},` + tail, "delta", "must be a string, not object"},
		"string for boolean":     {`{"type":"thinking","content":"","isComplete":"true",` + tail, "isComplete", "must be a boolean, not string"},
		"array for nullable":     {`{"type":"run_interrupted","runId":"r","checkpointId":[],` + tail, "checkpointId", "must be a string, not array"},
		"string for enum":        {`{"type":"step_end","finishReason":1,` + tail, "finishReason", "must be a string, not number"},
		"number for object":      {`{"type":"step_end","usage":1,` + tail, "usage", "must be an object"},
		"object for array":       {`{"type":"state_patch","patches":{},` + tail, "patches", "must be an array"},
		"string for time":        {`{"type":"text_delta","delta":"","agentId":"s","agentType":"a","timestamp":"1","step":0}`, "timestamp", "must be an integer that fits, not string"},
		"fraction":               {`{"type":"text_delta","delta":"","agentId":"s","agentType":"a","timestamp":1,"step":1.5}`, "step", "must be an integer that fits, not number 1.5"},
		"too large":              {`{"type":"text_delta","delta":"","agentId":"s","agentType":"a","timestamp":9223372036854775808,"step":1}`, "timestamp", "must be an integer that fits, not number 9223372036854775808"},
		"negative time":          {`{"type":"text_delta","delta":"","agentId":"s","agentType":"a","timestamp":-1,"step":0}`, "timestamp", "must not be negative"},
		"negative step":          {`{"type":"text_delta","delta":"","agentId":"s","agentType":"a","timestamp":1,"step":-1}`, "step", "must not be negative"},
		"negative sequence":      {`{"type":"stream_resync","checkpointId":"c","stepCount":0,"messageCount":0,"fromSequence":-1,"reason":"retry",` + tail, "fromSequence", "must be an integer that fits, not number -1"},
		"nested missing":         {`{"type":"step_end","usage":{"inputTokens":1},` + tail, "usage.outputTokens", "is required"},
		"nested type":            {`{"type":"step_end","usage":{"inputTokens":1,"outputTokens":"2"},` + tail, "usage.outputTokens", "must be an integer that fits, not string"},
		"nested negative":        {`{"type":"step_end","usage":{"inputTokens":1,"outputTokens":2,"cachedTokens":-1},` + tail, "usage.cachedTokens", "must not be negative"},
		"nested unknown":         {`{"type":"error","error":"","recoverable":false,"errorDetail":{"message":"","stack":""},` + tail, "errorDetail.stack", "is not a field of this type"},
		"nested required":        {`{"type":"error","error":"","recoverable":false,"errorDetail":{},` + tail, "errorDetail.message", "is required"},
		"nested null":            {`{"type":"error","error":"","recoverable":false,"errorDetail":{"message":null},` + tail, "errorDetail.message", "must not be null"},
		"nested twice":           {`{"type":"error","error":"","recoverable":false,"errorDetail":{"message":"","message":""},` + tail, "errorDetail.message", "is given twice"},
		"element missing":        {`{"type":"state_patch","patches":[{"op":"remove","path":""},{"path":""}],` + tail, "patches[1].op", "is required"},
		"element type":           {`{"type":"state_patch","patches":[{"op":"remove","path":""},{"op":1,"path":""}],` + tail, "patches[1].op", "must be a string, not number"},
		"element no object":      {`{"type":"state_patch","patches":[1],` + tail, "patches[0]", "must be an object"},
		"element null":           {`{"type":"state_patch","patches":[null],` + tail, "patches[0]", "must be an object"},
		"unknown operation":      {`{"type":"state_patch","patches":[{"op":"Add","path":"","value":1}],` + tail, "patches[0].op", `"Add" is none of [add remove replace move copy test]`},
		"no JSON Pointer":        {`{"type":"state_patch","patches":[{"op":"remove","path":"a"}],` + tail, "patches[0].path", "must be a JSON Pointer"},
		"no value":               {`{"type":"state_patch","patches":[{"op":"add","path":"/a"}],` + tail, "patches[0].value", "is required for add"},
		"no from":                {`{"type":"state_patch","patches":[{"op":"move","path":"/a"}],` + tail, "patches[0].from", "must be a JSON Pointer"},
		"unknown finish reason":  {`{"type":"step_end","finishReason":"tool_calls",` + tail, "finishReason", `"tool_calls" is none of [stop length tool-calls content-filter error other]`},
		"unknown resync reason":  {`{"type":"stream_resync","checkpointId":"c","stepCount":0,"messageCount":0,"fromSequence":0,"reason":"",` + tail, "reason", `"" is none of [crash_recovery rollback branch retry]`},
		"unknown suspension":     {`{"type":"suspension_marker","kind":"x","payload":{},` + tail, "kind", `"x" is none of [suspended_client_tool suspended_awaiting_children suspended_step_partial]`},
		"empty agent":            {`{"type":"text_delta","delta":"","agentId":"","agentType":"a","timestamp":1,"step":0}`, "agentId", "must not be empty"},
		"overlong agent":         {`{"type":"text_delta","delta":"","agentId":"` + long + `","agentType":"a","timestamp":1,"step":0}`, "agentId", "must be at most 256 bytes, not 257"},
		"empty id":               {`{"type":"tool_arg_stream_end","toolCallId":"",` + tail, "toolCallId", "must not be empty"},
		"overlong id":            {`{"type":"tool_arg_stream_end","toolCallId":"` + long + `",` + tail, "toolCallId", "must be at most 256 bytes, not 257"},
		"overlong event name":    {`{"type":"custom","eventName":"` + long + `","data":1,` + tail, "eventName", "must be at most 256 bytes, not 257"},
		"empty optional id":      {`{"type":"step_start","stepId":"",` + tail, "stepId", "must not be empty"},
		"control character":      {`{"type":"tool_arg_stream_end","toolCallId":"a\u0000b",` + tail, "toolCallId", "must not hold control characters"},
		"C1 control character":   {`{"type":"tool_arg_stream_end","toolCallId":"a\u0085b",` + tail, "toolCallId", "must not hold control characters"},
		"half a surrogate in id": {`{"type":"tool_arg_stream_end","toolCallId":"\ud800",` + tail, "toolCallId", "must be valid UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := eventlog.ParseChunk([]byte(tc.in))
			var invalid *eventlog.ValidationError
			require.ErrorAs(t, err, &invalid)
			require.Equal(t, tc.field, invalid.Field)
			require.Equal(t, tc.reason, invalid.Reason)
		})
	}
}

func TestParseChunkTakes(t *testing.T) {
	for name, tc := range map[string]struct {
		in   string
		want eventlog.Chunk
	}{
		"any order and white space": {
			" {\"step\":0, \"timestamp\":1,\n\t\"output\" : { \"a\" : [ 1 ] },\"agentType\":\"a\",\"agentId\":\"s\",\"type\":\"output\"} \n",
			&eventlog.Output{Output: raw(`{"a":[1]}`), Base: eventlog.Base{AgentID: "s", AgentType: "a", Timestamp: 1}},
		},
		"null as a free value": {
			`{"type":"tool_input_error","toolCallId":"c","toolName":"t","error":"","partialInput":null,` + tail,
			&eventlog.ToolInputError{
				ToolCallID: "c", ToolName: "t", PartialInput: raw(`null`), Base: eventlog.Base{AgentID: "s", AgentType: "a", Timestamp: 1},
			},
		},
		"numbers as they are": {
			`{"type":"custom","eventName":"e","data":1.00e+400,` + tail,
			&eventlog.CustomEvent{EventName: "e", Data: raw(`1.00e+400`), Base: eventlog.Base{AgentID: "s", AgentType: "a", Timestamp: 1}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := eventlog.ParseChunk([]byte(tc.in))
			require.NoError(t, err)
			require.Equal(t, tc.want, got)
		})
	}
}

// EncodeChunk and EncodeFact are as strict with what the process itself makes.
func TestEncodeRefuses(t *testing.T) {
	id := func(b eventlog.Base) *eventlog.TextDelta { return &eventlog.TextDelta{Base: b} }
	for name, tc := range map[string]struct {
		chunk eventlog.Chunk
		field string
	}{
		"no agent":          {id(eventlog.Base{AgentType: "a"}), "agentId"},
		"agent not UTF-8":   {id(eventlog.Base{AgentID: "\xff", AgentType: "a"}), "agentId"},
		"result not JSON":   {&eventlog.ToolEnd{ToolCallID: "c", ToolName: "t", Result: raw(`{`), Base: base}, "result"},
		"result not UTF-8":  {&eventlog.ToolEnd{ToolCallID: "c", ToolName: "t", Result: raw("\"\xff\""), Base: base}, "result"},
		"no arguments":      {&eventlog.ToolStart{ToolCallID: "c", ToolName: "t", Base: base}, "arguments"},
		"keys not UTF-8":    {&eventlog.ToolStart{ToolCallID: "c", ToolName: "t", Arguments: raw("{\"\xff\":1}"), Base: base}, "arguments"},
		"no patches":        {&eventlog.StatePatch{Base: base}, "patches"},
		"value not JSON":    {&eventlog.StatePatch{Patches: []eventlog.PatchOp{{Op: "remove", Path: "", Value: raw(`x`)}}, Base: base}, "patches[0].value"},
		"no resync reason":  {&eventlog.StreamResync{Base: base}, "reason"},
		"unknown, no bytes": {&eventlog.Unknown{Kind: "new"}, ""},
		"unknown, other":    {&eventlog.Unknown{Kind: "new", Raw: raw(`{"type":"newer"}`)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := eventlog.NewChunk(tc.chunk, eventlog.Labels{})
			var invalid *eventlog.ValidationError
			require.ErrorAs(t, err, &invalid)
			require.Equal(t, tc.field, invalid.Field)
			require.Equal(t, tc.chunk.Type(), invalid.Type)
		})
	}

	var invalid *eventlog.ValidationError
	_, err := eventlog.NewFact("s", &eventlog.Truncated{Ranges: []eventlog.Range{{From: 2, To: 1}}}, eventlog.Labels{})
	require.ErrorAs(t, err, &invalid)
	require.Equal(t, "ranges[0]", invalid.Field)
	require.EqualError(t, err, "truncated: ranges[0] must be a range of sequences")
}
