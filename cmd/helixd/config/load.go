package config

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
)

// Load reads the file and the environment over the defaults. An empty path
// means no file. getenv is [os.LookupEnv] or like it; nil means no
// environment.
//
// The error is nil or names every problem found, one a line; there is no
// Config then. Only without a file chat.defaultAgent may name an agent that
// does not exist, for the caller may still add it.
func Load(path string, getenv func(string) (string, bool)) (*Config, error) {
	if getenv == nil {
		getenv = func(string) (string, bool) { return "", false }
	}
	c := Default()
	var malformed []problem
	if path != "" {
		c.file = path
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("config: %w", err)
		}
		root, problems := parse(path, data)
		d := &decoder{
			config:     c,
			file:       path,
			references: references{dir: filepath.Dir(path), getenv: getenv},
			problems:   problems,
		}
		if root != nil {
			d.decode(reflect.ValueOf(c).Elem(), root, "")
		}
		c.files = append(d.references.files, path)
		malformed = d.problems
	}
	malformed = append(malformed, c.setEnv(getenv)...)
	c.setTimeouts()
	if err := joined(append(malformed, without(c.check(), malformed)...)); err != nil {
		return nil, err
	}
	return c, nil
}
