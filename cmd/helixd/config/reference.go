package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// references resolves env:NAME and file:PATH.
type references struct {
	dir    string // what PATH is relative to
	getenv func(string) (string, bool)
	files  []string // that were read
}

// resolve returns the value that text refers to, and whether it was a reference. An
// error shows the NAME only if it looks like one: a secret may have been
// written there by mistake.
func (r *references) resolve(text string) (value string, isReference bool, err error) {
	if name, ok := strings.CutPrefix(text, "env:"); ok {
		if !variableName.MatchString(name) {
			return "", true, errors.New("env: needs the name of an environment variable")
		}
		value, ok := r.getenv(name)
		if !ok {
			return "", true, errors.New("environment variable " + name + " is not set")
		}
		return value, true, nil
	}
	if path, ok := strings.CutPrefix(text, "file:"); ok {
		value, err := r.read(path)
		return value, true, err
	}
	return text, false, nil
}

func (r *references) read(path string) (string, error) {
	if path == "" {
		return "", errors.New("file: needs a path")
	}
	full := path
	if !filepath.IsAbs(full) {
		full = filepath.Join(r.dir, full)
	}
	r.files = append(r.files, full)
	data, err := os.ReadFile(full)
	if err != nil {
		if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
			err = pathErr.Err
		}
		return "", errors.New("cannot read file " + path + ": " + err.Error())
	}
	text := strings.TrimSuffix(string(data), "\n")
	return strings.TrimSuffix(text, "\r"), nil
}
