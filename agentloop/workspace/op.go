package workspace

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/helixd/helixd/eventlog/fact"
)

// Op is something that a model does with a workspace, by its own tool.
// Results are bounded, and say if something was left out.
type Op struct {
	Name        string
	Description string // for the model
	Needs       fact.WorkspaceCapability
	InputSchema json.RawMessage // JSON Schema of an object
	// Edits: it writes what it has read, so that one at a time may be done.
	Edits bool
	// Do does it. args fit InputSchema. Errors are for the model: they name
	// files as it does.
	Do func(ctx context.Context, w Workspace, args json.RawMessage) (any, error)
}

// Limits of what a model is shown.
const (
	MaxText    = 64 << 10 // bytes of a file, of a list's names, or of a command's output, each of the two
	MaxMatches = 200      // of a search
	MaxMatch   = 300      // bytes of a matching line
	MaxPattern = 1000     // bytes of what is searched for
	// MaxInstructions bounds what a search's pattern compiles to: one for nearly each
	// character, or for each repetition that it counts.
	MaxInstructions = 2000
	// SearchTimeout bounds a search. Its result then is what was found, and says that there
	// may be more.
	SearchTimeout = 15 * time.Second
	// MaxSearched is how many bytes a search looks at: MaxText of a line.
	MaxSearched = 64 << 20
)

var ops = []Op{
	op("read_file", fact.WorkspaceFS, readFile,
		"Read a file of the workspace. Of a long one you get a part, and the offset at which to go on."),
	op("write_file", fact.WorkspaceFS, writeFile,
		"Write a file of the workspace: a new one, with the folders that it needs, or in place of all that it held."),
	op("edit_file", fact.WorkspaceFS, editFile,
		"Replace a piece of text in a file of the workspace. The old text must be there exactly once."),
	op("list_files", fact.WorkspaceFS, listFiles, "List what a folder of the workspace holds."),
	op("delete_file", fact.WorkspaceFS, deleteFile, "Delete a file of the workspace, or a folder with all that it holds."),
	op("move_file", fact.WorkspaceFS, moveFile, "Move or rename a file or a folder of the workspace."),
	op("search_files", fact.WorkspaceFS, searchFiles, "Search the text files of the workspace, line by line, by a regular expression."),
	op("run", fact.WorkspaceShell, run, "Run a command line by the shell in the workspace, and wait for it."),
	op("run_code", fact.WorkspaceCode, runCode, "Run source code in the workspace, and wait for it."),
}

// Ops returns what can be done with workspaces that have the capabilities.
func Ops(capabilities []fact.WorkspaceCapability) []Op {
	return slices.DeleteFunc(slices.Clone(ops), func(o Op) bool { return !slices.Contains(capabilities, o.Needs) })
}

func op[In any](name string, needs fact.WorkspaceCapability, do func(context.Context, Workspace, In) (any, error), description string) Op {
	schema, err := jsonschema.For[In](nil)
	if err != nil {
		panic(fmt.Sprintf("workspace: %s: %v", name, err))
	}
	raw, err := json.Marshal(schema)
	if err != nil {
		panic(fmt.Sprintf("workspace: %s: %v", name, err))
	}
	return Op{
		Name: name, Description: description, Needs: needs, InputSchema: raw, Edits: name == "edit_file",
		Do: func(ctx context.Context, w Workspace, args json.RawMessage) (any, error) {
			var in In
			if err := json.Unmarshal(args, &in); err != nil {
				return nil, fmt.Errorf("arguments: %w", err)
			}
			if offered(w, needs) {
				return do(ctx, w, in)
			}
			return nil, fmt.Errorf("this workspace has no %s", needs)
		},
	}
}

// offered reports whether a workspace can do something: it may have been opened
// when the agent had another provider.
func offered(w Workspace, c fact.WorkspaceCapability) bool {
	switch c {
	case fact.WorkspaceFS:
		return w.FS() != nil
	case fact.WorkspaceShell:
		return w.Shell() != nil
	case fact.WorkspaceCode:
		return w.Code() != nil
	}
	return w.Snapshots() != nil
}

// clean returns a name as [FS] wants it of what a model wrote: it may write
// "./a" and "a/". The error shows the name.
func clean(name string) (string, error) {
	name = path.Clean(name) // of "", "."
	return name, CheckName(name)
}

// cleanFile is clean for what must not be the workspace itself.
func cleanFile(name string) (string, error) {
	cleaned, err := clean(name)
	if err == nil && cleaned == "." {
		return "", errors.New("path: that is the workspace itself")
	}
	return cleaned, err
}

// WithoutPath is an error without where on this machine it was: that is none of
// a model's business.
func WithoutPath(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	if l, ok := errors.AsType[*os.LinkError](err); ok {
		return l.Err
	}
	return err
}

// about says which file an error is about, as the model knows it.
func about(name string, err error) error {
	err = WithoutPath(err)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: there is no such file or folder", name)
	case errors.Is(err, ErrTooLarge):
		return fmt.Errorf("%s: %w: at most %d bytes", name, ErrTooLarge, MaxFile)
	case strings.HasPrefix(err.Error(), name+": "): // it says so itself
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}

// isText reports whether a model can read data as it is.
func isText(data []byte) bool { return utf8.Valid(data) && bytes.IndexByte(data, 0) < 0 }

// cut shortens a text to limit bytes, whole characters.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "")
}
