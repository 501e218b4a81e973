package main

import (
	"fmt"
	"regexp"
	"strconv"
)

// sequences are a range of them.
var sequences = regexp.MustCompile(`^(\d*)\.\.(\d*)$`)

// parseRange reads A..B, of which both may be left out.
func parseRange(text string) (from, to *uint64, err error) {
	parts := sequences.FindStringSubmatch(text)
	if parts == nil {
		return nil, nil, fmt.Errorf("%q is no range of sequences, A..B", text)
	}
	if from, err = parseSequence(parts[1]); err != nil {
		return nil, nil, err
	}
	to, err = parseSequence(parts[2])
	return from, to, err
}

func parseSequence(text string) (*uint64, error) {
	if text == "" {
		return nil, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%s is no sequence", text)
	}
	return &n, nil
}
