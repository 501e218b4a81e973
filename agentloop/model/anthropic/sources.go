package anthropic

import (
	"cmp"
	"fmt"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"github.com/helixd/helixd/agentloop/model"
)

// sources are what an answer cites: each once, after the text that cites it.
type sources struct {
	known   map[string]bool
	waiting []model.Source
}

func (s *sources) add(c sdk.CitationsDeltaCitationUnion) {
	key, source := citation(c)
	if key == "" || s.known[key] {
		return
	}
	if s.known == nil {
		s.known = make(map[string]bool)
	}
	s.known[key] = true
	s.waiting = append(s.waiting, source)
}

// citation is what a citation is of, and a key by which it is known again.
func citation(c sdk.CitationsDeltaCitationUnion) (key string, _ model.Source) {
	document := func(mediaType string) (string, model.Source) {
		title := cmp.Or(c.DocumentTitle, fmt.Sprintf("Document %d", c.DocumentIndex+1))
		return fmt.Sprintf("document %d", c.DocumentIndex), model.Source{MediaType: mediaType, Title: title}
	}
	switch c.Type {
	case "web_search_result_location":
		return c.URL, model.Source{URL: c.URL, Title: c.Title}
	case "search_result_location":
		return fmt.Sprintf("search result %d", c.SearchResultIndex),
			model.Source{MediaType: "text/plain", Title: cmp.Or(c.Title, c.Source)}
	case "page_location":
		return document("application/pdf")
	case "char_location", "content_block_location":
		return document("text/plain")
	}
	return "", model.Source{}
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
