package httpapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
)

// requestProblems says what the document does not say of a request that was
// carried out.
func (c *apiChecker) requestProblems(op *apiOperation, u *url.URL, h http.Header, sent []byte) (problems []error) {
	query := u.Query()
	for _, p := range op.Parameters {
		var values []string
		switch p.In {
		case "query":
			values = query[p.Name]
			query.Del(p.Name)
		case "header":
			values = h.Values(p.Name)
		case "path":
			continue
		}
		if p.Required && len(values) == 0 {
			problems = append(problems, fmt.Errorf("%s is missing", p.Name))
		}
		for _, v := range values {
			if v == "" && p.In == "header" {
				continue // as if it were not there
			}
			c.saw(op.ID, "parameter", p.Name)
			if err := c.validText(p.Schema, v); err != nil {
				problems = append(problems, fmt.Errorf("%s: %w", p.Name, err))
			}
		}
	}
	for name := range query {
		problems = append(problems, fmt.Errorf("the parameter %s is not described", name))
	}
	switch {
	case op.Body == nil && len(sent) == 0:
	case op.Body == nil:
		problems = append(problems, fmt.Errorf("has a body"))
	case len(sent) == 0 && op.Body.Required:
		problems = append(problems, fmt.Errorf("has no body"))
	case len(sent) > 0:
		problems = append(problems, c.bodyProblems(op, sent)...)
	}
	return problems
}

// bodyProblems takes a body for JSON where that is described and it is such,
// else for lines: requests need not say what they are.
func (c *apiChecker) bodyProblems(op *apiOperation, sent []byte) (problems []error) {
	if media := op.Body.Content["application/json"]; media != nil && (json.Valid(sent) || len(op.Body.Content) == 1) {
		c.saw(op.ID, "body", "application/json")
		err := c.valid(op.ID+" body", media.Schema, sent)
		if err == nil || len(op.Body.Content) == 1 {
			return nilOr(err)
		}
	}
	lines := op.Body.Content["application/x-ndjson"]
	if lines == nil {
		return []error{fmt.Errorf("the body is not described")}
	}
	c.saw(op.ID, "body", "application/x-ndjson")
	for line := range bytes.Lines(sent) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if err := c.valid(op.ID+" body", lines.Items, line); err != nil {
			problems = append(problems, err)
		}
	}
	return problems
}

func nilOr(err error) []error {
	if err == nil {
		return nil
	}
	return []error{err}
}

// validText holds the text of a parameter or a header against its schema; that
// of a list is one of its items.
func (c *apiChecker) validText(s apiSchema, v string) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	for typed := s; typed != nil; typed = c.doc.target(typed) {
		switch typed["type"] {
		case "integer", "number":
			raw = []byte(v)
		case "array":
			raw = slices.Concat([]byte("["), raw, []byte("]"))
		}
	}
	_, err = c.doc.validate(s, raw)
	return err
}
