package eventlog

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/helixd/helixd/eventlog/fact"
)

// Limits of what is written, in bytes of UTF-8.
const (
	MaxSessionID = 256 // a session id
	MaxID        = 256 // any other id, and a name
)

// ValidateSessionID reports whether id can name a session: valid UTF-8, 1 to
// [MaxSessionID] bytes, no control characters. The replacement character is
// refused too, since JSON decoding puts it for whatever was not valid.
func ValidateSessionID(id string) error {
	if reason := idProblem(id, MaxSessionID); reason != "" {
		return &ValidationError{Field: "sessionId", Reason: reason}
	}
	return nil
}

// ValidateClientSessionID reports whether a client may use id for a session: as
// ValidateSessionID, and the logs of memory scopes and of durable streams are not sessions.
func ValidateClientSessionID(id string) error {
	for _, prefix := range []string{memoryLogs, durableLogs} {
		if strings.HasPrefix(id, prefix) {
			return &ValidationError{Field: "sessionId", Reason: "must not begin with " + prefix}
		}
	}
	return ValidateSessionID(id)
}

// ValidateID reports whether id can name anything but a session: 1 to [MaxID]
// bytes under the rules of ValidateSessionID.
func ValidateID(id string) error {
	if reason := idProblem(id, MaxID); reason != "" {
		return &ValidationError{Reason: reason}
	}
	return nil
}

func idProblem(id string, limit int) string {
	switch {
	case id == "":
		return "must not be empty"
	case len(id) > limit:
		return fmt.Sprintf("must be at most %d bytes, not %d", limit, len(id))
	case !utf8.ValidString(id) || strings.ContainsRune(id, utf8.RuneError):
		return "must be valid UTF-8"
	case strings.ContainsFunc(id, isControl):
		return "must not hold control characters"
	}
	return ""
}

// traceParent is the form of the header traceparent, version 00.
var traceParent = regexp.MustCompile(`^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)

func isControl(r rune) bool { return r < 0x20 || r >= 0x7f && r < 0xa0 }

// checker collects the first problem of a record.
type checker struct {
	typ string
	err *ValidationError
}

func (k *checker) fail(name, reason string) {
	if k.err == nil {
		k.err = &ValidationError{Type: k.typ, Field: name, Reason: reason}
	}
}

func (k *checker) id(name, v string) { k.name(name, v, MaxID) }

func (k *checker) name(name, v string, limit int) {
	if reason := idProblem(v, limit); reason != "" {
		k.fail(name, reason)
	}
}

func (k *checker) json(name string, raw json.RawMessage) {
	if len(raw) > 0 && !(json.Valid(raw) && utf8.Valid(raw)) {
		k.fail(name, "must be valid JSON")
	}
}

func (k *checker) object(name string, raw json.RawMessage) {
	if !isObject(raw) || !utf8.Valid(raw) {
		k.fail(name, "must be an object")
	}
}

func (k *checker) notNegative(name string, v int64) {
	if v < 0 {
		k.fail(name, "must not be negative")
	}
}

// fields checks a struct's fields by their tag helix, and those of the structs in it: id
// is an id or a name, approval one of an approval, checkpoint one of a checkpoint, count a
// number that is not negative, object a JSON object. Other JSON must be valid.
func (k *checker) fields(of reflect.Value, path string) {
	ruled := schemaOf(of.Type()).ruled
	for i := range ruled {
		f := &ruled[i]
		v := of.FieldByIndex(f.index)
		if f.optional && v.IsZero() {
			continue
		}
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				continue
			}
			v = v.Elem()
		}
		name := path + f.name
		switch {
		case f.elem != nil && f.slice:
			for i := range v.Len() {
				k.fields(v.Index(i), fmt.Sprintf("%s[%d].", name, i))
			}
		case f.elem != nil:
			k.fields(v, name+".")
		case f.rule == "id":
			k.id(name, v.String())
		case f.rule == "approval": // allows for "{runId}::{toolCallId}"
			k.name(name, v.String(), 2*MaxID+2)
		case f.rule == "checkpoint": // allows for the session id that it holds
			k.name(name, v.String(), MaxSessionID+MaxID)
		case f.rule == "count":
			k.notNegative(name, v.Int())
		case f.rule == ruleObject:
			k.object(name, v.Bytes())
		case f.rule == ruleJSON:
			k.json(name, v.Bytes())
		}
	}
}

func oneOf[T ~string](k *checker, name string, v T, allowed ...T) {
	if !slices.Contains(allowed, v) {
		k.fail(name, fmt.Sprintf("%q is none of %v", v, allowed))
	}
}

func (k *checker) result() error {
	if k.err == nil {
		return nil
	}
	return k.err
}

func validateChunk(c Chunk) error {
	k := &checker{typ: c.Type()}
	b := c.base()
	k.id("agentId", b.AgentID)
	k.id("agentType", b.AgentType)
	k.notNegative("timestamp", b.Timestamp)
	k.notNegative("step", int64(b.Step))
	switch c := c.(type) { // deltas are most of what is written: their rules are by hand
	case *TextDelta, *Thinking:
		return k.result()
	case *ToolArgStreamDelta:
		k.id("toolCallId", c.ToolCallID)
		return k.result()
	}
	k.fields(reflect.ValueOf(c).Elem(), "")
	switch c := c.(type) {
	case *StatePatch:
		if c.Patches == nil {
			k.fail("patches", "must be an array")
		}
		for i, op := range c.Patches {
			k.patchOp(fmt.Sprintf("patches[%d].", i), op)
		}
	case *StepEnd:
		if c.FinishReason != nil {
			oneOf(k, "finishReason", *c.FinishReason, FinishStop, FinishLength, FinishToolCalls,
				FinishContentFilter, FinishError, FinishOther)
		}
	case *StreamResync:
		oneOf(k, "reason", c.Reason, ResyncCrashRecovery, ResyncRollback, ResyncBranch, ResyncRetry)
	case *SuspensionMarker:
		oneOf(k, "kind", c.Kind, SuspendedClientTool, SuspendedAwaitingChildren, SuspendedStepPartial)
	}
	return k.result()
}

func (k *checker) patchOp(path string, op PatchOp) {
	oneOf(k, path+"op", op.Op, "add", "remove", "replace", "move", "copy", "test")
	if op.Path != "" && op.Path[0] != '/' {
		k.fail(path+"path", "must be a JSON Pointer")
	}
	switch op.Op {
	case "add", "replace", "test":
		if len(op.Value) == 0 {
			k.fail(path+"value", "is required for "+op.Op)
		}
	case "move", "copy":
		if op.From == nil || *op.From != "" && (*op.From)[0] != '/' {
			k.fail(path+"from", "must be a JSON Pointer")
		}
	}
}

func validateFact(f fact.Fact) error {
	k := &checker{typ: f.Type()}
	k.notNegative("timestamp", f.At())
	k.fields(reflect.ValueOf(f).Elem(), "")
	switch f := f.(type) {
	case *fact.SessionCreated:
		if c := f.Child; c != nil {
			oneOf(k, "child.mode", c.Mode, fact.SubSessionEphemeral, fact.SubSessionPersistent)
		}
	case *fact.RunRequested:
		if f.TraceParent != "" && !traceParent.MatchString(f.TraceParent) {
			k.fail("traceParent", "is not in the form of W3C Trace Context")
		}
		k.options(f.RunOptions)
	case *fact.MessageAdded:
		k.added(f)
	case *Truncated:
		for i, r := range f.Ranges {
			if r.From == 0 || r.From > r.To {
				k.fail(fmt.Sprintf("ranges[%d]", i), "must be a range of sequences")
			}
			oneOf(k, fmt.Sprintf("ranges[%d].scope", i), r.Scope, ScopeRun, ScopeContent, ScopeChunks, ScopeStream, ScopeAll)
			if r.Scope.AnyCall() && r.CallID != "" {
				k.fail(fmt.Sprintf("ranges[%d].callId", i), "must be empty where all calls are meant")
			}
		}
		if f.AfterSequence > f.AtSequence {
			k.fail("afterSequence", "must not be after atSequence")
		}
	case *fact.CallSuspended:
		oneOf(k, "kind", f.Kind, fact.PendingClient, fact.PendingApproval, fact.PendingChild)
	case *fact.ResultSubmitted:
		oneOf(k, "kind", f.Kind, fact.SubmitClientResult, fact.SubmitApproval, fact.SubmitTimeout, fact.SubmitAbandoned)
	case *fact.InterruptRequested:
		oneOf(k, "kind", f.Kind, fact.StopInterrupt, fact.StopAbort)
		if f.Terminate && f.Kind != fact.StopAbort {
			k.fail("terminate", "goes with an abort")
		}
	case *fact.UsageRecorded:
		oneOf(k, "source", f.Source, fact.UsageAgent, fact.UsageTool, fact.UsageSubAgent)
	case *fact.ClaimSettled:
		oneOf(k, "how", f.How, fact.ClaimReleased, fact.ClaimSurvived)
	case *fact.MemorySaved:
		k.text("content", f.Content, fact.MaxMemory)
		k.size("metadata", len(f.Metadata), fact.MaxMemoryMetadata)
		if len(f.Tags) > fact.MaxMemoryTags {
			k.fail("tags", fmt.Sprintf("must be at most %d", fact.MaxMemoryTags))
		}
		for i, tag := range f.Tags {
			k.id(fmt.Sprintf("tags[%d]", i), tag)
		}
	case *fact.MemoryEmbedded:
		switch {
		case len(f.Vector) == 0 || len(f.Vector) > fact.MaxDimensions:
			k.fail("vector", fmt.Sprintf("must have 1 to %d numbers", fact.MaxDimensions))
		case !f.Vector.Finite():
			k.fail("vector", "must be of finite numbers")
		}
	case *fact.DurableCreated, *fact.DurableAppended:
		k.durable(f)
	}
	return k.result()
}

// text checks a text of 1 to limit bytes.
func (k *checker) text(name, v string, limit int) {
	switch {
	case v == "":
		k.fail(name, "must not be empty")
	case !utf8.ValidString(v):
		k.fail(name, "must be valid UTF-8")
	}
	k.size(name, len(v), limit)
}

func (k *checker) size(name string, n, limit int) {
	if n > limit {
		k.fail(name, fmt.Sprintf("must be at most %d bytes, not %d", limit, n))
	}
}

// options checks the options of a run.
func (k *checker) options(o fact.RunOptions) {
	k.size("instructions", len(o.Instructions), fact.MaxInstructions)
	if len(o.Tools) > fact.MaxRunTools {
		k.fail("tools", fmt.Sprintf("must be at most %d", fact.MaxRunTools))
	}
}

// added checks a message that was added.
func (k *checker) added(m *fact.MessageAdded) {
	oneOf(k, "role", m.Role, fact.AddedSystem, fact.AddedAssistant, fact.AddedTool)
	switch {
	case m.Role == fact.AddedAssistant && len(m.Parts) == 0:
		k.fail("parts", "must not be empty")
	case m.Role == fact.AddedTool && m.ToolCallID == "":
		k.fail("toolCallId", "must not be empty")
	case m.Role == fact.AddedTool && (len(m.Result) > 0) == (m.Error != ""):
		k.fail("result", "exactly one of result and error is required")
	}
}

// checkDepth refuses JSON, which is valid, that is nested too deeply.
func checkDepth(typ string, raw []byte) error {
	if Depth(raw) > MaxDepth {
		return &ValidationError{Type: typ, Reason: fmt.Sprintf("must not be nested more than %d deep", MaxDepth)}
	}
	return nil
}

// Depth returns how deeply JSON, which is valid, is nested.
func Depth(raw []byte) int {
	depth, deepest, inText := 0, 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
		case inText:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest
}
