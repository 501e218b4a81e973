package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A client notices what it lacks, what comes twice, and an end that comes too
// early; records that the daemon has merged are as good as single ones.
func TestWhatAClientNotices(t *testing.T) {
	event := func(tokens ...string) string {
		return "id: 7\nevent: chunk\ndata: {\"type\":\"chunk\",\"chunk\":{\"type\":\"text_delta\",\"delta\":\"" +
			strings.Join(tokens, "") + "\",\"step\":1},\"sequence\":7}\n\n"
	}
	const other = ": heartbeat\n\nid: 6\nevent: chunk\ndata: {\"type\":\"chunk\",\"chunk\":{\"type\":\"step_start\"},\"sequence\":6}\n\n"
	l := newLoad(options{clients: 1, rate: 1, span: 3 * time.Second})
	a, b, c, d := l.token(0, 0), l.token(0, 1), l.token(0, 2), l.token(0, 3)
	for name, test := range map[string]struct{ stream, problem string }{
		"all":           {other + event(a) + event(b, c) + event(d), "EOF"},
		"a lost one":    {event(a) + event(c), "instead of chunk 1"},
		"one twice":     {event(a) + event(a), "instead of chunk 1"},
		"a torn one":    {event(a, b[:5]), "instead of chunk 1"},
		"a foreigner's": {event(l.token(1, 0)), "instead of chunk 0"},
		"an end":        {event(a) + "event: end\ndata: {}\n\n", "an event: end"},
	} {
		l := newLoad(l.options)
		err := readStream(strings.NewReader(test.stream), func(heard chunk) error { return l.hear(0, heard) })
		require.ErrorContains(t, err, test.problem, name)
	}
}
