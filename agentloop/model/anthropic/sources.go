package anthropic

import (
	"cmp"
	"fmt"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"github.com/helixd/helixd/agentloop/model"
)

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
