//go:build unix

package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/httpapi/client"
)

// under returns ten minutes of samples of a daemon at one level, each changed by change.
func under(change func(x *sample, minutes float64)) (samples []sample) {
	for at := time.Duration(0); at <= 10*time.Minute; at += 5 * time.Second {
		x := sample{at: at, resident: 200, heap: 40, cache: 20, goroutines: 2000, files: 400}
		if at < time.Minute { // the sessions come
			x.goroutines, x.files = 500, 100
		}
		change(&x, at.Minutes())
		samples = append(samples, x)
	}
	return samples
}

func TestWhatRisesIsNoticed(t *testing.T) {
	for name, test := range map[string]struct {
		change func(x *sample, minutes float64)
		found  string
	}{
		"nothing":            {func(*sample, float64) {}, ""},
		"up and down":        {func(x *sample, m float64) { x.heap += 30 * float64(int(m*12)%3) }, ""},
		"a peak":             {func(x *sample, m float64) { x.heap += 500 * float64(int(m)/9) * float64(int(m*12)%12/11) }, ""},
		"NATS's cache":       {func(x *sample, m float64) { x.cache, x.resident = x.cache+30*m, x.resident+30*m }, ""},
		"a heap":             {func(x *sample, m float64) { x.heap += 3 * m }, "heap, MiB rises"},
		"memory beside it":   {func(x *sample, m float64) { x.resident += 12 * m }, "memory (RSS), MiB rises"},
		"goroutines":         {func(x *sample, m float64) { x.goroutines += 60 * m }, "goroutines rises"},
		"files":              {func(x *sample, m float64) { x.files += 12 * m }, "open files rises"},
		"files that go away": {func(x *sample, m float64) { x.files -= 12 * m }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			found := flat(under(test.change), 10*time.Minute)
			if test.found == "" {
				require.Empty(t, found)
				return
			}
			require.Len(t, found, 1)
			require.ErrorContains(t, found[0], test.found)
		})
	}
	require.Len(t, flat(nil, settles), len(measures), "what was not looked at is not flat")
	rising := under(func(x *sample, m float64) { x.resident += 60 * m })
	require.Len(t, flat(rising, settles), 1)
	require.Empty(t, flat(rising, 3*time.Minute), "in a short run it has not settled")
	kept := under(func(x *sample, m float64) { x.files += 300 * m })
	require.Len(t, flat(kept, 3*time.Minute), 1, "a file of each session")
	stages := under(func(x *sample, m float64) { x.files += 30 * m; x.heap += 30 * float64(int(m*12)%3) * m })
	require.Empty(t, flat(stages, 3*time.Minute), "peaks, and sessions at other stages")
}

func TestWhatDoesNotComeBackIsNoticed(t *testing.T) {
	idle := sample{resident: 60, heap: 5, goroutines: 60, files: 20}
	require.Empty(t, backAt(idle, idle))
	behind := idle
	behind.resident, behind.cache = 300, 50
	require.Empty(t, backAt(idle, behind), "the runtime gives memory back when it likes")
	behind.heap, behind.goroutines, behind.files = 50, 100, 60
	require.Len(t, backAt(idle, behind), 3)
}

func TestAHeapProfileIsRead(t *testing.T) {
	heap, cache, err := heapOf([]byte(`heap profile: 3: 9437184 [8: 99] @ heap/1048576
1: 8388608 [2: 16777216] @ 0x1 0x2
#	0x1	github.com/nats-io/nats-server/v2/server.getMsgBlockBuf+0x1	filestore.go:1
#	0x2	github.com/nats-io/nats-server/v2/server.(*msgBlock).loadBlock+0x2	filestore.go:2

2: 1048576 [2: 1048576] @ 0x3
#	0x3	main.main+0x3	main.go:1

0: 0 [4: 4] @ 0x1
#	0x1	github.com/nats-io/nats-server/v2/server.getMsgBlockBuf+0x1	filestore.go:1

# runtime.MemStats
# Alloc = 10485760
# HeapAlloc = 20971520
`))
	require.NoError(t, err)
	require.Equal(t, 20.0*mib, heap)
	require.InDelta(t, 8*mib, cache, 1, "once, and without what is not in use")

	_, _, err = heapOf([]byte("404 page not found\n"))
	require.Error(t, err)
}

// What goes wrong on purpose has to end the run in its own way.
func TestOnlyTheInjectedIsTakenForNoticed(t *testing.T) {
	lost := options{inject: injectLost}
	require.Error(t, lost.noticed(nil))
	require.Error(t, lost.noticed(&leak{"goroutines"}))
	require.Error(t, options{inject: injectClients}.noticed(client.ErrUnreachable))
	require.NoError(t, options{inject: injectClients}.noticed(&leak{"goroutines"}))
}
