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
		var err error
		if malformed, err = c.read(path, c, getenv); err != nil {
			return nil, fmt.Errorf("config: %w", err)
		}
	}
	malformed = append(malformed, c.setEnv(getenv)...)
	c.setTimeouts()
	if err := joined(append(malformed, without(c.check(), malformed)...)); err != nil {
		return nil, err
	}
	return c, nil
}

// read decodes a file, and keeps where its keys are.
func (c *Config) read(file string, into any, getenv func(string) (string, bool)) (malformed []problem, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	c.file = file
	root, problems := parse(file, data)
	d := &decoder{config: c, file: file, references: references{dir: filepath.Dir(file), getenv: getenv}, problems: problems}
	if root != nil {
		d.decode(reflect.ValueOf(into).Elem(), root, "")
	}
	c.files = append(d.references.files, file)
	return d.problems, nil
}

// File is another YAML file than helix.yaml that has been read by the same rules.
type File struct{ config *Config }

// Decode reads a YAML file into a struct or a map by the rules of helix.yaml: keys are the fields'
// json tags, unknown ones are an error, env:NAME and file:PATH refer to values.
//
// The error names every problem found with its line, one a line.
func Decode(file string, into any, getenv func(string) (string, bool)) (*File, error) {
	c := &Config{}
	malformed, err := c.read(file, into, getenv)
	if err != nil {
		return nil, err
	}
	return &File{c}, joined(malformed)
}

// At returns an error about a key, such as assert[0].matches, with its line.
func (f *File) At(key, text string) error {
	return problem{at: f.config.originOf(key), path: key, text: text}
}

// CheckModel returns what is wrong with a model at a key.
func (f *File) CheckModel(key string, m Model) error {
	k := &checker{config: f.config}
	k.checkModel(m, key)
	return joined(k.problems)
}
