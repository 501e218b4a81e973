package openairesponses

import (
	"cmp"

	"github.com/helixd/helixd/agentloop/model"
)

// sources are what an answer cites: each once, after the text that cites it.
type sources struct {
	known   map[string]bool
	waiting []model.Source
}

// citation is an annotation of a text.
type citation struct{ kind, url, title, fileID, filename string }

func (s *sources) add(c citation) {
	var source model.Source
	switch c.kind {
	case "url_citation":
		source = model.Source{URL: c.url, Title: c.title}
	case "file_citation", "container_file_citation":
		source = model.Source{MediaType: "text/plain", Title: cmp.Or(c.filename, c.fileID), Filename: c.filename}
	case "file_path":
		source = model.Source{MediaType: "application/octet-stream", Title: c.fileID}
	}
	key := cmp.Or(c.url, c.fileID)
	if source == (model.Source{}) || key == "" || s.known[key] {
		return
	}
	if s.known == nil {
		s.known = make(map[string]bool)
	}
	s.known[key] = true
	s.waiting = append(s.waiting, source)
}

func (s *sources) flush(emit func(model.Event) error) error {
	for _, source := range s.waiting {
		if err := emit(source); err != nil {
			return err
		}
	}
	s.waiting = nil
	return nil
}
