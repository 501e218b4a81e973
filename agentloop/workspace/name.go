package workspace

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// CheckName reports whether a name may be a file's or a folder's: relative,
// slash-separated, as fs.ValidPath has it, of at most MaxPath bytes and
// MaxElement for each part, without backslashes and control characters, so
// that it means the same everywhere. Errors: ErrOutside, ErrName.
func CheckName(name string) error {
	wrong := func(err error, why string) error { return fmt.Errorf("%.100q: %w: %s", name, err, why) }
	switch {
	case name == "":
		return wrong(ErrName, "it is empty")
	case len(name) > MaxPath:
		return wrong(ErrName, fmt.Sprintf("it has %d bytes, %d are allowed", len(name), MaxPath))
	case strings.HasPrefix(name, "/"):
		return wrong(ErrOutside, "it is absolute")
	case leadsOut(name):
		return wrong(ErrOutside, "it goes up")
	case !utf8.ValidString(name):
		return wrong(ErrName, "it is not UTF-8")
	case strings.ContainsRune(name, '\\'):
		return wrong(ErrName, "it has a backslash")
	case strings.ContainsFunc(name, unicode.IsControl):
		return wrong(ErrName, "it has a control character")
	case !fs.ValidPath(name):
		return wrong(ErrName, "write it as "+path.Clean(name))
	}
	for part := range strings.SplitSeq(name, "/") {
		if len(part) > MaxElement {
			return wrong(ErrName, fmt.Sprintf("a part has %d bytes, %d are allowed", len(part), MaxElement))
		}
	}
	return nil
}

func leadsOut(name string) bool {
	clean := path.Clean(name)
	return clean == ".." || strings.HasPrefix(clean, "../")
}
