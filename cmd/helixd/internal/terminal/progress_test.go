package terminal

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestProgress(t *testing.T) {
	for want, p := range map[string]*Progress{
		"restore  [#####---------------]   25 %  1.0 KiB  512 bytes/s  6s left": {what: "restore", total: 4 << 10, done: 1 << 10, amount: Bytes},
		"verify  [####################]  100 %  1 session  0 sessions/s":        {what: "verify", total: 1, done: 1, amount: Things("session")},
		"backup  3.0 MiB  1.5 MiB/s":                                            {what: "backup", done: 3 << 20, amount: Bytes},
		"backup  0 bytes  2s":                                                   {what: "backup", amount: Bytes},
		"erase s  2s":                                                           {what: "erase s", done: 2},
	} {
		require.Equal(t, want, p.line(100, 2*time.Second))
		require.Equal(t, want[:7], p.line(7, 2*time.Second), "as wide as the terminal")
		require.NotContains(t, p.line(100, 999*time.Millisecond), "/s", "it is too early for a rate")
	}
}

// Nothing is shown elsewhere than on a terminal; there, not at every step.
func TestProgressIsForTerminals(t *testing.T) {
	var none *Progress = NewProgress(new(bytes.Buffer), "x", 10, Bytes)
	require.Nil(t, none)
	none.Add(1)
	none.Left(1)
	none.Close()
	text, err := io.ReadAll(none.Reader(strings.NewReader("abc")))
	require.NoError(t, err)
	require.Equal(t, "abc", string(text))

	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer null.Close()
	require.Nil(t, NewProgress(null, "x", 10, Bytes))
	if device, err := os.OpenFile("/dev/zero", os.O_WRONLY, 0); err == nil { // a character device, as terminals are
		defer device.Close()
		require.NotNil(t, NewProgress(device, "x", 10, Bytes))
	}

	synctest.Test(t, func(t *testing.T) {
		var shown bytes.Buffer
		p := &Progress{w: &shown, what: "x", total: 4, amount: Bytes, now: time.Now, began: time.Now()}
		for range 2 {
			_, err := io.ReadAll(p.Reader(strings.NewReader("ab")))
			require.NoError(t, err)
		}
		require.Equal(t, "\x1b[Kx  [##########----------]   50 %  2 bytes\r", shown.String())
		time.Sleep(redraw)
		p.Add(0)
		p.Close()
		require.Positive(t, shown.Len())
		require.True(t, strings.HasSuffix(shown.String(), "\x1b[Kx  [####################]  100 %  4 bytes\r\x1b[K"))
	})
}

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{0: "0 bytes", 1: "1 byte", 1023: "1023 bytes", 1 << 10: "1.0 KiB", 3 << 19: "1.5 MiB", 1 << 40: "1.0 TiB"} {
		require.Equal(t, want, Bytes(n))
	}
}
