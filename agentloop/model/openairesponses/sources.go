package openairesponses

import (
	"cmp"

	"github.com/helixd/helixd/agentloop/model"
)

// source returns what the annotation cites, and a key by which it is known again; empty:
// nothing.
func (c annotation) source() (key string, source model.Source) {
	switch c.Type {
	case "url_citation":
		source = model.Source{URL: c.URL, Title: c.Title}
	case "file_citation", "container_file_citation":
		source = model.Source{MediaType: "text/plain", Title: cmp.Or(c.Filename, c.FileID), Filename: c.Filename}
	case "file_path":
		source = model.Source{MediaType: "application/octet-stream", Title: c.FileID}
	}
	if source != (model.Source{}) {
		key = cmp.Or(c.URL, c.FileID)
	}
	return key, source
}
