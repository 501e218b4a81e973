package main

import (
	"bytes"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog/version"
)

func TestVersionFlag(t *testing.T) {
	var out bytes.Buffer
	code := -1
	k, err := newParser(new(cli), kong.Writers(&out, &out), kong.Exit(func(c int) { code = c; panic(out) }))
	require.NoError(t, err)
	require.Panics(t, func() { _, _ = k.Parse([]string{"--version"}) })
	require.Zero(t, code)
	require.Equal(t, "helixd "+version.Current()+"\n", out.String())
}
