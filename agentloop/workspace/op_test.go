package workspace_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/agentloop/workspace/inmemory"
	"github.com/helixd/helixd/agentloop/workspace/local"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
)

// desk is a workspace that is used as a model uses it.
type desk struct {
	t *testing.T
	w workspace.Workspace
}

func newDesk(t *testing.T) desk {
	t.Helper()
	w, _, err := inmemory.New(nil).Open(t.Context(), workspace.Session{Root: "s", ID: "s"})
	require.NoError(t, err)
	return desk{t, w}
}

func (d desk) put(name, content string) {
	d.t.Helper()
	require.NoError(d.t, d.w.FS().WriteFile(d.t.Context(), name, []byte(content)))
}

// do returns what an operation says, as JSON, or its error.
func (d desk) do(op, args string) string {
	d.t.Helper()
	for _, o := range workspace.Ops([]fact.WorkspaceCapability{fact.WorkspaceFS, fact.WorkspaceShell}) {
		if o.Name != op {
			continue
		}
		v, err := o.Do(d.t.Context(), d.w, json.RawMessage(args))
		if err != nil {
			return "error: " + err.Error()
		}
		raw, err := json.Marshal(v)
		require.NoError(d.t, err)
		return string(raw)
	}
	d.t.Fatalf("there is no operation %s", op)
	return ""
}

func TestOperations(t *testing.T) {
	d := newDesk(t)
	d.put("a/b.txt", "one\ntwo\nthree\n")
	d.put("bytes", "\x00\xff")
	for _, tt := range []struct{ op, args, want string }{
		{"read_file", `{"path":"./a//b.txt"}`, `{"path":"a/b.txt","content":"one\ntwo\nthree\n","size":14}`},
		{"read_file", `{"path":"a/b.txt","offset":2,"limit":1}`, `{"path":"a/b.txt","content":"two\n","size":14,"truncated":true,"nextOffset":3}`},
		{"read_file", `{"path":"a/b.txt","offset":4}`, "error: a/b.txt: there is no line 4, the file has 3"},
		{"read_file", `{"path":"a/b.txt","offset":-1}`, "error: offset and limit must not be negative"},
		{"read_file", `{"path":"bytes"}`, "error: bytes is no text; it has 2 bytes: read it with the encoding base64"},
		{"read_file", `{"path":"bytes","encoding":"base64","offset":1}`, `{"path":"bytes","content":"/w==","size":2}`},
		{"read_file", `{"path":"bytes","encoding":"hex"}`, "error: encoding must be text or base64"},
		{"read_file", `{"path":"a"}`, "error: a: it is a folder"},
		{"read_file", `{"path":"none"}`, "error: none: there is no such file or folder"},
		{"read_file", `{"path":"."}`, "error: path: that is the workspace itself"},
		{"read_file", `{"path":"../x"}`, `error: "../x": the path leads out of the workspace: it goes up`},
		{"read_file", `{"path":"a/../../x"}`, `error: "../x": the path leads out of the workspace: it goes up`},
		{"read_file", `{"path":"/etc/passwd"}`, `error: "/etc/passwd": the path leads out of the workspace: it is absolute`},
		{"read_file", `{"path":"a\u0000b"}`, `error: "a\x00b": the name is not valid: it has a control character`},

		{"write_file", `{"path":"c/d","content":"x"}`, `{"path":"c/d","size":1}`},
		{"write_file", `{"path":"a","content":"x"}`, "error: a: it is a folder"},

		{"edit_file", `{"path":"a/b.txt","old":"two","new":"2"}`, `{"path":"a/b.txt","replaced":1}`},
		{"edit_file", `{"path":"a/b.txt","old":"two","new":"2"}`, `{"path":"a/b.txt","replaced":0,"note":"the file has the new text already, and the old one nowhere else"}`},
		{"edit_file", `{"path":"a/b.txt","old":"one","new":"one and"}`, `{"path":"a/b.txt","replaced":1}`},
		{"edit_file", `{"path":"a/b.txt","old":"one","new":"one and"}`, `{"path":"a/b.txt","replaced":0,"note":"the file has the new text already, and the old one nowhere else"}`},
		{"edit_file", `{"path":"a/b.txt","old":"e","new":"E"}`, "error: a/b.txt has the old text 3 times: give more of what is around it"},
		{"edit_file", `{"path":"a/b.txt","old":"four","new":""}`, "error: a/b.txt does not have the old text"},
		{"edit_file", `{"path":"a/b.txt","old":"","new":"x"}`, "error: old must not be empty"},
		{"edit_file", `{"path":"a/b.txt","old":"x","new":"x"}`, "error: old and new are the same"},
		{"edit_file", `{"path":"bytes","old":"x","new":"y"}`, "error: bytes is no text"},

		{"list_files", `{"recursive":true}`, `{"path":".","entries":[{"name":"a","dir":true},{"name":"a/b.txt","size":16},{"name":"bytes","size":2},{"name":"c","dir":true},{"name":"c/d","size":1}]}`},
		{"list_files", `{"path":"a/"}`, `{"path":"a","entries":[{"name":"b.txt","size":16}]}`},
		{"list_files", `{"path":"none"}`, "error: none: there is no such file or folder"},

		{"search_files", `{"pattern":"^(one|thr)"}`, `{"matches":[{"path":"a/b.txt","line":1,"text":"one and"},{"path":"a/b.txt","line":3,"text":"three"}]}`},
		{"search_files", `{"pattern":"x","path":"c"}`, `{"matches":[{"path":"c/d","line":1,"text":"x"}]}`},
		{"search_files", `{"pattern":"2","path":"a/b.txt"}`, `{"matches":[{"path":"a/b.txt","line":2,"text":"2"}]}`},
		{"search_files", `{"pattern":"("}`, "error: pattern: error parsing regexp: missing closing ): `(`"},

		{"search_files", `{"pattern":".{0,1000}.{0,1000}"}`, "error: pattern: it compiles to 4002 instructions, 2000 are allowed: repeat less, such as .* in place of .{0,1000}"},

		{"move_file", `{"from":"c/d","to":"e/f"}`, `{"from":"c/d","to":"e/f"}`},
		{"move_file", `{"from":"c/d","to":"e/f"}`, "error: there is no c/d, but a e/f: it may have been moved already"},
		{"move_file", `{"from":"bytes","to":"e/f"}`, "error: there is a e/f already"},
		{"move_file", `{"from":"none","to":"g"}`, "error: none: there is no such file or folder"},

		{"delete_file", `{"path":"e"}`, `{"path":"e","deleted":true}`},
		{"delete_file", `{"path":"e"}`, `{"path":"e","deleted":false}`},
		{"delete_file", `{"path":""}`, "error: path: that is the workspace itself"},

		{"run", `{"command":"ls"}`, "error: this workspace has no shell"},
	} {
		require.Equal(t, tt.want, d.do(tt.op, tt.args), "%s %s", tt.op, tt.args)
	}
}

// slow is a workspace that takes a while for each file.
type slow struct{ workspace.Workspace }

func (s slow) FS() workspace.FS { return slowFS{s.Workspace.FS()} }

type slowFS struct{ workspace.FS }

func (s slowFS) ReadFile(ctx context.Context, name string) ([]byte, error) {
	if err := eventlog.Sleep(ctx, workspace.SearchTimeout*2/3); err != nil {
		return nil, err
	}
	return s.FS.ReadFile(ctx, name)
}

// A search that takes long returns what it has found.
func TestASearchThatTakesLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		d.put("a", "x")
		d.put("b", "x")
		d.w = slow{d.w}
		require.Equal(t, `{"matches":[{"path":"a","line":1,"text":"x"}],"truncated":true}`, d.do("search_files", `{"pattern":"x"}`))
	})
}

// An edit whose result was lost in a crash is done again, and must not edit twice.
func TestAnEditThatComesAgainChangesNothing(t *testing.T) {
	d := newDesk(t)
	edit := func(old, text string) string {
		args, err := json.Marshal(map[string]string{"path": "f", "old": old, "new": text})
		require.NoError(t, err)
		return d.do("edit_file", string(args))
	}
	for _, tt := range []struct{ text, old, new, want string }{
		{"x\n\n\ny", "\n\n", "\n", "error: f has the old text 2 times: give more of what is around it"}, // they overlap
		{"aabb", "ab", "", "error: f would have the old text again: give more of what is around it"},
		{"aabb", "aabb", "ab", `{"path":"f","replaced":1}`},
		{"-a-", "a", "aba", `{"path":"f","replaced":1}`},
	} {
		d.put("f", tt.text)
		require.Equal(t, tt.want, edit(tt.old, tt.new), "%q: %q by %q", tt.text, tt.old, tt.new)
	}

	var texts []string // all of two letters, the empty one first
	for length := range 6 {
		for bits := range 1 << length {
			text := ""
			for i := range length {
				text += string("ab"[bits>>i&1])
			}
			texts = append(texts, text)
		}
	}
	const short = 1 + 2 + 4 + 8 // of up to three letters
	for _, text := range texts {
		for _, old := range texts[1:short] {
			for _, by := range texts[:short] {
				d.put("f", text)
				if edit(old, by) != `{"path":"f","replaced":1}` {
					continue
				}
				before := d.do("read_file", `{"path":"f"}`)
				edit(old, by)
				require.Equal(t, before, d.do("read_file", `{"path":"f"}`), "%q: %q by %q", text, old, by)
			}
		}
	}
}

// A link that leads nowhere is deleted as it stands.
func TestALinkThatLeadsNowhereIsDeleted(t *testing.T) {
	dir := t.TempDir()
	p, err := local.New(dir, nil)
	require.NoError(t, err)
	w, _, err := p.Open(t.Context(), workspace.Session{Root: "s", ID: "s"})
	require.NoError(t, err)
	defer w.Close()
	d := desk{t, w}
	d.put("here", "x")
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Name() == "here" {
			err = os.Symlink("nowhere", filepath.Join(filepath.Dir(path), "link"))
		}
		return err
	}))
	require.Equal(t, `{"path":"link","deleted":true}`, d.do("delete_file", `{"path":"link"}`))
	require.Equal(t, `{"path":"link","deleted":false}`, d.do("delete_file", `{"path":"link"}`))
}

// What a model is shown has limits, and says so.
func TestResultsAreBounded(t *testing.T) {
	d := newDesk(t)
	d.put("long", strings.Repeat("0123456789\n", workspace.MaxText/11+10))
	var read struct {
		Content    string
		Truncated  bool
		NextOffset int
	}
	require.NoError(t, json.Unmarshal([]byte(d.do("read_file", `{"path":"long"}`)), &read))
	require.True(t, read.Truncated)
	require.LessOrEqual(t, len(read.Content), workspace.MaxText)
	require.Equal(t, strings.Count(read.Content, "\n")+1, read.NextOffset)

	d.put("line", strings.Repeat("x", workspace.MaxText+10)+"\nend")
	require.NoError(t, json.Unmarshal([]byte(d.do("read_file", `{"path":"line"}`)), &read))
	require.Contains(t, d.do("read_file", fmt.Sprintf(`{"path":"line","offset":%d}`, read.NextOffset)), `"content":"end"`)

	d.put("one", strings.Repeat("x", workspace.MaxText+10))
	read.Truncated, read.NextOffset = false, 0
	require.NoError(t, json.Unmarshal([]byte(d.do("read_file", `{"path":"one"}`)), &read))
	require.True(t, read.Truncated, "the end of its only line is left out")
	require.Zero(t, read.NextOffset)

	d.put("bytes", strings.Repeat("\x00", workspace.MaxText))
	require.NoError(t, json.Unmarshal([]byte(d.do("read_file", `{"path":"bytes","encoding":"base64"}`)), &read))
	raw, err := base64.StdEncoding.DecodeString(read.Content)
	require.NoError(t, err)
	require.Equal(t, len(raw), read.NextOffset)

	var found struct {
		Matches   []struct{ Text string }
		Truncated bool
	}
	require.NoError(t, json.Unmarshal([]byte(d.do("search_files", `{"pattern":"0"}`)), &found))
	require.True(t, found.Truncated)
	require.Len(t, found.Matches, workspace.MaxMatches)
	require.NoError(t, json.Unmarshal([]byte(d.do("search_files", `{"pattern":"x","path":"line"}`)), &found))
	require.Len(t, found.Matches[0].Text, workspace.MaxMatch)
	d.put("words", strings.Repeat(".", workspace.MaxText)+"behind\nend")
	found.Truncated, found.Matches = false, nil
	require.NoError(t, json.Unmarshal([]byte(d.do("search_files", `{"pattern":"behind|end","path":"words"}`)), &found))
	require.Len(t, found.Matches, 1)
	require.True(t, found.Truncated, "of a long line the end is not searched")
	require.Equal(t, "error: pattern: it has 1001 bytes, 1000 are allowed", d.do("search_files", fmt.Sprintf(`{"pattern":%q}`, strings.Repeat("x", workspace.MaxPattern+1))))

	var listed struct {
		Entries   []struct{ Name string }
		Truncated bool
	}
	for i := range workspace.MaxText/workspace.MaxElement + 1 {
		d.put(fmt.Sprintf("names/%0*d", workspace.MaxElement, i), "long name")
	}
	require.NoError(t, json.Unmarshal([]byte(d.do("list_files", `{"path":"names"}`)), &listed))
	require.True(t, listed.Truncated)
	require.Len(t, listed.Entries, workspace.MaxText/workspace.MaxElement)
	listed.Truncated, listed.Entries, found.Truncated, found.Matches = false, nil, false, nil
	require.NoError(t, json.Unmarshal([]byte(d.do("search_files", `{"pattern":"long","path":"names"}`)), &found))
	require.True(t, found.Truncated)
	require.Less(t, len(found.Matches), workspace.MaxMatches+1)

	require.Contains(t, d.do("write_file", fmt.Sprintf(`{"path":"big","content":%q}`, strings.Repeat("x", workspace.MaxFile+1))), "the file is too large: at most 8388608 bytes")
}

// patience is a context that ends when it was asked often.
type patience struct {
	context.Context
	left int
	end  func()
}

func (p *patience) Err() error {
	if p.left--; p.left == 0 {
		p.end()
	}
	return p.Context.Err()
}

// A search ends with its call, also within a file.
func TestASearchEndsWithItsCall(t *testing.T) {
	d, stopped := newDesk(t), errors.New("the run was stopped")
	d.put("a", strings.Repeat("line\n", 1000))
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	for _, o := range workspace.Ops([]fact.WorkspaceCapability{fact.WorkspaceFS}) {
		if o.Name == "search_files" {
			_, err := o.Do(&patience{ctx, 500, func() { cancel(stopped) }}, d.w, json.RawMessage(`{"pattern":"x"}`))
			require.ErrorIs(t, err, stopped)
		}
	}
}

func TestOnlyDeclaredCapabilitiesHaveOperations(t *testing.T) {
	names := func(c ...fact.WorkspaceCapability) (all []string) {
		for _, o := range workspace.Ops(c) {
			all = append(all, o.Name)
		}
		return all
	}
	require.Equal(t, []string{"read_file", "write_file", "edit_file", "list_files", "delete_file", "move_file", "search_files"}, names(fact.WorkspaceFS))
	require.Equal(t, []string{"run", "run_code"}, names(fact.WorkspaceShell, fact.WorkspaceCode))
	require.Empty(t, names(fact.WorkspaceSnapshot))
}
