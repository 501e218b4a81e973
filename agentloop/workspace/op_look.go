package workspace

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"regexp/syntax"
	"strings"
	"time"
)

type listArgs struct {
	Path      string `json:"path,omitempty" jsonschema:"the folder, relative to the workspace; the workspace itself if you leave it out"`
	Recursive bool   `json:"recursive,omitempty" jsonschema:"also list what its folders hold"`
}

type listResult struct {
	Path      string   `json:"path"`
	Entries   []listed `json:"entries"`
	Truncated bool     `json:"truncated,omitempty"`
}

type listed struct {
	Name string `json:"name"` // relative to the folder
	Dir  bool   `json:"dir,omitempty"`
	Size int64  `json:"size,omitempty"`
}

func listFiles(ctx context.Context, w Workspace, in listArgs) (any, error) {
	name, err := clean(in.Path)
	if err != nil {
		return nil, err
	}
	entries, truncated, err := w.FS().List(ctx, name, in.Recursive)
	if err != nil {
		return nil, about(name, err)
	}
	result, shown := listResult{Path: name, Entries: []listed{}, Truncated: truncated}, 0
	for _, e := range entries {
		if shown += len(e.Name); shown > MaxText {
			result.Truncated = true
			break
		}
		result.Entries = append(result.Entries, listed{Name: e.Name, Dir: e.Dir, Size: e.Size})
	}
	return result, nil
}

type searchArgs struct {
	Pattern string `json:"pattern" jsonschema:"a regular expression in RE2 syntax"`
	Path    string `json:"path,omitempty" jsonschema:"the file, or the folder to search, relative to the workspace; all of it if you leave it out"`
}

type searchResult struct {
	Matches   []match `json:"matches"`
	Truncated bool    `json:"truncated,omitempty"` // not everything was searched, or shown
}

type match struct {
	Path string `json:"path"`
	Line int    `json:"line"` // from 1
	Text string `json:"text"`
}

func searchFiles(ctx context.Context, w Workspace, in searchArgs) (any, error) {
	if len(in.Pattern) > MaxPattern {
		return nil, fmt.Errorf("pattern: it has %d bytes, %d are allowed", len(in.Pattern), MaxPattern)
	}
	pattern, err := compile(in.Pattern)
	if err != nil {
		return nil, fmt.Errorf("pattern: %w", err)
	}
	name, err := clean(in.Path)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	late := func() bool { return time.Since(began) > SearchTimeout }
	entries, truncated, err := files(ctx, w.FS(), name)
	if err != nil {
		return nil, about(name, err)
	}
	result, searched, shown := searchResult{Matches: []match{}, Truncated: truncated}, int64(0), 0
	for _, e := range entries {
		if e.Size > MaxFile || searched+e.Size > MaxSearched || late() {
			result.Truncated = true
			continue
		}
		data, err := w.FS().ReadFile(ctx, e.Name)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil || !isText(data) { // it may be gone by now
			continue
		}
		searched += int64(len(data))
		n := 0
		for line := range strings.Lines(string(data)) {
			if n++; ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			if late() {
				result.Truncated = true
				return result, nil
			}
			if line = strings.TrimRight(line, "\r\n"); len(line) > MaxText {
				line, result.Truncated = cut(line, MaxText), true
			}
			if !pattern.MatchString(line) {
				continue
			}
			text := cut(line, MaxMatch)
			if shown += len(e.Name) + len(text); shown > MaxText || len(result.Matches) == MaxMatches {
				result.Truncated = true
				return result, nil
			}
			result.Matches = append(result.Matches, match{Path: e.Name, Line: n, Text: text})
		}
	}
	return result, nil
}

// compile is regexp.Compile for a pattern that the model chose. The time that a match takes
// grows with the pattern's instructions, and nothing ends it within a line.
func compile(pattern string) (*regexp.Regexp, error) {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, err
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, err
	}
	if n := len(program.Inst); n > MaxInstructions {
		return nil, fmt.Errorf("it compiles to %d instructions, %d are allowed: repeat less, such as .* in place of .{0,1000}", n, MaxInstructions)
	}
	return regexp.Compile(pattern)
}

// files returns the files in a folder and below it, or the one that name is,
// with names relative to the workspace.
func files(ctx context.Context, fsys FS, name string) (found []Entry, truncated bool, err error) {
	if name != "." {
		e, err := fsys.Stat(ctx, name)
		if err != nil {
			return nil, false, err
		}
		if e.Name = name; !e.Dir {
			return []Entry{e}, false, nil
		}
	}
	entries, truncated, err := fsys.List(ctx, name, true)
	for _, e := range entries {
		if e.Name = path.Join(name, e.Name); !e.Dir {
			found = append(found, e)
		}
	}
	return found, truncated, err
}
