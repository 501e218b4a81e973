package cohort

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/helixd/helixd/eventlog/fact"
)

// Rules say which values must not be in a cohort.
type Rules struct {
	// Fields are names of members of JSON objects in arguments, results, outputs, states and metadata,
	// at any depth; all texts and numbers within their values are redacted. A name with dots is the
	// end of a path: customer.email.
	Fields []string `yaml:"fields"`
	// Patterns are regular expressions (RE2); what they match in any text is redacted.
	Patterns []string `yaml:"patterns"`
	// Users redacts who the sessions belong to, and who has asked for what: user ids, subjects and
	// network addresses.
	Users bool `yaml:"users"`
	// Values are redacted wherever they are.
	Values []string `yaml:"values"`

	patterns []*regexp.Regexp
}

// RuleError is a rule that can't be used, or that a cohort does not bear.
type RuleError struct {
	Rule   string // as fields[0]; empty: the rules together
	Reason string
}

func (e *RuleError) Error() string {
	if e.Rule == "" {
		return "redaction: " + e.Reason
	}
	return "redaction: " + e.Rule + ": " + e.Reason
}

// ParseRules reads rules from YAML. Unknown members are an error. The error names the line, or is a [*RuleError].
func ParseRules(text []byte) (*Rules, error) {
	r := new(Rules)
	if err := yaml.UnmarshalWithOptions(text, r, yaml.Strict()); err != nil {
		return nil, fmt.Errorf("redaction: %w", err)
	}
	return r, r.compile()
}

func (r *Rules) compile() error {
	r.patterns = nil
	for i, p := range r.Patterns {
		at := fmt.Sprintf("patterns[%d]", i)
		compiled, err := regexp.Compile(p)
		if err != nil {
			return &RuleError{at, err.Error()}
		}
		if compiled.MatchString("") {
			return &RuleError{at, "it matches nothing at all: an empty text would be replaced"}
		}
		r.patterns = append(r.patterns, compiled)
	}
	for i, f := range r.Fields {
		if f == "" || slices.Contains(strings.Split(f, "."), "") {
			return &RuleError{fmt.Sprintf("fields[%d]", i), "is no name of a member, and no path of names with dots"}
		}
	}
	if slices.Contains(r.Values, "") {
		return &RuleError{"values", "a value is empty"}
	}
	return nil
}

// contents are helixd's own members whose values come from users, models and tools. Below them
// fields are looked for.
var contents = map[string]bool{
	"arguments": true, "result": true, "output": true, "finalOutput": true, "state": true, "metadata": true, "data": true,
	"patches": true, "client": true, "input": true, "partialInput": true, "providerData": true,
}

// field reports whether a rule names a member.
func (r *Rules) field(path []string) bool {
	return slices.ContainsFunc(r.Fields, func(f string) bool {
		want := strings.Split(f, ".")
		return len(path) >= len(want) && slices.Equal(path[len(path)-len(want):], want)
	})
}

// redact replaces values in a cohort.
func (r *Rules) redact(c *Cohort) error {
	if err := r.compile(); err != nil {
		return err
	}
	found := newValues()
	for _, v := range r.Values {
		found.add(v, false)
	}
	for i := range c.Sessions {
		for _, rec := range c.Sessions[i].Log {
			r.collect(found, rec.Payload)
		}
	}
	words := found.words(r)
	for i := range c.Sessions {
		if err := words.session(&c.Sessions[i]); err != nil {
			return err
		}
	}
	c.Header.Redacted = len(found.placeholders)
	f := &c.Header.Filter
	for _, field := range []*string{&f.Agent, &f.Tag, &f.User, &f.Tool, &f.Error, &f.Text} {
		*field = words.text(*field)
	}
	return nil
}

// inText is the path of JSON that a text holds: it is content.
var inText = []string{"data"}

// collect notes the values of a payload that rules name.
func (r *Rules) collect(found *values, payload []byte) {
	r.look(found, nil, payload)
	if r.Users {
		collectUsers(found, payload)
	}
}

func (r *Rules) look(found *values, path []string, raw []byte) {
	_, _ = rewrite(path, raw, func(path []string, v any) any { // what is no JSON has no members
		switch v := v.(type) {
		case json.Number:
			if r.named(path) {
				found.add(v.String(), true)
			}
		case string:
			switch {
			case r.named(path):
				found.add(v, false)
			case isJSON(v):
				r.look(found, inText, []byte(v))
			}
			if !isWord(path) {
				for _, text := range decodings(v, 0) {
					r.match(found, text)
				}
			}
		}
		return v
	})
}

// named reports whether a rule names a member of the path.
func (r *Rules) named(path []string) bool {
	start := slices.IndexFunc(path, func(name string) bool { return contents[name] })
	if start < 0 {
		return false
	}
	for end := start + 2; end <= len(path); end++ {
		if r.field(path[start+1 : end]) {
			return true
		}
	}
	return false
}

// match notes what patterns find in a text.
func (r *Rules) match(found *values, text string) {
	for _, p := range r.patterns {
		for _, m := range p.FindAllString(text, -1) {
			found.add(m, false)
		}
	}
}

// isWord reports whether a member is one of helixd's own words, in which patterns find nothing.
func isWord(path []string) bool {
	return len(path) == 1 && slices.Contains([]string{"type", "kind", "mode", "status", "stopReason", "source", "sourceType"}, path[0])
}

// collectUsers notes who a session belongs to, and who has asked for what a record says.
func collectUsers(found *values, payload []byte) {
	var of struct {
		UserID string     `json:"userId"`
		By     fact.Actor `json:"by"`
	}
	if json.Unmarshal(payload, &of) != nil {
		return
	}
	for _, name := range []string{of.UserID, of.By.User, of.By.Subject, of.By.Address} {
		if name != "" {
			found.add(name, false)
		}
	}
}
