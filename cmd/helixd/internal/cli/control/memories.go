package control

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"text/tabwriter"

	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/source"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/client"
)

type memoriesCmd struct {
	List    memoriesListCmd    `cmd:"" help:"List the memories of a user, an agent or a session, newest first."`
	Search  memoriesSearchCmd  `cmd:"" help:"Find memories by words and by meaning, the best match first."`
	Save    memoriesSaveCmd    `cmd:"" help:"Save a memory."`
	Forget  memoriesForgetCmd  `cmd:"" help:"Forget a memory: it is never found again."`
	Erase   memoriesEraseCmd   `cmd:"" help:"Erase all memories of a user, an agent or a session, every byte of them."`
	Process memoriesProcessCmd `cmd:"" help:"Compute the vectors that are missing, as after an outage of the embedder."`
}

// memoryFlags are of the commands about one scope.
type memoryFlags struct {
	source.DaemonFlags
	JSON    bool   `help:"Print JSON."`
	User    string `help:"Whose memories: this user's," xor:"scope"`
	Agent   string `help:"or this agent type's," xor:"scope" aliases:"agent-type"`
	Session string `type:"session" help:"or this session's." xor:"scope"`
	Tenant  string `help:"Of which tenant the user or the agent is; those of sessions without a tenant if left out."`
}

// Validate is called for every command about a scope.
func (f memoryFlags) Validate() error {
	if f.scope().ID == "" {
		return errors.New("name the owner of the memories: --user, --agent or --session")
	}
	return nil
}

func (f memoryFlags) scope() eventlog.MemoryScope {
	switch {
	case f.User != "":
		return eventlog.MemoryScope{Kind: eventlog.MemoryOfUser, ID: f.User, Tenant: f.Tenant}
	case f.Agent != "":
		return eventlog.MemoryScope{Kind: eventlog.MemoryOfAgent, ID: f.Agent, Tenant: f.Tenant}
	default:
		return eventlog.MemoryScope{Kind: eventlog.MemoryOfSession, ID: f.Session, Tenant: f.Tenant}
	}
}

func (f memoryFlags) query() url.Values {
	scope := f.scope()
	q := url.Values{"scope": {string(scope.Kind)}, "id": {scope.ID}}
	if scope.Tenant != "" {
		q.Set("tenant", scope.Tenant)
	}
	return q
}

// showMemories prints memories as a table.
func showMemories(p *flags.Process, f memoryFlags, q url.Values, offset int) error {
	answer, err := f.Connect().Get(p.Ctx, "/memories", q)
	if err != nil {
		return err
	}
	return source.Show(p, f.JSON, answer, func(found api.FoundMemories) error {
		w := tabwriter.NewWriter(p.Stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "MEMORY\tSAVED\tVECTOR\tTEXT")
		for _, m := range found.Items {
			terminal.Row(w, m.ID, terminal.Clock(m.CreatedAt), m.EmbeddingStatus, terminal.Clip(m.Content, terminal.MaxShown))
		}
		if err := w.Flush(); err != nil {
			return err
		}
		source.NoteMore(p.Stderr, found.Page, offset)
		source.NoteFresh(p.Stderr, found.Fresh)
		if found.WordsOnly {
			fmt.Fprintln(p.Stderr, "the embedder does not answer: only memories with words of the question are shown")
		}
		return nil
	})
}

type memoriesListCmd struct {
	memoryFlags
	Limit  int `help:"At most so many, up to 200." default:"50"`
	Offset int `help:"Leave out so many."`
}

func (c memoriesListCmd) Run(p *flags.Process) error {
	q := c.query()
	q.Set("limit", strconv.Itoa(c.Limit))
	q.Set("offset", strconv.Itoa(c.Offset))
	return showMemories(p, c.memoryFlags, q, c.Offset)
}

type memoriesSearchCmd struct {
	memoryFlags
	Text  string `arg:"" help:"Words, or a question."`
	Limit int    `help:"At most so many, up to 50." default:"10"`
}

func (c memoriesSearchCmd) Run(p *flags.Process) error {
	q := c.query()
	q.Set("q", c.Text)
	q.Set("limit", strconv.Itoa(c.Limit))
	return showMemories(p, c.memoryFlags, q, 0)
}

type memoriesSaveCmd struct {
	memoryFlags
	Content string   `arg:"" help:"What to remember."`
	Tag     []string `help:"A word under which it is found; can be given several times."`
	Key     string   `help:"Save it once under this key of the user, agent or session."`
}

func (c memoriesSaveCmd) Run(p *flags.Process) error {
	m, err := c.Connect().SaveMemory(p.Ctx, client.MemoryDraft{Scope: c.scope(), Content: c.Content, Tags: c.Tag, IdempotencyKey: c.Key})
	if err != nil {
		return source.Explained(err)
	}
	return terminal.Result(p.Stdout, c.JSON, m, terminal.Printable(m.ID))
}

type memoriesForgetCmd struct {
	memoryFlags
	Memory string `arg:"" help:"The memory's id."`
}

func (c memoriesForgetCmd) Run(p *flags.Process) error {
	if err := c.Connect().ForgetMemory(p.Ctx, c.scope(), c.Memory); err != nil {
		return source.Explained(err)
	}
	return terminal.Result(p.Stdout, c.JSON, api.ForgottenMemory{MemoryID: c.Memory}, terminal.Printable(c.Memory)+" is forgotten")
}

type memoriesEraseCmd struct {
	memoryFlags
	Yes  bool `help:"Really: nothing can bring the memories back." required:""`
	Wait bool `help:"Ask again until no byte is left." default:"true" negatable:""`
}

func (c memoriesEraseCmd) Run(p *flags.Process) error {
	daemon := c.Connect()
	done, err := untilErased(p.Ctx, c.Wait, func() (api.ErasedMemories, error) {
		return daemon.EraseMemories(p.Ctx, c.scope())
	}, func(e api.ErasedMemories) bool { return e.Pending }, func(api.ErasedMemories) bool { return true })
	if err != nil {
		return err
	}
	text := "erased"
	if done.Pending {
		text = "being erased: bytes may be left"
	}
	return terminal.Result(p.Stdout, c.JSON, done, fmt.Sprintf("%s %s: %s", done.Scope.Kind, terminal.Printable(done.Scope.ID), text))
}

type memoriesProcessCmd struct {
	source.DaemonFlags
	JSON bool `help:"Print JSON."`
}

func (c memoriesProcessCmd) Run(p *flags.Process) error {
	done, err := c.Connect().ProcessMemories(p.Ctx)
	if err != nil {
		return source.Explained(err)
	}
	words := fmt.Sprintf("%d without a vector, %d have one now, %d failed", done.Found, done.Embedded, done.Failed)
	return terminal.Result(p.Stdout, c.JSON, done, words)
}
