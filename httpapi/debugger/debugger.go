// Package debugger has the web page in which people inspect sessions: see them at any
// moment, compare, replay and fork them, and act on live ones. Its files are part of the
// program, need no build step, and contain no user's data: the page gets everything that
// it shows from the routes of the server, as the caller.
package debugger

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"path"
)

// Policy is the Content-Security-Policy of the page: scripts, styles and
// requests only of its own origin, whatever content a session has.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// File is a file of the page.
type File struct {
	ContentType string
	ETag        string // changes with the content
	Content     []byte
}

//go:embed static
var static embed.FS

// page is the file that a browser begins with. Its links are relative to where
// the server is mounted, so it is no asset: those are a level below.
const page = "index.html"

// contentTypes are those of the files, by ending.
var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

var files = readAll()

func readAll() map[string]File {
	all := map[string]File{}
	entries, err := fs.ReadDir(static, "static")
	if err != nil {
		panic(err) // they are part of the program
	}
	for _, e := range entries {
		content, err := fs.ReadFile(static, path.Join("static", e.Name()))
		if err != nil {
			panic(err)
		}
		sum := sha256.Sum256(content)
		all[e.Name()] = File{contentTypes[path.Ext(e.Name())], `"` + hex.EncodeToString(sum[:12]) + `"`, content}
	}
	return all
}

// Page returns the page itself.
func Page() File { return files[page] }

// Asset returns a file that the page uses, by its name.
func Asset(name string) (File, bool) {
	f, ok := files[name]
	return f, ok && name != page
}
