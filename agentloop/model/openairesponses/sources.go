package openairesponses

import (
	"cmp"

	"github.com/helixd/helixd/agentloop/model"
)

// citation is an annotation of a text.
type citation struct{ kind, url, title, fileID, filename string }

// source returns what the annotation cites, and a key by which it is known again; empty:
// nothing.
func (c citation) source() (key string, source model.Source) {
	switch c.kind {
	case "url_citation":
		source = model.Source{URL: c.url, Title: c.title}
	case "file_citation", "container_file_citation":
		source = model.Source{MediaType: "text/plain", Title: cmp.Or(c.filename, c.fileID), Filename: c.filename}
	case "file_path":
		source = model.Source{MediaType: "application/octet-stream", Title: c.fileID}
	}
	if source != (model.Source{}) {
		key = cmp.Or(c.url, c.fileID)
	}
	return key, source
}
