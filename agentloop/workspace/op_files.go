package workspace

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

const (
	encodingText   = "text"
	encodingBase64 = "base64"
)

type readArgs struct {
	Path     string `json:"path" jsonschema:"the file, relative to the workspace"`
	Offset   int    `json:"offset,omitempty" jsonschema:"the first line that you want, from 1; of base64, the first byte, from 0"`
	Limit    int    `json:"limit,omitempty" jsonschema:"how many lines you want at most; of base64, bytes"`
	Encoding string `json:"encoding,omitempty" jsonschema:"text, the default, or base64 for a file that is no text"`
}

type readResult struct {
	Path      string `json:"path"`
	Content   string `json:"content"`
	Size      int    `json:"size"` // bytes of the file
	Truncated bool   `json:"truncated,omitempty"`
	// NextOffset is where what was left out begins, 0 if nothing was.
	NextOffset int `json:"nextOffset,omitempty"`
}

func readFile(ctx context.Context, w Workspace, in readArgs) (any, error) {
	name, err := cleanFile(in.Path)
	if err != nil {
		return nil, err
	}
	if in.Offset < 0 || in.Limit < 0 {
		return nil, errors.New("offset and limit must not be negative")
	}
	data, err := w.FS().ReadFile(ctx, name)
	if err != nil {
		return nil, about(name, err)
	}
	result, isCut := readResult{Path: name, Size: len(data)}, false
	switch {
	case in.Encoding == encodingBase64:
		result.Content, result.NextOffset, err = someBytes(data, in.Offset, in.Limit)
	case in.Encoding != "" && in.Encoding != encodingText:
		return nil, fmt.Errorf("encoding must be %s or %s", encodingText, encodingBase64)
	case !isText(data):
		return nil, fmt.Errorf("%s is no text; it has %d bytes: read it with the encoding %s", name, len(data), encodingBase64)
	default:
		result.Content, result.NextOffset, isCut, err = someLines(string(data), max(in.Offset, 1), in.Limit)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	result.Truncated = isCut || result.NextOffset > 0
	return result, nil
}

// someLines returns lines of a text from one on, at most limit of them if that
// is not 0, and which line comes next, 0 if there is none. isCut: of a line that is
// longer than MaxText the rest is left out.
func someLines(text string, from, limit int) (content string, next int, isCut bool, err error) {
	var b strings.Builder
	n := 0
	for line := range strings.Lines(text) {
		if n++; n < from {
			continue
		}
		if limit > 0 && n-from >= limit || b.Len() > 0 && b.Len()+len(line) > MaxText {
			return b.String(), n, isCut, nil
		}
		if len(line) > MaxText {
			line, isCut = cut(line, MaxText)+"…\n", true
		}
		b.WriteString(line)
	}
	if from > max(n, 1) {
		return "", 0, false, fmt.Errorf("there is no line %d, the file has %d", from, n)
	}
	return b.String(), 0, isCut, nil
}

func someBytes(data []byte, from, limit int) (content string, next int, err error) {
	if from > len(data) {
		return "", 0, fmt.Errorf("there is no byte %d, the file has %d", from, len(data))
	}
	const most = MaxText / 4 * 3 // base64 makes four characters of three bytes
	if limit == 0 || limit > most {
		limit = most
	}
	to := min(from+limit, len(data))
	if to < len(data) {
		next = to
	}
	return base64.StdEncoding.EncodeToString(data[from:to]), next, nil
}

type writeArgs struct {
	Path    string `json:"path" jsonschema:"the file, relative to the workspace"`
	Content string `json:"content" jsonschema:"the file's whole content"`
}

type writeResult struct {
	Path string `json:"path"`
	Size int    `json:"size"` // bytes
}

func writeFile(ctx context.Context, w Workspace, in writeArgs) (any, error) {
	name, err := cleanFile(in.Path)
	if err != nil {
		return nil, err
	}
	if len(in.Content) > MaxFile {
		return nil, about(name, ErrTooLarge)
	}
	if err := w.FS().WriteFile(ctx, name, []byte(in.Content)); err != nil {
		return nil, about(name, err)
	}
	return writeResult{Path: name, Size: len(in.Content)}, nil
}

type editArgs struct {
	Path string `json:"path" jsonschema:"the file, relative to the workspace"`
	Old  string `json:"old" jsonschema:"the text to replace, exactly as it is in the file, with enough around it to be there only once"`
	New  string `json:"new" jsonschema:"the text that replaces it"`
}

type editResult struct {
	Path     string `json:"path"`
	Replaced int    `json:"replaced"`
	Note     string `json:"note,omitempty"`
}

// editFile replaces a text. The same edit may come again, after a crash that
// left its result unrecorded: what is done already is not done twice.
func editFile(ctx context.Context, w Workspace, in editArgs) (any, error) {
	name, err := cleanFile(in.Path)
	switch {
	case err != nil:
		return nil, err
	case in.Old == "":
		return nil, errors.New("old must not be empty")
	case in.Old == in.New:
		return nil, errors.New("old and new are the same")
	}
	data, err := w.FS().ReadFile(ctx, name)
	if err != nil {
		return nil, about(name, err)
	}
	if !isText(data) {
		return nil, fmt.Errorf("%s is no text", name)
	}
	text := string(data)
	times := strings.Count(text, in.Old)
	if in.New != "" {
		if made := strings.Count(text, in.New); made > 0 && times == made*strings.Count(in.New, in.Old) {
			return editResult{Path: name, Note: "the file has the new text already, and the old one nowhere else"}, nil
		}
	}
	at := strings.Index(text, in.Old)
	switch {
	case at < 0:
		return nil, fmt.Errorf("%s does not have the old text", name)
	case at != strings.LastIndex(text, in.Old): // which may overlap with the first
		return nil, fmt.Errorf("%s has the old text %d times: give more of what is around it", name, max(times, 2))
	}
	text = text[:at] + in.New + text[at+len(in.Old):]
	if strings.Count(text, in.Old) > strings.Count(in.New, in.Old) { // it would be replaced when the edit comes again
		return nil, fmt.Errorf("%s would have the old text again: give more of what is around it", name)
	}
	if len(text) > MaxFile {
		return nil, about(name, ErrTooLarge)
	}
	if err := w.FS().WriteFile(ctx, name, []byte(text)); err != nil {
		return nil, about(name, err)
	}
	return editResult{Path: name, Replaced: 1}, nil
}

type deleteArgs struct {
	Path string `json:"path" jsonschema:"the file or folder, relative to the workspace"`
}

type deleteResult struct {
	Path    string `json:"path"`
	Deleted bool   `json:"deleted"` // false: it was not there
}

func deleteFile(ctx context.Context, w Workspace, in deleteArgs) (any, error) {
	name, err := cleanFile(in.Path)
	if err != nil {
		return nil, err
	}
	err = w.FS().Remove(ctx, name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, about(name, err)
	}
	return deleteResult{Path: name, Deleted: err == nil}, nil
}

type moveArgs struct {
	From string `json:"from" jsonschema:"the file or folder, relative to the workspace"`
	To   string `json:"to" jsonschema:"the new path, where nothing may be yet"`
}

type moveResult struct {
	From string `json:"from"`
	To   string `json:"to"`
}

func moveFile(ctx context.Context, w Workspace, in moveArgs) (any, error) {
	from, err := cleanFile(in.From)
	if err != nil {
		return nil, err
	}
	to, err := cleanFile(in.To)
	if err != nil {
		return nil, err
	}
	_, missing := w.FS().Stat(ctx, from)
	switch _, err := w.FS().Stat(ctx, to); {
	case err == nil && errors.Is(missing, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no %s, but a %s: it may have been moved already", from, to)
	case err == nil:
		return nil, fmt.Errorf("there is a %s already", to)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, about(to, err)
	}
	if err := w.FS().Rename(ctx, from, to); err != nil {
		return nil, about(from, err)
	}
	return moveResult{From: from, To: to}, nil
}
