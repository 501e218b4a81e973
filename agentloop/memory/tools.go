package memory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector/readmodel"
)

// Names of the tools.
const (
	SaveTool   = "save_memory"
	SearchTool = "search_memory"
)

// Equip gives an agent what a policy says: tools, and to be reminded. Its error
// is that of a policy that makes no sense.
func (m *Manager) Equip(a *agentloop.Agent, p Policy) error {
	if err := (eventlog.MemoryScope{Kind: p.Scope, ID: a.Name}).Validate(); err != nil {
		return fmt.Errorf("memory: agent %s: %w", a.Name, err)
	}
	if p.Recall < 0 || p.Recall > MaxHits {
		return fmt.Errorf("memory: agent %s: recall must be between 0 and %d", a.Name, MaxHits)
	}
	if p.Recall > 0 {
		a.Recall = recaller{m, p}
	}
	if p.Save {
		a.Tools = append(a.Tools, m.saveTool(p))
	}
	if p.Search {
		a.Tools = append(a.Tools, m.searchTool(p))
	}
	return nil
}

type saveArguments struct {
	Content string   `json:"content" jsonschema:"what to remember, as one statement that can be understood without this conversation"`
	Tags    []string `json:"tags,omitempty" jsonschema:"a few words under which to find it again"`
}

type saved struct {
	MemoryID string `json:"memoryId"`
}

func (m *Manager) saveTool(p Policy) agentloop.Tool {
	return agentloop.NewTool(SaveTool,
		"Remembers something for good, "+reach(p.Scope)+". Save what will matter later: preferences, facts, decisions. "+
			"Make one call for each thing, and none for what you remember already, or for passwords and other secrets.",
		func(ctx context.Context, c *agentloop.Call, in saveArguments) (saved, error) {
			scope, err := scopeOf(p.Scope, c.SessionInfo)
			if err != nil {
				return saved{}, err
			}
			d := Draft{
				Scope: scope, Key: c.IdempotencyKey, Content: in.Content, Tags: in.Tags,
				Source: &fact.MemorySource{SessionID: c.SessionID, AgentType: c.AgentType, RunID: c.RunID, ToolCallID: c.ID},
			}
			memory, err := m.saveWhenTaken(ctx, d)
			if errors.Is(err, readmodel.ErrForgotten) { // since the same call was made before
				return saved{m.idOf(d)}, nil
			}
			return saved{memory.ID}, err
		})
}

// Pauses between a call's tries to save what the log does not take.
const (
	minSavePause = 100 * time.Millisecond
	maxSavePause = 5 * time.Second
)

// saveWhenTaken saves a draft with a key as soon as the log takes it: a run
// waits while a disk is full, and a call that failed would not be made again, or
// under another key and so maybe twice. Errors: as Save; ctx's.
func (m *Manager) saveWhenTaken(ctx context.Context, d Draft) (readmodel.Memory, error) {
	for pause := minSavePause; ; pause = min(2*pause, maxSavePause) {
		memory, err := m.Save(ctx, d)
		if !passes(err) {
			return memory, err
		}
		if err := eventlog.Sleep(ctx, pause); err != nil {
			return memory, err
		}
	}
}

// passes says whether an error is of a log that takes nothing for now.
func passes(err error) bool {
	return slices.ContainsFunc([]error{
		eventlog.ErrRefused, eventlog.ErrUnavailable, eventlog.ErrOutcomeUnknown, eventlog.ErrIncomplete,
	}, func(passing error) bool { return errors.Is(err, passing) })
}

type searchArguments struct {
	Query string `json:"query" jsonschema:"what to look for, in words or as a question"`
	Limit int    `json:"limit,omitempty" jsonschema:"how many memories at most, 1 to 50; 10 if left out"`
}

type remembered struct {
	Memories []rememberedOne `json:"memories"`
	Note     string          `json:"note,omitempty"`
}

type rememberedOne struct {
	MemoryID string   `json:"memoryId"`
	Content  string   `json:"content"`
	Tags     []string `json:"tags,omitempty"`
	SavedAt  string   `json:"savedAt"`
}

func (m *Manager) searchTool(p Policy) agentloop.Tool {
	return agentloop.NewTool(SearchTool,
		"Searches what was remembered "+reach(p.Scope)+", by words and by meaning, best first. "+
			"Use it when something from earlier may matter that you have not been reminded of.",
		func(ctx context.Context, c *agentloop.Call, in searchArguments) (remembered, error) {
			scope, err := scopeOf(p.Scope, c.SessionInfo)
			if err != nil {
				return remembered{}, err
			}
			found, err := m.Search(ctx, Query{Scope: scope, Text: in.Query, Limit: in.Limit})
			if err != nil {
				return remembered{}, plain(err)
			}
			answer := remembered{Memories: make([]rememberedOne, len(found.Hits))}
			for i, h := range found.Hits {
				answer.Memories[i] = rememberedOne{h.ID, h.Content, h.Tags, time.UnixMilli(h.CreatedAt).UTC().Format(time.RFC3339)}
			}
			switch {
			case found.Fresh.Rebuilding:
				answer.Note = "There may be more memories: not all can be found yet."
			case found.WordsOnly:
				answer.Note = "Only memories with words of the query were looked for: the search by meaning is down."
			}
			return answer, nil
		})
}

// reach says to a model in which conversations memories are recalled.
func reach(kind eventlog.MemoryScopeKind) string {
	switch kind {
	case eventlog.MemoryOfUser:
		return "about this user, in all conversations"
	case eventlog.MemoryOfAgent:
		return "in all conversations, with whichever user"
	default:
		return "in this conversation, however long it becomes"
	}
}
