package source

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStretches(t *testing.T) {
	n, zero := uint64(9), uint64(0)
	for text, want := range map[string]Stretch{
		"s": {Session: "s"}, "s@9": {Session: "s", From: 9, Point: true}, "s@0": {Session: "s", Point: true}, "s@4..9": {Session: "s", From: 4, To: &n},
		"s@..9": {Session: "s", To: &n}, "s@4..": {Session: "s", From: 4}, "s@..": {Session: "s"}, "s@9@": {Session: "s@9"}, "a@b@4..9": {Session: "a@b", From: 4, To: &n},
	} {
		got, err := StretchOr(text, 0, nil)
		require.NoError(t, err)
		require.Equal(t, want, got, text)
	}
	got, err := StretchOr("s@4@", 3, &n)
	require.NoError(t, err)
	require.Equal(t, Stretch{Session: "s@4", From: 3, To: &n}, got)
	p, err := PointOr("s@4@", &zero)
	require.NoError(t, err)
	require.Equal(t, Point{"s@4", &zero}, p)
	_, err = StretchOr("s@4", 3, &n)
	require.EqualError(t, err, "s@4 is a point of a session; give its id alone: s (or s@4@, if that is the id)")
	_, err = PointOr("s@..4", &zero)
	require.EqualError(t, err, "s@..4 is a point of a session; give its id alone: s (or s@..4@, if that is the id)")
	for _, text := range []string{"@", "@9", "@4..9", "@.."} {
		_, err = StretchOr(text, 0, nil)
		require.ErrorIs(t, err, errNoSession, text)
		_, err = ParseSession(text)
		require.ErrorIs(t, err, errNoSession, text)
	}
	_, err = ParsePoint("@9")
	require.ErrorIs(t, err, errNoSession)
	_, err = StretchOr("s@1..99999999999999999999", 0, nil)
	require.ErrorContains(t, err, "is no sequence")
}

// What a command says to type is read as that session.
func TestArgument(t *testing.T) {
	for _, id := range []string{"s", "s@9", "s@4..9", "s@", "s@9@", "a@b.c"} {
		got, err := ParseSession(Argument(id))
		require.NoError(t, err)
		require.Equal(t, id, got)
	}
	require.Equal(t, "'it'\\''s@9@'", Argument("it's@9"))
}
